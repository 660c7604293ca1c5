//! Packs: plugins that a vendor ships together, described, hashed and signed.
//!
//! ```text
//! folder | .tar.zst -> Content (limits) -> verify (signature, digests) -> PackStore -> Candidate -> a run
//! ```
//!
//! A pack is read whole into memory under limits before anything is said of it, and what was verified is what is
//! written, or used: no path is looked at twice.

mod archive;
mod build;
mod content;
mod error;
mod examine;
mod files;
mod folder;
mod home;
mod identify;
mod installed;
mod key;
mod lock;
mod manifest;
mod name;
mod signature;
mod source;
mod store;
mod timestamp;
mod trust;
mod verify;

pub use build::{BuiltPack, ENDING, build, sign};
pub use content::{Content, ContentError, ContentLimits};
pub use error::PackError;
pub use examine::{Examined, examine};
pub(crate) use home::{packs_folder, trust_file};
pub use home::{user_store, user_trust};
pub use identify::MisfitError;
pub(crate) use installed::Candidate;
pub use installed::{InstalledPack, InstalledPacks, UseError};
pub use key::{KeyError, PublicKey, SecretKey};
pub use lock::{LOCK_FILE, Lock, LockEntry, LockError};
pub use manifest::{PackManifest, PackManifestError, PackedDocument, PackedDoor, PackedPlugin, host_target};
pub use name::NameError;
pub use signature::{PackSignature, SignatureError};
pub use store::{Installed, PackStore, Place, Receipt};
pub use timestamp::{Timestamp, TimestampError};
pub use trust::{TrustError, TrustStore, TrustedKey};
pub use verify::{PackState, Signer, Verdict, verify};

#[cfg(test)]
mod testing;
