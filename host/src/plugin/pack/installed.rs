//! Plugins of installed packs, as a run finds them by id. What is used is what was hashed and compared with the signed
//! `pack.toml`: each file is read once, and nothing looks at its path again.

use std::path::{Path, PathBuf};

use semver::Version;
use serde_json::{Map, Value};

use super::error::advice;
use super::files::{Links, read_regular};
use super::manifest::{MANIFEST_BYTES, NamedFile, PackManifest, PackedPlugin};
use super::name::{MANIFEST, SIGNATURE};
use super::signature::SIGNATURE_BYTES;
use super::store::{PackStore, Place, Receipt};
use super::timestamp::Timestamp;
use super::trust::TrustStore;
use super::verify::{Verdict, judge_signature};
use crate::clock::Clock;
use crate::plugin::file::{self, FileError, PluginFile};
use crate::plugin::limits::Limits;
use crate::plugin::session::Door;

/// Why a plugin of an installed pack is not used.
#[derive(Debug, thiserror::Error)]
pub enum UseError {
    /// The pack is not accepted any more.
    #[error("plugin {id} is in pack {pack} {version}, which is refused: {reason}")]
    Refused {
        /// The plugin.
        id: String,
        /// The pack.
        pack: String,
        /// Its version.
        version: Version,
        /// Why.
        reason: String,
    },
    /// The file cannot be read as a plugin.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The user's installed packs.
#[derive(Clone, Debug)]
pub struct InstalledPacks {
    store: PackStore,
    /// The list of trusted keys; without a home there is none.
    trust: Option<PathBuf>,
}

/// An installed pack as it is now.
#[derive(Clone, Debug)]
pub struct InstalledPack {
    /// Where it is.
    pub place: Place,
    /// Its description, where that can be read.
    pub manifest: Option<PackManifest>,
    /// What is said of its description and signature; its other files are compared when they are used.
    pub verdict: Verdict,
    /// What was noted when it was installed.
    pub receipt: Option<Receipt>,
}

impl InstalledPack {
    /// Whether its plugins may be used.
    pub fn is_usable(&self) -> bool {
        let allowed = self
            .receipt
            .as_ref()
            .is_some_and(|receipt| receipt.allow_unsigned);
        self.manifest.is_some() && self.verdict.is_accepted(allowed)
    }
}

/// A plugin in an installed pack.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pack: InstalledPack,
    entry: PackedPlugin,
    /// The pack's configuration for it.
    pub(crate) config: Map<String, Value>,
}

impl InstalledPacks {
    /// The packs in a folder, judged by the keys in a file.
    pub fn new(root: PathBuf, trust: Option<PathBuf>) -> Self {
        let store = PackStore::new(root);
        Self { store, trust }
    }

    /// The folder.
    pub(crate) fn root(&self) -> &Path {
        self.store.root()
    }

    /// All installed packs by name, newest version first.
    pub fn list(&self) -> Vec<InstalledPack> {
        let places = self.store.list();
        if places.is_empty() {
            return Vec::new();
        }
        let trust = match &self.trust {
            Some(path) => TrustStore::read(path).map_err(|error| error.to_string()),
            None => Ok(TrustStore::default()),
        };
        let now = Timestamp::from_unix(Clock::start().unix_ms() / 1_000);
        places
            .into_iter()
            .map(|place| judge(place, &trust, now))
            .collect()
    }

    /// Plugins of an id for this machine, the one that is taken first: the one whose digest is `pinned`, else that of the
    /// first pack by name, newest version, component before native library.
    pub(crate) fn candidates(&self, id: &str, pinned: Option<&str>) -> Vec<Candidate> {
        let mut found: Vec<Candidate> = self
            .all()
            .into_iter()
            .filter(|candidate| candidate.entry.id == id)
            .collect();
        found.sort_by_key(|candidate| Some(candidate.entry.sha256.as_str()) != pinned);
        found
    }

    /// All plugins for this machine in all packs.
    pub(crate) fn all(&self) -> Vec<Candidate> {
        let mut found = Vec::new();
        for pack in self.list() {
            let Some(manifest) = &pack.manifest else { continue };
            let mut entries: Vec<&PackedPlugin> = manifest
                .plugins
                .iter()
                .filter(|plugin| plugin.is_for_host())
                .collect();
            entries.sort_by_key(|plugin| plugin.door);
            found.extend(entries.into_iter().map(|entry| Candidate {
                entry: entry.clone(),
                config: manifest.config_of(&entry.id),
                pack: pack.clone(),
            }));
        }
        found
    }
}

/// Judges an installed pack by its description and signature, which are read once.
fn judge(place: Place, trust: &Result<TrustStore, String>, now: Timestamp) -> InstalledPack {
    let read = |name: &str, limit: usize| read_regular(&place.path.join(name), Links::Refuse, limit as u64);
    let broken = |place: Place, problem: &dyn ToString| InstalledPack {
        place,
        manifest: None,
        verdict: Verdict::broken(problem.to_string()),
        receipt: None,
    };
    let bytes = match read(MANIFEST, MANIFEST_BYTES) {
        Ok(bytes) => bytes,
        Err(error) => return broken(place, &format!("pack.toml: {error}")),
    };
    let signature = match read(SIGNATURE, SIGNATURE_BYTES) {
        Ok(signature) => Some(signature),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return broken(place, &format!("pack.sig: {error}")),
    };
    let manifest = match PackManifest::parse(&bytes) {
        Ok(manifest) => manifest,
        Err(error) => return broken(place, &error),
    };
    if manifest.name != place.name || manifest.version != place.version {
        let text = format!("its pack.toml is that of {} {}", manifest.name, manifest.version);
        return broken(place, &text);
    }
    let verdict = match trust {
        Ok(trust) => judge_signature(&bytes, signature.as_deref(), trust, now),
        Err(error) => Verdict::broken(error),
    };
    InstalledPack {
        receipt: Receipt::read(&place.path, &bytes),
        manifest: Some(manifest),
        verdict,
        place,
    }
}

impl Candidate {
    /// Its file.
    pub(crate) fn path(&self) -> PathBuf {
        self.pack.place.path.join(&self.entry.file)
    }

    /// Pack and version, as a lock file names them.
    pub(crate) fn source(&self) -> String {
        format!("pack {}", self.pack.place.label())
    }

    /// Reads the plugin, if its pack is accepted and the bytes are those that its description gives.
    ///
    /// # Errors
    /// Saying why the pack is refused.
    pub(crate) fn read(&self, limits: &Limits) -> Result<PluginFile, UseError> {
        if !self.pack.is_usable() {
            return Err(self.refused(format!("{}{}", self.pack.verdict, advice(&self.pack.verdict))));
        }
        let read = file::read(&self.path(), limits)?;
        let named = NamedFile {
            file: &self.entry.file,
            sha256: &self.entry.sha256,
            size: self.entry.size,
        };
        if let Some(problem) = named.differs(read.bytes.len() as u64, &read.sha256) {
            return Err(self.refused(format!("edited after installing: {problem}")));
        }
        if read.door != Door::from(self.entry.door) {
            return Err(self.refused(format!(
                "{} is no {} plugin",
                self.entry.file,
                Door::from(self.entry.door)
            )));
        }
        Ok(read)
    }

    fn refused(&self, reason: String) -> UseError {
        UseError::Refused {
            id: self.entry.id.clone(),
            pack: self.pack.place.name.clone(),
            version: self.pack.place.version.clone(),
            reason,
        }
    }
}

#[cfg(test)]
mod tests;
