//! `trust.toml`: whose signatures the user takes.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::files::{Links, read_regular, replace};
use super::key::PublicKey;
use super::manifest::read_layout;
use super::timestamp::Timestamp;
use crate::plugin::identity::is_id;

const SCHEMA: u32 = 1;
const TRUST_BYTES: u64 = 1 << 20;

/// Why the list of trusted keys cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It cannot be read or written.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It is not of this layout.
    #[error("{} cannot be read: {message}; put it right or remove it", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// Not a name for a key.
    #[error("{0:?} is no name for a key: give 2 to 63 of a-z, 0-9 and -, a letter first")]
    Name(String),
    /// The name stands for another key.
    #[error(
        "{name} is the name of another trusted key ({fingerprint}); remove it first, or give another name"
    )]
    NameTaken {
        /// The name.
        name: String,
        /// The other key.
        fingerprint: String,
    },
    /// The key is known under another name.
    #[error("this key is trusted already, as {0}")]
    KeyKnown(String),
    /// No such key.
    #[error("no trusted key is named {name} (there are: {})", if .known.is_empty() { "none".to_owned() } else { .known.join(", ") })]
    Unknown {
        /// The name.
        name: String,
        /// Names that there are.
        known: Vec<String>,
    },
}

/// A key whose signatures are taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustedKey {
    /// The user's name for it.
    pub name: String,
    /// The key.
    pub key: PublicKey,
    /// When it was added.
    pub added: Timestamp,
}

/// The keys whose signatures are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustStore {
    keys: Vec<TrustedKey>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    schema: u32,
    #[serde(default)]
    keys: Vec<TrustedKey>,
}

impl TrustStore {
    /// Reads the list; no file is an empty list.
    ///
    /// # Errors
    /// When there is a file that is no such list.
    pub fn read(path: &Path) -> Result<Self, TrustError> {
        let bytes = match read_regular(path, Links::Follow, TRUST_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(failed(path)(error)),
        };
        let unreadable = |message: String| TrustError::Unreadable {
            path: path.to_owned(),
            message,
        };
        let document: Document =
            read_layout(&bytes, SCHEMA, |document: &Document| document.schema).map_err(unreadable)?;
        Ok(Self { keys: document.keys })
    }

    /// Adds a key to the list in a file; adding it again under its name changes nothing.
    ///
    /// # Errors
    /// When name or key are taken, or the file cannot be changed.
    pub fn add(path: &Path, name: &str, key: PublicKey, now: Timestamp) -> Result<(), TrustError> {
        if !is_id(name) {
            return Err(TrustError::Name(name.chars().take(80).collect()));
        }
        change(path, |keys| {
            if let Some(known) = keys.iter().find(|known| known.key == key) {
                return match known.name == name {
                    true => Ok(()),
                    false => Err(TrustError::KeyKnown(known.name.clone())),
                };
            }
            if let Some(other) = keys.iter().find(|known| known.name == name) {
                let (name, fingerprint) = (name.to_owned(), other.key.fingerprint());
                return Err(TrustError::NameTaken { name, fingerprint });
            }
            keys.push(TrustedKey {
                name: name.to_owned(),
                key,
                added: now,
            });
            keys.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(())
        })
    }

    /// Removes a key from the list in a file.
    ///
    /// # Errors
    /// When there is no key of this name, or the file cannot be changed.
    pub fn remove(path: &Path, name: &str) -> Result<(), TrustError> {
        change(path, |keys| {
            let known = keys.iter().map(|known| known.name.clone()).collect();
            let before = keys.len();
            keys.retain(|known| known.name != name);
            if keys.len() == before {
                let name = name.chars().take(80).collect();
                return Err(TrustError::Unknown { name, known });
            }
            Ok(())
        })
    }

    /// The keys by name.
    pub fn keys(&self) -> &[TrustedKey] {
        &self.keys
    }

    /// The user's name for a key that is trusted.
    pub fn name_of(&self, key: &PublicKey) -> Option<&str> {
        let known = self.keys.iter().find(|known| known.key == *key);
        known.map(|known| known.name.as_str())
    }
}

/// Reads, changes and replaces the list; two changes at once follow one another.
fn change(
    path: &Path,
    change: impl FnOnce(&mut Vec<TrustedKey>) -> Result<(), TrustError>,
) -> Result<(), TrustError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed(folder))?;
    let lock = File::open(folder).map_err(failed(folder))?;
    flock(&lock, FlockOperation::LockExclusive).map_err(|error| failed(folder)(error.into()))?;
    let mut keys = TrustStore::read(path)?.keys;
    change(&mut keys)?;
    let document = Document { schema: SCHEMA, keys };
    let text = toml::to_string(&document).map_err(|error| TrustError::Unreadable {
        path: path.to_owned(),
        message: error.to_string(),
    })?;
    replace(path, text.as_bytes(), 0o600).map_err(failed(path))
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> TrustError {
    let path = path.to_owned();
    move |error| TrustError::Io { path, error }
}

#[cfg(test)]
mod tests {
    use super::super::key::SecretKey;
    use super::*;

    fn key(seed: u8) -> PublicKey {
        SecretKey::from_seed(&[seed; 32]).public()
    }

    #[test]
    fn keys_are_added_found_and_removed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("lm-bench/trust.toml");
        assert_eq!(TrustStore::read(&path).expect("no file"), TrustStore::default());
        let now = Timestamp::from_unix(1_796_000_000);
        TrustStore::add(&path, "zeta", key(1), now).expect("added");
        TrustStore::add(&path, "acme", key(2), now).expect("added");
        TrustStore::add(&path, "acme", key(2), now.after_days(1)).expect("nothing to do");
        let store = TrustStore::read(&path).expect("a list");
        let names: Vec<_> = store.keys().iter().map(|known| known.name.as_str()).collect();
        assert_eq!(names, ["acme", "zeta"]);
        assert_eq!(store.keys()[0].added, now);
        assert_eq!(store.name_of(&key(2)), Some("acme"));
        assert_eq!(store.name_of(&key(3)), None);

        TrustStore::remove(&path, "acme").expect("removed");
        let store = TrustStore::read(&path).expect("a list");
        assert_eq!(store.name_of(&key(2)), None);
        let error = TrustStore::remove(&path, "acme").expect_err("gone").to_string();
        assert_eq!(error, "no trusted key is named acme (there are: zeta)");
    }

    #[test]
    fn names_and_keys_stay_unambiguous() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("trust.toml");
        let add = |name, seed| TrustStore::add(&path, name, key(seed), Timestamp::from_unix(0));
        add("acme", 1).expect("added");
        assert!(matches!(add("acme", 2), Err(TrustError::NameTaken { .. })));
        assert!(matches!(add("other", 1), Err(TrustError::KeyKnown(name)) if name == "acme"));
        assert!(matches!(add("Not a name", 3), Err(TrustError::Name(_))));
    }

    #[test]
    fn a_list_that_cannot_be_read_is_never_taken_for_an_empty_one() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("trust.toml");
        for text in [
            "schema = 2\n",
            "keys = 1",
            "schema = 1\n[[keys]]\nname = \"a\"\n",
            "\u{0}",
        ] {
            fs::write(&path, text).expect("a written file");
            let error = TrustStore::read(&path).expect_err("refused").to_string();
            assert_eq!(error.lines().count(), 1, "{error}");
            let added = TrustStore::add(&path, "acme", key(1), Timestamp::from_unix(0));
            assert!(added.is_err());
            assert_eq!(fs::read_to_string(&path).expect("a file"), text, "left as it was");
        }
    }

    #[test]
    fn keys_that_are_added_at_once_are_all_there() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("trust.toml");
        std::thread::scope(|scope| {
            for seed in 1..9_u8 {
                let path = &path;
                scope.spawn(move || {
                    let name = format!("key-{seed}");
                    TrustStore::add(path, &name, key(seed), Timestamp::from_unix(0)).expect("added");
                });
            }
        });
        assert_eq!(TrustStore::read(&path).expect("a list").keys().len(), 8);
    }
}
