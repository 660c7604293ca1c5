//! A pack that a path names, read once and judged whole.

use std::path::Path;

use super::content::{Content, ContentError};
use super::error::PackError;
use super::identify::identify;
use super::manifest::PackManifest;
use super::source;
use super::timestamp::Timestamp;
use super::trust::TrustStore;
use super::verify::{PackState, Verdict, verify};
use crate::plugin::limits::Limits;

/// A pack as it was when it was read.
#[derive(Clone, Debug)]
pub struct Examined {
    /// What is said of it.
    pub verdict: Verdict,
    /// Its description, where that can be read.
    pub manifest: Option<PackManifest>,
    /// Its files, unless the archive or folder is none of a pack.
    content: Option<Content>,
}

/// Reads and judges a pack: the archive or folder, the signature, each file's digest, and that each plugin is the one
/// that `pack.toml` says.
///
/// # Errors
/// When the path cannot be read. A bad pack is no error but a verdict.
pub fn examine(path: &Path, trust: &TrustStore, now: Timestamp) -> Result<Examined, PackError> {
    let content = match source::read(path) {
        Ok(content) => content,
        Err(PackError::Content { error, .. }) if !matches!(error, ContentError::Unreadable(_)) => {
            return Ok(Examined {
                verdict: Verdict::broken(error),
                manifest: None,
                content: None,
            });
        }
        Err(error) => return Err(error),
    };
    let (mut verdict, manifest) = verify(&content, trust, now);
    if let Some(manifest) = &manifest
        && !matches!(verdict.state, PackState::Edited | PackState::Broken)
        && let Some(problem) = misfit(&content, manifest)
    {
        verdict = Verdict::broken(problem);
    }
    Ok(Examined {
        verdict,
        manifest,
        content: Some(content),
    })
}

/// What is wrong with the first plugin that is not the one that the description says.
fn misfit(content: &Content, manifest: &PackManifest) -> Option<String> {
    let limits = Limits::default();
    manifest.plugins.iter().find_map(|plugin| {
        let bytes = content.get(&plugin.file).unwrap_or_default();
        identify(plugin, bytes, &limits)
            .err()
            .map(|error| error.to_string())
    })
}

impl Examined {
    /// What can be installed.
    ///
    /// # Errors
    /// Why the pack is not accepted; `path` serves the message.
    pub fn accept(&self, path: &Path, allow_unsigned: bool) -> Result<(&Content, &PackManifest), PackError> {
        match (&self.content, &self.manifest) {
            (Some(content), Some(manifest)) if self.verdict.is_accepted(allow_unsigned) => {
                Ok((content, manifest))
            }
            _ => Err(PackError::Refused {
                path: path.to_owned(),
                verdict: Box::new(self.verdict.clone()),
            }),
        }
    }
}
