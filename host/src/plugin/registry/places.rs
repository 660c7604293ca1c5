//! Files that may hold a plugin, in the order in which they are searched.

use std::path::PathBuf;

use super::{Code, Registry};
use crate::plugin::error::PluginError;
use crate::plugin::pack::{Candidate, InstalledPacks, LockEntry, LockError, PackedDoor};
use crate::plugin::search::Folder;

/// Where a plugin may be.
#[derive(Debug)]
pub(super) enum Place {
    /// A file in a folder of plugins.
    File(PathBuf),
    /// A file in an installed pack.
    Pack(Box<Candidate>),
}

impl Place {
    pub(super) fn path(&self) -> PathBuf {
        match self {
            Self::File(path) => path.clone(),
            Self::Pack(candidate) => candidate.path(),
        }
    }
}

impl Registry {
    /// Where a plugin of an id may be, in the order of the search.
    pub(super) fn places(&self, id: &str, pinned: Option<&str>) -> Vec<Place> {
        let packed = self.packs.iter().flat_map(|packs| packs.candidates(id, pinned));
        self.in_order(|folder| folder.candidates(id), packed.collect())
    }

    /// All plugin files, in the order of the search.
    pub(super) fn all_places(&self) -> Vec<Place> {
        let packed = self.packs.iter().flat_map(InstalledPacks::all);
        self.in_order(Folder::files, packed.collect())
    }

    fn in_order(&self, files: impl Fn(&Folder) -> Vec<PathBuf>, packed: Vec<Candidate>) -> Vec<Place> {
        let last = self.folders.len().saturating_sub(1);
        let (own, system) = self.folders.split_at(last);
        let own = own.iter().flat_map(&files).map(Place::File);
        let system = system.iter().flat_map(&files).map(Place::File);
        own.chain(packed.into_iter().map(Box::new).map(Place::Pack))
            .chain(system)
            .collect()
    }

    /// The folders that are searched for ids.
    pub(super) fn searched(&self) -> Vec<PathBuf> {
        let mut searched: Vec<PathBuf> = self.folders.iter().map(|folder| folder.path.clone()).collect();
        let packs = self.packs.iter().map(|packs| packs.root().to_owned());
        let last = searched.len().saturating_sub(1);
        searched.splice(last..last, packs);
        searched
    }

    /// What a lock file says of a plugin as it is found now.
    ///
    /// # Errors
    /// When there is no such plugin, its file cannot be read as one, or it is built in.
    pub fn lock_entry(&self, target: &str) -> Result<LockEntry, PluginError> {
        let found = self.find(target)?;
        found.check()?;
        let (door, file) = match &found.code {
            Code::Builtin(_) => return Err(LockError::Builtin(found.manifest.id).into()),
            Code::Dylib(file, _) => (PackedDoor::Dylib, file),
            Code::Wasm(file, _) => (PackedDoor::Wasm, file),
        };
        let source = match &found.pack {
            Some(candidate) => candidate.source(),
            None => format!("file {}", file.path.display()),
        };
        Ok(LockEntry {
            sha256: file.sha256.clone(),
            id: found.manifest.id,
            door,
            source,
        })
    }
}
