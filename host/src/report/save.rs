//! Results in files.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::json;
use super::record::RunRecord;

/// Checks that [`save`] could write to `path`, by creating a temporary file beside it and removing it again; for use before
/// the run, so that a bad path does not cost its result.
///
/// # Errors
/// As [`save`], a full disk apart.
pub fn check_writable(path: &Path) -> io::Result<()> {
    let path = regular(path)?;
    beside(&path).and_then(NamedTempFile::close)
}

/// Writes a record as JSON. The file appears, or is replaced, in one step when it is complete; a link is followed.
///
/// # Errors
/// If the path is a folder, device or pipe, its folder does not exist or cannot be written to, or the disk is full. A file
/// that existed is then as it was.
pub fn save(record: &RunRecord, path: &Path) -> io::Result<()> {
    let path = regular(path)?;
    let mut file = beside(&path)?;
    file.write_all(json::render(record).as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(&path)?;
    Ok(())
}

/// The path with links followed, so that the file a link points to is replaced and not the link.
fn regular(path: &Path) -> io::Result<PathBuf> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if path.exists() && !path.is_file() || path.file_name().is_none() {
        return Err(io::Error::other("it is no regular file; name another one"));
    }
    Ok(path)
}

fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Readable for others as far as the umask allows, as any other file; temporary files are private by default.
    tempfile::Builder::new()
        .prefix(".lm-bench-")
        .suffix(".json")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                io::Error::new(error.kind(), "its folder does not exist; create it first")
            }
            _ => error,
        })
}

#[cfg(test)]
mod tests {
    use super::super::record::sample;
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn saves_and_replaces_in_one_step() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        fs::write(&path, "old").unwrap();
        check_writable(&path).unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "old",
            "checking leaves the file alone"
        );
        let record = sample::record();
        save(&record, &path).unwrap();
        let read: RunRecord = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(read, record);
        assert_eq!(names(folder.path()), ["result.json"], "no temporary file is left");
    }

    #[test]
    fn checking_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        check_writable(&folder.path().join("result.json")).unwrap();
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn bad_paths_are_refused_by_both() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let missing = folder.path().join("missing/result.json");
        for path in [
            folder.path(),
            Path::new("/dev/null"),
            Path::new(""),
            &missing,
            &file.join("result.json"),
        ] {
            assert!(check_writable(path).is_err(), "{}", path.display());
            assert!(save(&sample::record(), path).is_err(), "{}", path.display());
        }
        assert_eq!(
            check_writable(&missing).unwrap_err().to_string(),
            "its folder does not exist; create it first"
        );
        let device = check_writable(Path::new("/dev/null")).unwrap_err().to_string();
        assert_eq!(device, "it is no regular file; name another one");
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (link, path) = (folder.path().join("link"), folder.path().join("result.json"));
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        save(&sample::record(), &link).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::read_to_string(&path).unwrap().starts_with('{'));
    }
}
