//! `lm-bench.lock`: which bytes a plugin must have.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::{Links, read_regular, replace};
use super::manifest::{PackedDoor, is_sha256, read_layout};
use crate::plugin::identity::is_id;
use crate::plugin::session::Door;

/// Name of the lock file that is read without being named.
pub const LOCK_FILE: &str = "lm-bench.lock";
const SCHEMA: u32 = 1;
const LOCK_BYTES: u64 = 1 << 20;

/// Why a lock file cannot be read or written, or a plugin does not have the bytes that it pins.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// It cannot be read or written.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It is not of this layout.
    #[error("{} cannot be read: {message}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// Another plugin than the pinned one.
    #[error(
        "plugin {id} is pinned in {} to {} with sha256 {}, and what was found is {found}: get the pinned file ({}), or pin \
         this one with `lm-bench plugin lock`",
        .path.display(), Door::from(.pinned.door), .pinned.sha256, .pinned.source
    )]
    Differs {
        /// The lock file.
        path: PathBuf,
        /// The plugin.
        id: String,
        /// What is pinned.
        pinned: Box<LockEntry>,
        /// What was found.
        found: String,
    },
    /// A collector of this program.
    #[error("{0} is built in: it comes with this version of lm-bench and has no file to pin")]
    Builtin(String),
}

/// A pinned plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockEntry {
    /// The plugin.
    pub id: String,
    /// Its door.
    pub door: PackedDoor,
    /// Digest of its file.
    pub sha256: String,
    /// Where the file came from, for people.
    pub source: String,
}

/// The pinned plugins of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    path: PathBuf,
    entries: Vec<LockEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    schema: u32,
    #[serde(default)]
    plugins: Vec<LockEntry>,
}

impl Lock {
    /// Reads the lock file that was named, or the one in the working directory if there is one. Others pin nothing.
    ///
    /// # Errors
    /// When a file that was named is missing, or a file is no lock file.
    pub fn open(named: Option<&Path>) -> Result<Self, LockError> {
        match named {
            Some(path) => Self::read(path),
            None => Self::open_or_new(None),
        }
    }

    /// As [`Lock::open`], for writing: a file that was named need not exist.
    ///
    /// # Errors
    /// When a file is no lock file.
    pub fn open_or_new(named: Option<&Path>) -> Result<Self, LockError> {
        let path = named.unwrap_or(Path::new(LOCK_FILE));
        match Self::read(path) {
            Err(LockError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => Ok(Self {
                path: path.to_owned(),
                entries: Vec::new(),
            }),
            read => read,
        }
    }

    fn read(path: &Path) -> Result<Self, LockError> {
        let bytes = read_regular(path, Links::Follow, LOCK_BYTES).map_err(|error| LockError::Io {
            path: path.to_owned(),
            error,
        })?;
        let unreadable = |message: String| LockError::Unreadable {
            path: path.to_owned(),
            message,
        };
        let document: Document =
            read_layout(&bytes, SCHEMA, |document: &Document| document.schema).map_err(unreadable)?;
        let mut ids = std::collections::BTreeSet::new();
        for entry in &document.plugins {
            if !is_id(&entry.id) || !is_sha256(&entry.sha256) {
                return Err(unreadable("an entry has no valid id or sha256".to_owned()));
            }
            if !ids.insert(&entry.id) {
                return Err(unreadable(format!("{} is pinned twice", entry.id)));
            }
        }
        Ok(Self {
            path: path.to_owned(),
            entries: document.plugins,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is pinned for a plugin.
    pub fn pinned(&self, id: &str) -> Option<&LockEntry> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    /// Compares a plugin that was found with what is pinned for it; tells whether it is pinned. `sha256` is that of its
    /// file; built-in ones have none.
    ///
    /// # Errors
    /// When something else is pinned.
    pub fn check(&self, id: &str, door: Door, sha256: Option<&str>) -> Result<bool, LockError> {
        let Some(pinned) = self.pinned(id) else {
            return Ok(false);
        };
        if Door::from(pinned.door) == door && sha256 == Some(pinned.sha256.as_str()) {
            return Ok(true);
        }
        let found = sha256.map_or_else(
            || door.to_string(),
            |sha256| format!("{door} with sha256 {sha256}"),
        );
        Err(LockError::Differs {
            path: self.path.clone(),
            id: id.to_owned(),
            pinned: Box::new(pinned.clone()),
            found,
        })
    }

    /// Pins a plugin, in place of what was pinned for its id.
    pub fn pin(&mut self, entry: LockEntry) {
        self.entries.retain(|other| other.id != entry.id);
        self.entries.push(entry);
        self.entries.sort_by(|a, b| a.id.cmp(&b.id));
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self) -> Result<(), LockError> {
        let document = Document {
            schema: SCHEMA,
            plugins: self.entries.clone(),
        };
        let text = toml::to_string(&document).map_err(|error| LockError::Unreadable {
            path: self.path.clone(),
            message: error.to_string(),
        })?;
        let text = format!("# Written by `lm-bench plugin lock`; keep it under version control.\n{text}");
        replace(&self.path, text.as_bytes(), 0o666).map_err(|error| LockError::Io {
            path: self.path.clone(),
            error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, digit: char) -> LockEntry {
        LockEntry {
            id: id.to_owned(),
            door: PackedDoor::Wasm,
            sha256: digit.to_string().repeat(64),
            source: "pack acme@1.0.0".to_owned(),
        }
    }

    #[test]
    fn entries_are_written_read_and_replaced() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("project.lock");
        let mut lock = Lock::open_or_new(Some(&path)).expect("a new one");
        lock.pin(entry("zeta", '1'));
        lock.pin(entry("acme", '2'));
        lock.pin(entry("zeta", '3'));
        lock.save().expect("written");
        let read = Lock::open(Some(&path)).expect("a lock file");
        assert_eq!(read, lock);
        assert_eq!(read.pinned("zeta"), Some(&entry("zeta", '3')));
        assert!(read.pinned("none").is_none());
    }

    #[test]
    fn door_and_digest_must_both_be_the_pinned_ones() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut lock = Lock::open_or_new(Some(&folder.path().join("l"))).expect("a new one");
        lock.pin(entry("acme", 'a'));
        let digest = "a".repeat(64);
        assert!(lock.check("acme", Door::Wasm, Some(&digest)).expect("pinned"));
        assert!(
            !lock
                .check("other", Door::Wasm, Some(&digest))
                .expect("not pinned")
        );
        let other = lock
            .check("acme", Door::Wasm, Some(&"b".repeat(64)))
            .expect_err("refused");
        assert!(other.to_string().contains("pack acme@1.0.0"), "{other}");
        assert!(lock.check("acme", Door::Dylib, Some(&digest)).is_err());
        assert!(lock.check("acme", Door::Builtin, None).is_err());
    }

    #[test]
    fn a_named_file_must_exist_and_be_a_lock_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("l");
        assert!(matches!(Lock::open(Some(&path)), Err(LockError::Io { .. })));
        let twice = "[[plugins]]\nid = \"ab\"\ndoor = \"wasm\"\nsha256 = \"DIGEST\"\nsource = \"\"\n"
            .repeat(2)
            .replace("DIGEST", &"a".repeat(64));
        for text in [
            "schema = 2".to_owned(),
            "nonsense".to_owned(),
            "schema = 1\nextra = 1".to_owned(),
            format!("schema = 1\n{twice}"),
            format!("schema = 1\n{}", twice.replace("\"ab\"", "\"../b\"")),
        ] {
            std::fs::write(&path, text).expect("a written file");
            let error = Lock::open(Some(&path)).expect_err("refused").to_string();
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
