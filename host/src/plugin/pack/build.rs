//! Packs are built from a folder, and signed.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::content::{Content, ContentError, ContentLimits, Gathering};
use super::error::PackError;
use super::files::{Links, read_regular, replace};
use super::identify::identify;
use super::key::SecretKey;
use super::manifest::{MANIFEST_BYTES, PackManifest, PackedDocument};
use super::name::{MANIFEST, SIGNATURE, is_document};
use super::signature::PackSignature;
use super::timestamp::Timestamp;
use super::trust::TrustStore;
use super::verify::{PackState, verify};
use super::{archive, source};
use crate::plugin::file::hex;
use crate::plugin::limits::Limits;

/// Ending of a pack's archive.
pub const ENDING: &str = ".tar.zst";

/// A pack that was built.
#[derive(Clone, Debug)]
pub struct BuiltPack {
    /// Its description, complete.
    pub manifest: PackManifest,
    /// Size of the archive in bytes.
    pub size: u64,
    /// SHA-256 of the archive.
    pub sha256: String,
}

/// Builds a pack from a folder with a `pack.toml`: takes the plugins that it names and the documents beside it, checks that
/// each plugin is what the text says, and fills in what the text may leave out. Equal files give equal archives.
///
/// # Errors
/// When a file is missing or not what `pack.toml` says, the pack would not be accepted, or the archive cannot be written.
pub fn build(folder: &Path, out: &Path) -> Result<BuiltPack, PackError> {
    if !out.to_string_lossy().ends_with(ENDING) {
        return Err(source_error(
            out,
            format!("a pack's archive is named NAME{ENDING}"),
        ));
    }
    if folder.join(SIGNATURE).symlink_metadata().is_ok() {
        let text = format!(
            "it holds a {SIGNATURE}, which would not hold for a new build; remove it, build, then sign"
        );
        return Err(source_error(folder, text));
    }
    let draft = read_regular(&folder.join(MANIFEST), Links::Refuse, MANIFEST_BYTES as u64)
        .map_err(|error| source_error(&folder.join(MANIFEST), error))?;
    let mut manifest = PackManifest::parse_draft(&draft).map_err(PackError::manifest(folder))?;
    add_documents(folder, &mut manifest)?;
    let mut gathering = Gathering::new(ContentLimits::default());
    complete(folder, &mut manifest, &mut gathering)?;
    let text = manifest.to_toml().map_err(PackError::manifest(folder))?;
    // What is written is what a reader will accept.
    PackManifest::parse(text.as_bytes()).map_err(PackError::manifest(folder))?;
    let name = gathering
        .admit(MANIFEST.as_bytes(), text.len() as u64)
        .map_err(PackError::content(folder))?;
    gathering.fill(name, text.into_bytes());
    let bytes = pack(&gathering.finish(), folder)?;
    replace(out, &bytes, 0o666).map_err(PackError::write(out))?;
    Ok(BuiltPack {
        manifest,
        size: bytes.len() as u64,
        sha256: hex(&Sha256::digest(&bytes)),
    })
}

/// Adds the documents of the folder that the description does not name yet.
fn add_documents(folder: &Path, manifest: &mut PackManifest) -> Result<(), PackError> {
    let entries = fs::read_dir(folder).map_err(|error| source_error(folder, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| source_error(folder, error))?;
        let Ok(file) = entry.file_name().into_string() else {
            continue;
        };
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && is_document(&file) && manifest.documents.iter().all(|known| known.file != file) {
            manifest.documents.push(PackedDocument {
                file,
                sha256: String::new(),
                size: 0,
            });
        }
    }
    manifest.documents.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(())
}

/// Reads each named file once, checks it, and completes its entry.
fn complete(folder: &Path, manifest: &mut PackManifest, gathering: &mut Gathering) -> Result<(), PackError> {
    let limits = Limits::default();
    for plugin in &mut manifest.plugins {
        let bytes = read_named(folder, &plugin.file, gathering)?;
        let identity = identify(plugin, &bytes, &limits).map_err(|error| PackError::Misfit {
            path: folder.to_owned(),
            error: Box::new(error),
        })?;
        plugin.requires = identity.requires;
        stamp(
            folder,
            (&plugin.file, &bytes),
            (&mut plugin.sha256, &mut plugin.size),
        )?;
        gathering.fill(plugin.file.clone(), bytes);
    }
    for document in &mut manifest.documents {
        let bytes = read_named(folder, &document.file, gathering)?;
        stamp(
            folder,
            (&document.file, &bytes),
            (&mut document.sha256, &mut document.size),
        )?;
        gathering.fill(document.file.clone(), bytes);
    }
    Ok(())
}

fn read_named(folder: &Path, file: &str, gathering: &mut Gathering) -> Result<Vec<u8>, PackError> {
    let path = folder.join(file);
    let limit = ContentLimits::default().bytes;
    let bytes = read_regular(&path, Links::Refuse, limit).map_err(|error| source_error(&path, error))?;
    if bytes.is_empty() {
        return Err(source_error(&path, "it is empty"));
    }
    gathering
        .admit(file.as_bytes(), bytes.len() as u64)
        .map_err(PackError::content(folder))?;
    Ok(bytes)
}

/// Fills in digest and size, or compares them where they are given.
fn stamp(folder: &Path, file: (&str, &[u8]), stated: (&mut String, &mut u64)) -> Result<(), PackError> {
    let ((name, bytes), (stated_digest, stated_size)) = (file, stated);
    let (sha256, size) = (hex(&Sha256::digest(bytes)), bytes.len() as u64);
    let differs = !stated_digest.is_empty() && *stated_digest != sha256;
    if differs || *stated_size != 0 && *stated_size != size {
        let text = format!(
            "{name} has {size} bytes and sha256 {sha256}, pack.toml says otherwise; leave both out to have them filled in"
        );
        return Err(source_error(folder, text));
    }
    (*stated_digest, *stated_size) = (sha256, size);
    Ok(())
}

/// Compresses a pack, and reads it again as its users will.
fn pack(content: &Content, place: &Path) -> Result<Vec<u8>, PackError> {
    let bytes = archive::write(content, Vec::new()).map_err(PackError::write(place))?;
    let read =
        archive::read(Cursor::new(&bytes), ContentLimits::default()).map_err(PackError::content(place))?;
    if read == *content {
        Ok(bytes)
    } else {
        let error = ContentError::Archive("what was written reads otherwise".to_owned());
        Err(PackError::content(place)(error))
    }
}

/// Signs a pack, an archive or a folder, until a number of days from now. An earlier signature is replaced.
///
/// # Errors
/// When it is no whole pack, or cannot be written.
pub fn sign(path: &Path, secret: &SecretKey, now: Timestamp, days: u32) -> Result<PackSignature, PackError> {
    let mut content = source::read(path)?;
    // Whatever signature there is makes way, so it is not judged.
    content.remove_signature();
    let (verdict, _) = verify(&content, &TrustStore::default(), now);
    if verdict.state != PackState::Unsigned {
        return Err(PackError::Refused {
            path: path.to_owned(),
            verdict: Box::new(verdict),
        });
    }
    let manifest = content.get(MANIFEST).unwrap_or_default();
    let signature = PackSignature::sign(secret, manifest, now, now.after_days(days));
    let text = signature.to_toml()?.into_bytes();
    if path.is_dir() {
        let target = path.join(SIGNATURE);
        replace(&target, &text, 0o666).map_err(PackError::write(&target))?;
    } else {
        content.set_signature(text);
        // A link stays a link: the file that it names is replaced.
        let target = fs::canonicalize(path).map_err(PackError::write(path))?;
        let bytes = pack(&content, path)?;
        replace(&target, &bytes, 0o666).map_err(PackError::write(path))?;
    }
    Ok(signature)
}

fn source_error(path: &Path, problem: impl ToString) -> PackError {
    PackError::Source {
        path: PathBuf::from(path),
        problem: problem.to_string(),
    }
}

#[cfg(test)]
mod tests;
