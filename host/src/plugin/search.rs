//! Where plugins are looked for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::limits::Policy;
use super::session::Door;

/// Environment variable with further folders, separated by `:`.
pub const PATH_VARIABLE: &str = "LM_BENCH_PLUGIN_PATH";

/// Why a folder is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A flag names it.
    Flag,
    /// The environment names it.
    Variable,
    /// It belongs to the project in the working directory.
    Project,
    /// It is the user's.
    User,
    /// It is the machine's.
    System,
}

impl Origin {
    /// For messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Flag => "--plugin-dir",
            Self::Variable => PATH_VARIABLE,
            Self::Project => "project",
            Self::User => "user",
            Self::System => "system",
        }
    }
}

/// A folder of plugins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folder {
    /// Why it is searched.
    pub(crate) origin: Origin,
    /// The folder.
    pub(crate) path: PathBuf,
    /// Whether native libraries in it are passed over.
    pub(crate) wasm_only: bool,
}

/// The folders of a run in the order in which they are searched; the current directory itself is none of them.
///
/// `variable` reads an environment variable.
pub(crate) fn folders(policy: &Policy, variable: impl Fn(&str) -> Option<OsString>) -> Vec<Folder> {
    let all = |origin: Origin| {
        move |path: PathBuf| Folder {
            origin,
            path,
            wasm_only: false,
        }
    };
    let given = policy.plugin_dirs.iter().cloned();
    let mut folders: Vec<Folder> = given.map(all(Origin::Flag)).collect();
    if let Some(paths) = variable(PATH_VARIABLE) {
        // An empty entry would be the current directory.
        folders.extend(
            std::env::split_paths(&paths)
                .filter(|path| !path.as_os_str().is_empty())
                .map(all(Origin::Variable)),
        );
    }
    // A folder that comes with a checked-out project must not bring native code.
    folders.push(Folder {
        origin: Origin::Project,
        path: PathBuf::from(".lm-bench/plugins"),
        wasm_only: true,
    });
    folders.extend(
        user_folder("XDG_DATA_HOME", ".local/share", &variable)
            .map(|data| data.join("plugins"))
            .map(all(Origin::User)),
    );
    folders.push(all(Origin::System)(PathBuf::from("/usr/lib/lm-bench/plugins")));
    folders
}

/// This program's folder below one of the user's base folders; `None` without a home.
pub(crate) fn user_folder(
    name: &str,
    below_home: &str,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    // The base directory specification of freedesktop.org: relative paths are to be ignored.
    let base = variable(name)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let base = base.or_else(|| Some(PathBuf::from(variable("HOME")?).join(below_home)))?;
    base.is_absolute().then(|| base.join("lm-bench"))
}

/// File name of a plugin behind a door; built-in ones have no file and are named like components.
pub(super) fn file_name(id: &str, door: Door) -> String {
    format!("{}.{}", id.replace('-', "_"), extension(door))
}

fn extension(door: Door) -> &'static str {
    if door == Door::Dylib { "so" } else { "wasm" }
}

impl Folder {
    /// Files that may hold a plugin of this id; of two the sandboxed one comes first.
    pub(crate) fn candidates(&self, id: &str) -> Vec<PathBuf> {
        let files = self
            .doors()
            .iter()
            .map(|door| self.path.join(file_name(id, *door)));
        files.filter(|path| path.symlink_metadata().is_ok()).collect()
    }

    /// All plugin files by name.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(&self.path) else {
            return Vec::new();
        };
        let mut files: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| self.takes(path))
            .collect();
        files.sort();
        // "a.so" sorts before "a.wasm", which is the one that is taken.
        files.sort_by_key(|path| (path.file_stem().map(ToOwned::to_owned), !is_wasm(path)));
        files
    }

    fn doors(&self) -> &'static [Door] {
        if self.wasm_only {
            &[Door::Wasm]
        } else {
            &[Door::Wasm, Door::Dylib]
        }
    }

    fn takes(&self, path: &Path) -> bool {
        let found = path.extension();
        found.is_some_and(|found| self.doors().iter().any(|door| found == extension(*door)))
    }
}

fn is_wasm(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "wasm")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(policy: &Policy, variables: &[(&str, &str)]) -> Vec<String> {
        let variable = |name: &str| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| OsString::from(value))
        };
        folders(policy, variable)
            .iter()
            .map(|folder| folder.path.display().to_string())
            .collect()
    }

    #[test]
    fn folders_are_searched_in_the_documented_order() {
        let policy = Policy {
            plugin_dirs: vec!["given".into()],
            ..Policy::default()
        };
        let found = paths(
            &policy,
            &[
                (PATH_VARIABLE, "/a:/b"),
                ("XDG_DATA_HOME", "/data"),
                ("HOME", "/home/me"),
            ],
        );
        assert_eq!(
            found,
            [
                "given",
                "/a",
                "/b",
                ".lm-bench/plugins",
                "/data/lm-bench/plugins",
                "/usr/lib/lm-bench/plugins"
            ]
        );
        assert!(
            paths(&policy, &[("HOME", "/home/me")])
                .contains(&"/home/me/.local/share/lm-bench/plugins".to_owned())
        );
    }

    #[test]
    fn the_current_directory_is_never_searched() {
        let found = paths(
            &Policy::default(),
            &[(PATH_VARIABLE, "::"), ("XDG_DATA_HOME", "data")],
        );
        assert_eq!(found, [".lm-bench/plugins", "/usr/lib/lm-bench/plugins"]);
    }

    #[test]
    fn a_project_folder_has_no_native_plugins() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in ["my_probe.so", "my_probe.wasm", "notes.txt"] {
            std::fs::write(folder.path().join(name), b"x").expect("a written file");
        }
        let names = |wasm_only| {
            let folder = Folder {
                origin: Origin::Project,
                path: folder.path().to_owned(),
                wasm_only,
            };
            let name = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
            let (ids, files) = (folder.candidates("my-probe"), folder.files());
            (
                ids.iter().map(name).collect::<Vec<_>>(),
                files.iter().map(name).collect::<Vec<_>>(),
            )
        };
        let both = vec!["my_probe.wasm".to_owned(), "my_probe.so".to_owned()];
        assert_eq!(names(false), (both.clone(), both.clone()));
        assert_eq!(names(true), (both[..1].to_vec(), both[..1].to_vec()));
    }
}
