//! The files of a pack in memory, gathered under limits: what is checked is what is installed or used.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::name::{self, NameError};

/// How much a pack may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentLimits {
    /// Files.
    pub entries: usize,
    /// Bytes of all files.
    pub bytes: u64,
    /// Bytes that come out of the compressor per byte that went in, beyond the first [`ContentLimits::free`].
    pub ratio: u64,
    /// Bytes that may come out whatever went in.
    pub free: u64,
}

impl Default for ContentLimits {
    fn default() -> Self {
        Self {
            entries: 1_000,
            bytes: 256 << 20,
            ratio: 100,
            free: 1 << 20,
        }
    }
}

/// Why files cannot be the content of a pack.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// The name is not allowed.
    #[error("the name {name:?} {error}")]
    Name {
        /// The name, as far as it is text.
        name: String,
        /// Why.
        error: NameError,
    },
    /// Not a regular file.
    #[error("{name} is {kind}, a pack holds regular files only")]
    Kind {
        /// The entry.
        name: String,
        /// What it is.
        kind: &'static str,
    },
    /// The same name again.
    #[error("{0} is there twice")]
    Twice(String),
    /// A name that differs from another one by case alone, or is both file and folder.
    #[error("{name} and {other} cannot lie side by side on every system")]
    Collision {
        /// The later name.
        name: String,
        /// The earlier name.
        other: String,
    },
    /// Too many files.
    #[error("it has more than {0} files")]
    Entries(usize),
    /// Too many bytes.
    #[error("it unpacks to more than {0} bytes")]
    Bytes(u64),
    /// A small file that unpacks to a large one.
    #[error("it unpacks to more than {0} times its size, which no real plugin does")]
    Ratio(u64),
    /// The archive is damaged, truncated or no archive.
    #[error("it is no whole .tar.zst archive: {0}")]
    Archive(String),
    /// The system could not read it.
    #[error("{0}")]
    Unreadable(std::io::Error),
}

/// The files of a pack by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    files: BTreeMap<String, Vec<u8>>,
}

impl Content {
    /// Names and bytes in the order of the names' bytes.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }

    /// The bytes of a file.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name).map(Vec::as_slice)
    }

    /// Takes the signature out of the pack.
    pub(super) fn remove_signature(&mut self) {
        self.files.remove(name::SIGNATURE);
    }

    /// Puts the signature into the pack; one that was there is replaced.
    pub(super) fn set_signature(&mut self, bytes: Vec<u8>) {
        self.files.insert(name::SIGNATURE.to_owned(), bytes);
    }
}

/// Gathers a pack's files: a name is admitted before its bytes are read.
#[derive(Debug)]
pub(super) struct Gathering {
    limits: ContentLimits,
    /// Lower-case paths of files and folders, with the spelling they came in and whether they are files.
    places: BTreeMap<String, (String, bool)>,
    files: BTreeMap<String, Vec<u8>>,
    bytes: u64,
}

impl Gathering {
    pub(super) fn new(limits: ContentLimits) -> Self {
        Self {
            limits,
            places: BTreeMap::new(),
            files: BTreeMap::new(),
            bytes: 0,
        }
    }

    /// Admits a file by name and size, before anything is read.
    ///
    /// # Errors
    /// When the name is not allowed or taken, or a limit is passed.
    pub(super) fn admit(&mut self, raw: &[u8], size: u64) -> Result<String, ContentError> {
        let name = name::check(raw).map_err(|error| ContentError::Name {
            name: String::from_utf8_lossy(raw).into_owned(),
            error,
        })?;
        if self.files.len() >= self.limits.entries {
            return Err(ContentError::Entries(self.limits.entries));
        }
        let total = self.bytes.checked_add(size);
        if total.is_none_or(|total| total > self.limits.bytes) {
            return Err(ContentError::Bytes(self.limits.bytes));
        }
        let folders = name.match_indices('/').map(|(at, _)| &name[..at]);
        for folder in folders {
            self.place(folder, false)?;
        }
        self.place(name, true)?;
        self.bytes += size;
        self.files.insert(name.to_owned(), Vec::new());
        Ok(name.to_owned())
    }

    fn place(&mut self, name: &str, is_file: bool) -> Result<(), ContentError> {
        match self.places.entry(name.to_ascii_lowercase()) {
            Entry::Vacant(place) => {
                place.insert((name.to_owned(), is_file));
                Ok(())
            }
            Entry::Occupied(place) => {
                let (other, other_is_file) = place.get();
                match (is_file, *other_is_file) {
                    (false, false) if name == other => Ok(()),
                    (true, true) if name == other => Err(ContentError::Twice(name.to_owned())),
                    _ => Err(ContentError::Collision {
                        name: name.to_owned(),
                        other: other.clone(),
                    }),
                }
            }
        }
    }

    /// Gives an admitted file its bytes.
    pub(super) fn fill(&mut self, name: String, bytes: Vec<u8>) {
        self.files.insert(name, bytes);
    }

    pub(super) fn finish(self) -> Content {
        Content { files: self.files }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gather(names: &[&str]) -> Result<(), ContentError> {
        let mut gathering = Gathering::new(ContentLimits::default());
        names
            .iter()
            .try_for_each(|name| gathering.admit(name.as_bytes(), 1).map(drop))
    }

    #[test]
    fn names_that_cannot_lie_side_by_side_are_refused() {
        gather(&["a/x", "a/y", "b", "B2"]).expect("apart");
        assert!(matches!(gather(&["a", "a"]), Err(ContentError::Twice(name)) if name == "a"));
        for names in [
            ["a.wasm", "A.wasm"],
            ["a", "a/b"],
            ["a/b", "a"],
            ["a/b", "A/c"],
            ["A", "a/b"],
        ] {
            assert!(
                matches!(gather(&names), Err(ContentError::Collision { .. })),
                "{names:?}"
            );
        }
    }

    #[test]
    fn limits_hold_before_anything_is_read() {
        let limits = ContentLimits {
            entries: 2,
            bytes: 10,
            ..ContentLimits::default()
        };
        let mut gathering = Gathering::new(limits);
        gathering.admit(b"a", 6).expect("within the limits");
        assert!(matches!(gathering.admit(b"b", 5), Err(ContentError::Bytes(10))));
        assert!(matches!(
            gathering.admit(b"b", u64::MAX),
            Err(ContentError::Bytes(10))
        ));
        gathering.admit(b"b", 4).expect("just within the limits");
        assert!(matches!(gathering.admit(b"c", 0), Err(ContentError::Entries(2))));
    }
}
