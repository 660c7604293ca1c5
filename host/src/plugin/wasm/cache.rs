//! The folder that compiled components are kept in.

use std::path::{Path, PathBuf};

use wasmtime::{Cache, CacheConfig};

/// Folders within the cache's folder; the runtime makes two.
const DEPTH: usize = 4;

/// Whether compiled components are kept between runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheState {
    /// They are kept in this folder.
    Folder(PathBuf),
    /// They are not, for this reason; each start compiles.
    Off(String),
}

/// Opens the cache in a folder that only this user can enter: compiled code is trusted.
///
/// # Errors
/// Why nothing can be kept there.
pub(super) fn open(folder: &Path) -> Result<(Cache, PathBuf), String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", folder.display());
    private_folder(folder).map_err(|error| failed(&error))?;
    let folder = folder.canonicalize().map_err(|error| failed(&error))?;
    plain_files_only(&folder).map_err(|error| failed(&error))?;
    let mut config = CacheConfig::new();
    config.with_directory(&folder);
    let cache = Cache::new(config).map_err(|error| failed(&error))?;
    Ok((cache, folder))
}

fn private_folder(folder: &Path) -> Result<(), String> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| error.to_string())?;
    let facts = std::fs::symlink_metadata(folder).map_err(|error| error.to_string())?;
    if !facts.is_dir() {
        return Err("is not a folder".to_owned());
    }
    if facts.uid() != rustix::process::geteuid().as_raw() {
        return Err("belongs to another user".to_owned());
    }
    if facts.permissions().mode() & 0o077 != 0 {
        return Err("can be entered by other users (chmod 700 it)".to_owned());
    }
    // Writing is tried here, so that a read-only folder is told once and not at each compilation.
    let trial = tempfile::tempfile_in(folder).map_err(|error| error.to_string())?;
    drop(trial);
    Ok(())
}

/// Refuses a folder with anything in it but files and folders: the runtime opens what it finds there, and a pipe would
/// never answer.
fn plain_files_only(folder: &Path) -> Result<(), String> {
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|error| error.to_string())?;
        for entry in entries {
            let entry = entry.map_err(|error| error.to_string())?;
            let kind = entry.file_type().map_err(|error| error.to_string())?;
            if kind.is_dir() && depth < DEPTH {
                folders.push((entry.path(), depth + 1));
            } else if !kind.is_file() {
                let path = entry.path();
                return Err(format!("{} is no file of this cache: remove it", path.display()));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_a_pipe_or_a_link_in_it_is_not_used() {
        let base = tempfile::tempdir().expect("a temporary folder");
        let folder = base.path().join("wasm");
        let inner = folder.join("modules/wasmtime");
        open(&folder).expect("made");
        std::fs::create_dir_all(&inner).expect("a folder");
        std::fs::write(inner.join("a.stats"), "x").expect("a file");
        open(&folder).expect("files only");
        std::os::unix::fs::symlink(base.path(), inner.join("link")).expect("a link");
        let reason = open(&folder).map(|_| ()).expect_err("a link");
        assert!(
            reason.ends_with("link is no file of this cache: remove it"),
            "{reason}"
        );
        std::fs::remove_file(inner.join("link")).expect("removed");
        let pipe = std::process::Command::new("mkfifo")
            .arg(inner.join("pipe"))
            .status();
        assert!(pipe.expect("mkfifo").success());
        let reason = open(&folder).map(|_| ()).expect_err("a pipe");
        assert!(
            reason.ends_with("pipe is no file of this cache: remove it"),
            "{reason}"
        );
    }
}
