//! What can be said of a pack: exactly one state.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::content::Content;
use super::manifest::{PackManifest, PackManifestError};
use super::name::{MANIFEST, SIGNATURE};
use super::signature::PackSignature;
use super::timestamp::Timestamp;
use super::trust::TrustStore;
use crate::plugin::file::hex;

/// Clocks differ: a signature may be made so many seconds in the future.
const CLOCK_SKEW: u64 = 300;

/// The one thing that is said of a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PackState {
    /// Signed by a key that the user trusts, and the signature holds now.
    Trusted,
    /// Signed, by a key that the user does not know.
    UnknownKey,
    /// Not signed.
    Unsigned,
    /// Signed by a key that the user trusts, but not any more.
    Expired,
    /// Signed by a key that the user trusts, but not yet.
    NotYetValid,
    /// Signed, and changed afterwards.
    Edited,
    /// Not a whole pack.
    Broken,
}

/// Who signed a pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Signer {
    /// Fingerprint of the key.
    pub fingerprint: String,
    /// The user's name for it, where it is trusted.
    pub name: Option<String>,
    /// When the signature was made.
    pub created: Timestamp,
    /// When it ends.
    pub expires: Timestamp,
}

/// What is said of a pack, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The state.
    pub state: PackState,
    /// Who signed it; a signature that does not hold has no signer.
    pub signer: Option<Signer>,
    /// What is wrong with a pack that was edited or is broken.
    pub problem: Option<String>,
}

impl Verdict {
    /// The verdict on what is no whole pack.
    pub fn broken(problem: impl ToString) -> Self {
        Self::of(PackState::Broken, problem)
    }

    fn of(state: PackState, problem: impl ToString) -> Self {
        Self {
            state,
            signer: None,
            problem: Some(problem.to_string()),
        }
    }

    /// Whether the pack may be installed and used. With `allow_unsigned` the user vouches for a pack that nobody known
    /// vouches for; nothing makes up for a signature that does not hold.
    pub fn is_accepted(&self, allow_unsigned: bool) -> bool {
        match self.state {
            PackState::Trusted => true,
            PackState::Unsigned | PackState::UnknownKey => allow_unsigned,
            PackState::Expired | PackState::NotYetValid | PackState::Edited | PackState::Broken => false,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = self.problem.as_deref().unwrap_or("it is damaged");
        let Some(signer) = &self.signer else {
            return match self.state {
                PackState::Edited => write!(f, "edited after signing: {problem}"),
                PackState::Broken => write!(f, "broken: {problem}"),
                _ => f.write_str("not signed"),
            };
        };
        let fingerprint = &signer.fingerprint;
        let Some(name) = &signer.name else {
            return write!(f, "signed by an unknown key {fingerprint}");
        };
        write!(f, "signed by the trusted key {name} ({fingerprint})")?;
        match self.state {
            PackState::Expired => write!(f, ", but the signature expired at {}", signer.expires),
            PackState::NotYetValid => write!(
                f,
                ", but the signature begins at {}: is this machine's time right?",
                signer.created
            ),
            _ => write!(f, ", valid until {}", signer.expires),
        }
    }
}

/// What the signature alone says about the bytes of a `pack.toml`.
pub(super) fn judge_signature(
    manifest: &[u8],
    signature: Option<&[u8]>,
    trust: &TrustStore,
    now: Timestamp,
) -> Verdict {
    let Some(bytes) = signature else {
        return Verdict {
            state: PackState::Unsigned,
            signer: None,
            problem: None,
        };
    };
    let signature = match PackSignature::parse(bytes) {
        Ok(signature) => signature,
        Err(error) => return Verdict::broken(error),
    };
    if !signature.matches(manifest) {
        return Verdict::of(PackState::Edited, "pack.toml and pack.sig do not belong together");
    }
    let name = trust.name_of(&signature.key).map(str::to_owned);
    let state = if name.is_none() {
        PackState::UnknownKey
    } else if signature.expires <= now {
        PackState::Expired
    } else if signature.created.unix() > now.unix().saturating_add(CLOCK_SKEW) {
        PackState::NotYetValid
    } else {
        PackState::Trusted
    };
    Verdict {
        state,
        signer: Some(Signer {
            fingerprint: signature.key.fingerprint(),
            name,
            created: signature.created,
            expires: signature.expires,
        }),
        problem: None,
    }
}

/// Judges a whole pack: its description, its signature, and each of its files. The description is given where it can be
/// read, whatever the verdict.
pub fn verify(content: &Content, trust: &TrustStore, now: Timestamp) -> (Verdict, Option<PackManifest>) {
    let Some(bytes) = content.get(MANIFEST) else {
        return (Verdict::broken(PackManifestError::Missing), None);
    };
    let verdict = judge_signature(bytes, content.get(SIGNATURE), trust, now);
    let manifest = match PackManifest::parse(bytes) {
        Ok(manifest) => manifest,
        // That it was edited says more than what the edit broke.
        Err(_) if verdict.state == PackState::Edited => return (verdict, None),
        Err(error) => return (Verdict::broken(error), None),
    };
    if verdict.state == PackState::Edited {
        return (verdict, Some(manifest));
    }
    let verdict = match (unnamed(content, &manifest), different(content, &manifest)) {
        (Some(problem), _) => Verdict::broken(problem),
        (None, Some(problem)) if verdict.signer.is_some() => Verdict::of(PackState::Edited, problem),
        (None, Some(problem)) => Verdict::broken(problem),
        (None, None) => verdict,
    };
    (verdict, Some(manifest))
}

/// A file that the description does not name.
fn unnamed(content: &Content, manifest: &PackManifest) -> Option<String> {
    let named: BTreeSet<&str> = manifest.files().map(|file| file.file).collect();
    let mut names = content.files().map(|(name, _)| name);
    let stray = names.find(|name| ![MANIFEST, SIGNATURE].contains(name) && !named.contains(name))?;
    Some(format!("{stray} is in the pack, but not in its pack.toml"))
}

/// The first named file that is missing or another one.
fn different(content: &Content, manifest: &PackManifest) -> Option<String> {
    manifest.files().find_map(|named| match content.get(named.file) {
        None => Some(format!("{} is missing", named.file)),
        Some(bytes) => named.differs(bytes.len() as u64, &hex(&Sha256::digest(bytes))),
    })
}

#[cfg(test)]
mod tests;
