//! Starts a plugin: a folder with an example collector, its tests and a README, in the language of the author's choice.

mod files;

use std::path::{Path, PathBuf};

use super::build_plugin::{BuildError, Tool};
use super::identity::is_id;
use super::search::file_name;
use super::session::Door;
use files::File;

/// Version that a plugin starts with.
const VERSION: &str = "0.1.0";
/// The SDK in the source tree that this program was built from, if it is still there.
const OWN_SDK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugin-sdk");

/// Languages that a plugin can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Language {
    /// Rust: all doors
    Rust,
    /// C, or C++: a native library, or a WebAssembly component
    C,
    /// JavaScript: a WebAssembly component
    Js,
    /// Python: a WebAssembly component
    Python,
}

/// What to start.
#[derive(Clone, Debug)]
pub struct NewRequest {
    /// The folder, which does not exist yet; its name is the plugin's id.
    pub folder: PathBuf,
    /// The language.
    pub language: Language,
    /// Folder of the SDK for Rust; by default the one in the source tree of this program, or the released one.
    pub sdk: Option<PathBuf>,
}

/// Why a plugin could not be started.
#[derive(Debug, thiserror::Error)]
pub enum NewError {
    /// The folder's name is no id.
    #[error("{0:?} cannot be a plugin's id: 2 to 63 of a-z, 0-9 and -, a letter first")]
    Name(String),
    /// There is something already.
    #[error("{} exists already: choose another name, or remove it", .0.display())]
    Exists(PathBuf),
    /// A tool that the language needs is not there.
    #[error(transparent)]
    Tool(#[from] BuildError),
    /// The SDK is for one language only.
    #[error("--sdk is the SDK for Rust, and the plugin is to be in another language: leave it out")]
    NoSdk,
    /// The folder holds no SDK.
    #[error("{} is not the folder of lm-bench's SDK (plugin-sdk in its repository)", .0.display())]
    Sdk(PathBuf),
    /// A file could not be written.
    #[error("{}: {error}", .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
}

impl Language {
    /// Tools without which the project could not be built.
    fn tools(self) -> &'static [Tool] {
        match self {
            Self::Rust => &[Tool::CARGO],
            Self::C => &[Tool::CC],
            Self::Js => &[Tool::NODE, Tool::NPM],
            Self::Python => &[Tool::PYTHON],
        }
    }

    fn files(self) -> &'static [File] {
        match self {
            Self::Rust => files::RUST,
            Self::C => files::C,
            Self::Js => files::JS,
            Self::Python => files::PYTHON,
        }
    }
}

/// Writes a new project and returns its folder.
///
/// # Errors
/// When the name is no id, there is something of this name, a tool is missing, or a file cannot be written.
pub fn new_plugin(request: &NewRequest) -> Result<PathBuf, NewError> {
    let folder = &request.folder;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    if !is_id(&name) {
        return Err(NewError::Name(name.into_owned()));
    }
    if folder.symlink_metadata().is_ok() {
        return Err(NewError::Exists(folder.clone()));
    }
    for tool in request.language.tools() {
        tool.check()?;
    }
    let sdk = sdk(request)?;
    let fill = |text: &str| {
        text.replace("{{id}}", &name)
            .replace("{{version}}", VERSION)
            .replace("{{file}}", file_name(&name, Door::Wasm).trim_end_matches(".wasm"))
            .replace("{{sdk}}", &sdk)
    };
    create(folder, std::fs::create_dir)?;
    for (path, text) in request.language.files() {
        let path = folder.join(path);
        create(path.parent().unwrap_or(folder), std::fs::create_dir_all)?;
        create(&path, |path| std::fs::write(path, fill(text)))?;
    }
    Ok(folder.clone())
}

fn create<'a>(path: &'a Path, create: impl FnOnce(&'a Path) -> std::io::Result<()>) -> Result<(), NewError> {
    create(path).map_err(|error| NewError::Write {
        path: path.to_owned(),
        error,
    })
}

/// The SDK as a dependency in Cargo.toml.
fn sdk(request: &NewRequest) -> Result<String, NewError> {
    let by_path = |folder: &Path| -> Option<String> {
        let folder = folder.canonicalize().ok()?;
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).ok()?;
        let manifest: toml::Table = manifest.parse().ok()?;
        let name = manifest.get("package")?.get("name")?.as_str()?;
        let path = toml::Value::from(folder.to_str()?);
        (name == "lm-bench-plugin").then(|| format!("{{ path = {path} }}"))
    };
    match (&request.sdk, request.language) {
        (Some(folder), Language::Rust) => by_path(folder).ok_or_else(|| NewError::Sdk(folder.clone())),
        (Some(_), _) => Err(NewError::NoSdk),
        (None, _) => {
            let released = || toml::Value::from(lm_bench_plugin::manifest::SDK_VERSION).to_string();
            Ok(by_path(Path::new(OWN_SDK)).unwrap_or_else(released))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(folder: PathBuf, language: Language) -> NewRequest {
        NewRequest {
            folder,
            language,
            sdk: None,
        }
    }

    #[test]
    fn a_project_says_its_name_and_keeps_no_placeholder() {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let folder = new_plugin(&request(parent.path().join("my-steps"), Language::C)).expect("created");
        for (path, _) in files::C {
            let text = std::fs::read_to_string(folder.join(path)).expect("written");
            assert!(!text.contains("{{id}}") && !text.contains("{{file}}"), "{path}");
        }
        let text = std::fs::read_to_string(folder.join("plugin.toml")).expect("written");
        assert!(
            text.contains("\nid = \"my-steps\"\nversion = \"0.1.0\"\n"),
            "{text}"
        );
        let again = new_plugin(&request(folder.clone(), Language::C));
        assert!(matches!(again, Err(NewError::Exists(path)) if path == folder));
    }

    #[test]
    fn a_crate_depends_on_the_sdk_of_this_program() {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let folder = new_plugin(&request(parent.path().join("my-steps"), Language::Rust)).expect("created");
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("written");
        let manifest: toml::Table = manifest.parse().expect("valid TOML");
        let path = manifest["dependencies"]["lm-bench-plugin"]["path"].as_str();
        let path = Path::new(path.expect("a path"));
        assert!(
            path.is_absolute() && path.ends_with("plugin-sdk"),
            "{}",
            path.display()
        );
    }

    #[test]
    fn what_cannot_be_started_leaves_nothing_behind() {
        let parent = tempfile::tempdir().expect("a temporary folder");
        for name in ["My_Steps", "x", "1st", "..", "a/../B"] {
            let refused = new_plugin(&request(parent.path().join(name), Language::C));
            assert!(
                matches!(refused, Err(NewError::Name(_) | NewError::Exists(_))),
                "{name}: {refused:?}"
            );
        }
        let mut other = request(parent.path().join("my-steps"), Language::Js);
        other.sdk = Some(OWN_SDK.into());
        assert!(matches!(
            new_plugin(&other),
            Err(NewError::NoSdk | NewError::Tool(_))
        ));
        other.language = Language::Rust;
        other.sdk = Some(parent.path().to_owned());
        assert!(matches!(new_plugin(&other), Err(NewError::Sdk(_))));
        let left = std::fs::read_dir(parent.path()).expect("readable").count();
        assert_eq!(left, 0);
    }
}
