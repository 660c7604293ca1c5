//! Why something cannot be done with a pack.

use std::io;
use std::path::{Path, PathBuf};

use super::content::ContentError;
use super::identify::MisfitError;
use super::key::KeyError;
use super::manifest::PackManifestError;
use super::signature::SignatureError;
use super::trust::TrustError;
use super::verify::Verdict;

/// Why something cannot be done with a pack.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The files are no content of a pack.
    #[error("{}: {error}", .path.display())]
    Content {
        /// The pack.
        path: PathBuf,
        /// Why.
        error: ContentError,
    },
    /// The description is not accepted.
    #[error("{}: {error}", .path.display())]
    Manifest {
        /// The pack.
        path: PathBuf,
        /// Why.
        error: PackManifestError,
    },
    /// A file in the pack is not the plugin that its description says.
    #[error("{}: {error}", .path.display())]
    Misfit {
        /// The pack.
        path: PathBuf,
        /// Why.
        error: Box<MisfitError>,
    },
    /// A key cannot be used.
    #[error("{}: {error}", .path.display())]
    Key {
        /// The key's file.
        path: PathBuf,
        /// Why.
        error: KeyError,
    },
    /// A signature cannot be made.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// The list of trusted keys is of no use.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The pack is not accepted.
    #[error("{}: {verdict}{}", .path.display(), advice(.verdict))]
    Refused {
        /// The pack.
        path: PathBuf,
        /// What is said of it.
        verdict: Box<Verdict>,
    },
    /// A file in the source does not match what its description says.
    #[error("{}: {problem}", .path.display())]
    Source {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// Another pack of this name and version is installed.
    #[error(
        "{name} {version} is installed with other content; a version never changes: give the new content a new version, \
         or run `lm-bench pack remove {name}@{version}` first"
    )]
    OtherContent {
        /// The pack.
        name: String,
        /// Its version.
        version: String,
    },
    /// The installed copy is not what was installed.
    #[error(
        "the installed {name} {version} is damaged ({problem}): run `lm-bench pack remove {name}@{version}`, then install \
         it again"
    )]
    Damaged {
        /// The pack.
        name: String,
        /// Its version.
        version: String,
        /// What is wrong.
        problem: String,
    },
    /// No such pack.
    #[error("no pack {target} is installed (installed are: {})", if .installed.is_empty() { "none".to_owned() } else { .installed.join(", ") })]
    NotInstalled {
        /// What was asked for.
        target: String,
        /// What there is.
        installed: Vec<String>,
    },
    /// Several versions.
    #[error("several versions of {name} are installed ({}): say which, as {name}@VERSION", .versions.join(", "))]
    Several {
        /// The pack.
        name: String,
        /// Its versions.
        versions: Vec<String>,
    },
    /// The user has no home folder.
    #[error("there is no folder for {0}: set HOME or {1}")]
    NoHome(&'static str, &'static str),
    /// The system could not write.
    #[error("{}: {error}", .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl PackError {
    /// Whether the system failed, and not what was asked of it.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Write { .. })
    }

    pub(super) fn content(path: &Path) -> impl FnOnce(ContentError) -> Self {
        let path = path.to_owned();
        move |error| Self::Content { path, error }
    }

    pub(super) fn manifest(path: &Path) -> impl FnOnce(PackManifestError) -> Self {
        let path = path.to_owned();
        move |error| Self::Manifest { path, error }
    }

    pub(super) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Write { path, error }
    }
}

/// What to do about a verdict, to be put behind it.
pub(super) fn advice(verdict: &Verdict) -> &'static str {
    use super::verify::PackState as State;
    match verdict.state {
        State::Unsigned => "; install it with --allow-unsigned if you know where it comes from",
        State::UnknownKey => {
            "; if that is its vendor's fingerprint, trust the key with `lm-bench pack trust add NAME KEY`, or install the \
             pack with --allow-unsigned"
        }
        State::Expired => "; get a newer version or a renewed signature from its vendor",
        State::Edited | State::Broken => "; get it anew from its vendor",
        State::NotYetValid | State::Trusted => "",
    }
}
