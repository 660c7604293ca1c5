//! The folder form of a pack.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::content::{Content, ContentError, ContentLimits, Gathering};
use super::files::{Links, read_regular};

/// What an installation leaves in a pack's folder; it is no part of the pack.
pub(super) const RECEIPT: &str = ".installed.toml";

/// Reads all files of a folder under limits.
///
/// # Errors
/// When it holds what no pack holds, passes a limit, or cannot be read.
pub(super) fn read(folder: &Path, limits: ContentLimits) -> Result<Content, ContentError> {
    let mut gathering = Gathering::new(limits);
    let mut open = vec![(folder.to_owned(), Vec::new())];
    while let Some((folder, prefix)) = open.pop() {
        for entry in fs::read_dir(&folder).map_err(ContentError::Unreadable)? {
            let entry = entry.map_err(ContentError::Unreadable)?;
            let file_name = entry.file_name();
            if prefix.is_empty() && file_name == RECEIPT {
                continue;
            }
            let name = [prefix.as_slice(), file_name.as_bytes()].concat();
            let facts = entry.metadata().map_err(ContentError::Unreadable)?;
            if facts.is_dir() {
                // Checked now, so that folders do not nest without end.
                let inner = [name.as_slice(), b"/"].concat();
                check_folder(&name)?;
                open.push((entry.path(), inner));
            } else if facts.is_file() {
                let admitted = gathering.admit(&name, facts.len())?;
                let bytes = read_regular(&entry.path(), Links::Refuse, facts.len())
                    .map_err(ContentError::Unreadable)?;
                gathering.fill(admitted, bytes);
            } else {
                let kind = if facts.is_symlink() {
                    "a symbolic link"
                } else {
                    "a device, pipe or socket"
                };
                let name = String::from_utf8_lossy(&name).into_owned();
                return Err(ContentError::Kind { name, kind });
            }
        }
    }
    Ok(gathering.finish())
}

fn check_folder(name: &[u8]) -> Result<(), ContentError> {
    match super::name::check(name) {
        Ok(_) => Ok(()),
        Err(error) => Err(ContentError::Name {
            name: String::from_utf8_lossy(name).into_owned(),
            error,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in names {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, name).expect("a written file");
        }
        folder
    }

    fn error(folder: &Path) -> String {
        let limits = ContentLimits {
            entries: 5,
            bytes: 1_000,
            ..ContentLimits::default()
        };
        read(folder, limits).expect_err("refused").to_string()
    }

    #[test]
    fn files_come_with_the_folders_they_lie_in_and_without_the_receipt() {
        let folder = folder(&["pack.toml", "x86/a.so", RECEIPT]);
        let content = read(folder.path(), ContentLimits::default()).expect("content");
        let names: Vec<_> = content.files().map(|(name, _)| name).collect();
        assert_eq!(names, ["pack.toml", "x86/a.so"]);
        assert_eq!(content.get("x86/a.so"), Some(b"x86/a.so".as_slice()));
    }

    #[test]
    fn what_no_pack_holds_is_refused_without_waiting() {
        let hidden = folder(&[".git/config"]);
        assert!(error(hidden.path()).contains(".git"));
        let deep = folder(&["a/b/c/d/e"]);
        assert!(error(deep.path()).contains("parts"));
        let many = folder(&["a", "b", "c", "d", "e", "f"]);
        assert!(error(many.path()).contains("more than 5 files"));
        let large = folder(&[]);
        fs::write(large.path().join("a"), vec![0; 1_001]).expect("a written file");
        assert!(error(large.path()).contains("more than 1000 bytes"));
        let linked = folder(&[]);
        std::os::unix::fs::symlink("/etc/hostname", linked.path().join("a")).expect("a link");
        assert!(error(linked.path()).contains("a is a symbolic link"));
        let piped = folder(&[]);
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, piped.path().join("a"), mode).expect("a pipe");
        assert!(error(piped.path()).contains("pipe"));
    }
}
