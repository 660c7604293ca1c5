//! Whether a file in a pack is the plugin that `pack.toml` says. Executes nothing.

use std::path::Path;

use lm_bench_plugin::manifest::Manifest;

use super::manifest::{PackedDoor, PackedPlugin};
use crate::plugin::dylib::{self, ElfError};
use crate::plugin::file::{self, FileError};
use crate::plugin::limits::Limits;
use crate::plugin::session::Door;
use crate::plugin::wasm::{self, ComponentError};

/// Why a file is not the plugin that its pack says.
#[derive(Debug, thiserror::Error)]
pub enum MisfitError {
    /// No plugin file at all.
    #[error(transparent)]
    File(#[from] FileError),
    /// For another door.
    #[error("{file} is a {found} plugin, pack.toml says {}", Door::from(*.stated))]
    Door {
        /// The file.
        file: String,
        /// What pack.toml says.
        stated: PackedDoor,
        /// What it is.
        found: Door,
    },
    /// No component that can be a plugin.
    #[error("{file}: {error}")]
    Component {
        /// The file.
        file: String,
        /// Why.
        error: ComponentError,
    },
    /// No library that can be a plugin.
    #[error("{file}: {error}")]
    Library {
        /// The file.
        file: String,
        /// Why.
        error: ElfError,
    },
    /// For another machine than its target.
    #[error("{file} was built for {found}, pack.toml says {target}")]
    Target {
        /// The file.
        file: String,
        /// The machine in the file.
        found: String,
        /// What pack.toml says.
        target: String,
    },
    /// Another plugin.
    #[error("{file} holds plugin {found}, pack.toml says {stated}")]
    OtherId {
        /// The file.
        file: String,
        /// What pack.toml says.
        stated: String,
        /// What it is.
        found: String,
    },
    /// Other interfaces.
    #[error("{file} requires {}, pack.toml says {}", .found.join(", "), .stated.join(", "))]
    Requires {
        /// The file.
        file: String,
        /// What pack.toml says.
        stated: Vec<String>,
        /// What the plugin says.
        found: Vec<String>,
    },
}

/// Reads a plugin's own manifest and compares it with its entry in `pack.toml`. An entry without `requires` is not
/// compared in that.
///
/// # Errors
/// When the bytes are no plugin, or not this one.
pub(super) fn identify(entry: &PackedPlugin, bytes: &[u8], limits: &Limits) -> Result<Manifest, MisfitError> {
    let file = || entry.file.clone();
    let found = file::door(bytes, Path::new(&entry.file))?;
    if found != Door::from(entry.door) {
        return Err(MisfitError::Door {
            file: file(),
            stated: entry.door,
            found,
        });
    }
    let manifest = match entry.door {
        PackedDoor::Wasm => {
            let facts = wasm::inspect(bytes, limits);
            facts
                .map_err(|error| MisfitError::Component { file: file(), error })?
                .manifest
        }
        PackedDoor::Dylib => library(entry, bytes, limits)?,
    };
    if manifest.id != entry.id {
        return Err(MisfitError::OtherId {
            file: file(),
            stated: entry.id.clone(),
            found: manifest.id,
        });
    }
    if !entry.requires.is_empty() && sorted(&entry.requires) != sorted(&manifest.requires) {
        return Err(MisfitError::Requires {
            file: file(),
            stated: entry.requires.clone(),
            found: manifest.requires,
        });
    }
    Ok(manifest)
}

fn library(entry: &PackedPlugin, bytes: &[u8], limits: &Limits) -> Result<Manifest, MisfitError> {
    let failed = |error| MisfitError::Library {
        file: entry.file.clone(),
        error,
    };
    let machine = dylib::machine_of(bytes).map_err(failed)?;
    let target = entry.target.as_deref().unwrap_or_default();
    // Only names that are certain are compared: target names of other machines are many.
    let stated = match target.split('-').next() {
        Some("x86_64") => "x86-64",
        Some("aarch64") => "AArch64",
        _ => machine.as_str(),
    };
    if machine != stated {
        return Err(MisfitError::Target {
            file: entry.file.clone(),
            found: machine,
            target: target.to_owned(),
        });
    }
    Ok(dylib::inspect_foreign(bytes, limits).map_err(failed)?.manifest)
}

fn sorted(texts: &[String]) -> Vec<&String> {
    let mut texts: Vec<_> = texts.iter().collect();
    texts.sort();
    texts
}
