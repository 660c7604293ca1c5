//! The whole record as JSON, on stdout or in a file.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use schemars::generate::SchemaSettings;
use tempfile::NamedTempFile;

use super::record::RunRecord;

/// The record as indented JSON with a line feed at its end.
pub fn render(record: &RunRecord) -> String {
    let mut text = serde_json::to_string_pretty(record).expect("a record has string keys only");
    text.push('\n');
    text
}

/// The JSON Schema of the record (draft 2020-12), as in `docs/report.schema.json`.
pub fn schema() -> String {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let schema = generator.into_root_schema_for::<RunRecord>();
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema has string keys only");
    text.push('\n');
    text
}

/// Why a result cannot be saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The path names a folder, a device or a pipe.
    #[error("cannot save the result to {0}: it exists and is no regular file; name another file")]
    NotAFile(PathBuf),
    /// The folder of the file does not exist or cannot be written to.
    #[error("cannot save the result in {folder}: {source}; create the folder or name another one")]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Writing failed.
    #[error("cannot save the result to {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A file that a result will be saved to. Opening it before the run makes a bad path fail before the work is done; the file
/// appears, or is replaced, only when it is complete. Dropped unused it leaves nothing behind.
#[derive(Debug)]
pub struct SaveTarget {
    path: PathBuf,
    temporary: NamedTempFile,
}

impl SaveTarget {
    /// Checks that `path` can be written, by creating a temporary file beside it.
    ///
    /// # Errors
    /// [`SaveError::NotAFile`] and [`SaveError::Folder`].
    pub fn open(path: &Path) -> Result<Self, SaveError> {
        // A link is followed, so that the file it points to is replaced and not the link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        if path.exists() && !path.is_file() || path.file_name().is_none() {
            return Err(SaveError::NotAFile(path));
        }
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let temporary = tempfile::Builder::new()
            .prefix(".lm-bench-")
            .suffix(".json")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(|source| SaveError::Folder {
                folder: folder.to_path_buf(),
                source,
            })?;
        Ok(Self { path, temporary })
    }

    /// Writes the record and moves it to its place in one step. Returns the path.
    ///
    /// # Errors
    /// [`SaveError::Write`], for instance on a full disk; the file, where it existed, is then as it was.
    pub fn save(mut self, record: &RunRecord) -> Result<PathBuf, SaveError> {
        let written = self
            .temporary
            .write_all(render(record).as_bytes())
            .and_then(|()| self.temporary.as_file().sync_all())
            .and_then(|()| self.temporary.persist(&self.path).map_err(|failed| failed.error));
        match written {
            Ok(_) => Ok(self.path),
            Err(source) => Err(SaveError::Write {
                path: self.path,
                source,
            }),
        }
    }
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
        let target = SaveTarget::open(&path).unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "old",
            "opening leaves the file alone"
        );
        let record = sample::record();
        target.save(&record).unwrap();
        let read: RunRecord = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(read, record);
        assert_eq!(names(folder.path()), ["result.json"], "no temporary file is left");
    }

    #[test]
    fn a_target_that_is_not_used_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        drop(SaveTarget::open(&folder.path().join("result.json")).unwrap());
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn bad_paths_fail_before_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let error = SaveTarget::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("is no regular file"), "{error}");
        let error = SaveTarget::open(Path::new("/dev/null")).unwrap_err().to_string();
        assert!(error.contains("/dev/null"), "{error}");
        let error = SaveTarget::open(&folder.path().join("missing/result.json"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("missing") && error.contains("create the folder"),
            "{error}"
        );
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(SaveTarget::open(&file.join("result.json")).is_err());
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (link, path) = (folder.path().join("link"), folder.path().join("result.json"));
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        SaveTarget::open(&link).unwrap().save(&sample::record()).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::read_to_string(&path).unwrap().starts_with('{'));
    }
}
