//! Installed packs: `NAME/VERSION/` below one folder. A version appears and disappears in one step.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use semver::Version;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::content::{Content, ContentLimits};
use super::error::PackError;
use super::files::{Links, read_regular, replace};
use super::folder::{self, RECEIPT};
use super::manifest::PackManifest;
use super::name::{MANIFEST, SIGNATURE};
use super::timestamp::Timestamp;
use crate::plugin::file::hex;
use crate::plugin::identity::is_id;

const SCHEMA: u32 = 1;
const RECEIPT_BYTES: u64 = 4_096;
/// Start of the names of folders that are being filled or emptied. No pack has such a name.
const UNFINISHED: &str = ".unfinished-";

/// What an installation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Installed {
    /// The pack is new here.
    New,
    /// The same pack was here already.
    Unchanged,
    /// The same files were here already; the signature or the permission was renewed.
    Renewed,
}

/// What is noted beside an installed pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    schema: u32,
    /// When it was installed.
    pub installed: Timestamp,
    /// Digest of its `pack.toml` then.
    pack_toml_sha256: String,
    /// Whether the user vouched for it (`--allow-unsigned`).
    pub allow_unsigned: bool,
}

impl Receipt {
    /// The receipt of an installation.
    pub fn new(content: &Content, now: Timestamp, allow_unsigned: bool) -> Self {
        Self {
            schema: SCHEMA,
            installed: now,
            pack_toml_sha256: digest(content.get(MANIFEST).unwrap_or_default()),
            allow_unsigned,
        }
    }

    /// Reads the receipt in an installed pack's folder, if it is one for this `pack.toml`.
    pub fn read(folder: &Path, manifest: &[u8]) -> Option<Self> {
        let bytes = read_regular(&folder.join(RECEIPT), Links::Refuse, RECEIPT_BYTES).ok()?;
        let receipt: Self = toml::from_str(std::str::from_utf8(&bytes).ok()?).ok()?;
        (receipt.schema == SCHEMA && receipt.pack_toml_sha256 == digest(manifest)).then_some(receipt)
    }
}

/// Where an installed pack is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the pack.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// Its folder.
    pub path: PathBuf,
}

impl Place {
    /// `NAME@VERSION`.
    pub fn label(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

/// The folder of installed packs.
#[derive(Clone, Debug)]
pub struct PackStore {
    root: PathBuf,
}

impl PackStore {
    /// The packs in a folder, which need not exist yet.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Installs a pack whose content was verified. Installations and removals at the same time follow one another.
    ///
    /// # Errors
    /// When other content is installed under this version, or the folder cannot be written to; then nothing has changed.
    pub fn install(
        &self,
        content: &Content,
        manifest: &PackManifest,
        receipt: &Receipt,
    ) -> Result<Installed, PackError> {
        let _lock = self.lock()?;
        self.sweep();
        let version = manifest.version.to_string();
        let target = self.root.join(&manifest.name).join(&version);
        if target.symlink_metadata().is_ok() {
            return renew(&target, content, (manifest, receipt));
        }
        let filled = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempdir_in(&self.root)
            .map_err(PackError::write(&self.root))?;
        fill(filled.path(), content, receipt).map_err(PackError::write(filled.path()))?;
        let parent = self.root.join(&manifest.name);
        fs::create_dir_all(&parent).map_err(PackError::write(&parent))?;
        // The lock is held and nothing was there: only a folder with files in it, and then this fails, could be in the way.
        fs::rename(filled.path(), &target).map_err(PackError::write(&target))?;
        // It has another name now: there is nothing to remove.
        let _ = filled.keep();
        sync(&parent).map_err(PackError::write(&parent))?;
        Ok(Installed::New)
    }

    /// Removes an installed pack: `NAME`, or `NAME@VERSION` where there are several.
    ///
    /// # Errors
    /// When there is no such pack, several versions fit, or the folder cannot be written to.
    pub fn remove(&self, target: &str) -> Result<Place, PackError> {
        let (name, version) = match target.split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (target, None),
        };
        if self.list().is_empty() {
            return Err(not_installed(target, &[]));
        }
        let _lock = self.lock()?;
        let places = self.list();
        let fits = |place: &&Place| {
            place.name == name && version.is_none_or(|version| place.version.to_string() == version)
        };
        let found: Vec<&Place> = places.iter().filter(fits).collect();
        let place = match found.as_slice() {
            [] => return Err(not_installed(target, &places)),
            [only] => (*only).clone(),
            several => {
                return Err(PackError::Several {
                    name: name.to_owned(),
                    versions: several.iter().map(|place| place.version.to_string()).collect(),
                });
            }
        };
        // From the rename on the pack is gone, whatever becomes of its files.
        let emptied = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempdir_in(&self.root)
            .map_err(PackError::write(&self.root))?;
        fs::rename(&place.path, emptied.path().join("pack")).map_err(PackError::write(&place.path))?;
        // Fails as long as there is another version.
        let _ = fs::remove_dir(self.root.join(&place.name));
        sync(&self.root).map_err(PackError::write(&self.root))?;
        Ok(place)
    }

    /// The installed packs by name, newest version first.
    pub fn list(&self) -> Vec<Place> {
        let mut places = Vec::new();
        for name in names(&self.root).into_iter().filter(|name| is_id(name)) {
            let folder = self.root.join(&name);
            let versions = names(&folder).into_iter();
            places.extend(versions.filter_map(|version| {
                Some(Place {
                    name: name.clone(),
                    path: folder.join(&version),
                    version: Version::parse(&version).ok()?,
                })
            }));
        }
        places.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| b.version.cmp(&a.version)));
        places
    }

    /// Waits until nobody else changes the folder.
    fn lock(&self) -> Result<File, PackError> {
        fs::create_dir_all(&self.root).map_err(PackError::write(&self.root))?;
        let folder = File::open(&self.root).map_err(PackError::write(&self.root))?;
        flock(&folder, FlockOperation::LockExclusive)
            .map_err(|error| PackError::write(&self.root)(error.into()))?;
        Ok(folder)
    }

    /// Removes what an installation or a removal that was killed has left; the lock is held.
    fn sweep(&self) {
        for name in names(&self.root) {
            if name.starts_with(UNFINISHED) {
                let _ = fs::remove_dir_all(self.root.join(name));
            }
        }
    }
}

fn not_installed(target: &str, places: &[Place]) -> PackError {
    PackError::NotInstalled {
        target: target.chars().take(80).collect(),
        installed: places.iter().map(Place::label).collect(),
    }
}

/// Names in a folder; none if it cannot be read.
fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect()
}

/// Compares a pack with the one that is installed under its version, and renews signature and receipt where they differ.
fn renew(
    target: &Path,
    content: &Content,
    (manifest, receipt): (&PackManifest, &Receipt),
) -> Result<Installed, PackError> {
    let (name, version) = (manifest.name.clone(), manifest.version.to_string());
    let installed = match folder::read(target, ContentLimits::default()) {
        Ok(installed) => installed,
        Err(error) => {
            let problem = error.to_string();
            return Err(PackError::Damaged {
                name,
                version,
                problem,
            });
        }
    };
    let without_signature = |content: &Content| {
        let mut content = content.clone();
        content.remove_signature();
        content
    };
    if without_signature(&installed) != without_signature(content) {
        let same_text = installed.get(MANIFEST) == content.get(MANIFEST);
        if same_text {
            let problem = "its files are not the ones of its pack.toml".to_owned();
            return Err(PackError::Damaged {
                name,
                version,
                problem,
            });
        }
        return Err(PackError::OtherContent { name, version });
    }
    let known = Receipt::read(target, content.get(MANIFEST).unwrap_or_default());
    let same_permission = known.is_some_and(|known| known.allow_unsigned == receipt.allow_unsigned);
    if installed == *content && same_permission {
        return Ok(Installed::Unchanged);
    }
    let write = |file: &str, bytes: &[u8]| {
        let path = target.join(file);
        replace(&path, bytes, 0o644).map_err(PackError::write(&path))
    };
    match content.get(SIGNATURE) {
        Some(signature) => write(SIGNATURE, signature)?,
        None if installed.get(SIGNATURE).is_none() => {}
        // A pack does not lose its signature because a copy without it comes by.
        None => return Ok(Installed::Unchanged),
    }
    write(
        RECEIPT,
        receipt_text(receipt)
            .map_err(PackError::write(target))?
            .as_bytes(),
    )?;
    Ok(Installed::Renewed)
}

fn fill(folder: &Path, content: &Content, receipt: &Receipt) -> io::Result<()> {
    for (name, bytes) in content.files() {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent)?;
        write_new(&path, bytes)?;
        sync(parent)?;
    }
    write_new(&folder.join(RECEIPT), receipt_text(receipt)?.as_bytes())?;
    sync(folder)
}

fn receipt_text(receipt: &Receipt) -> io::Result<String> {
    toml::to_string(receipt).map_err(io::Error::other)
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests;
