//! `pack.toml`: what a pack is and what it holds. The signature covers its exact bytes, and it holds the digest of each
//! file, so that the signature covers the pack.

use std::collections::BTreeMap;

use semver::Version;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::plugin::HOST_VERSION;
use crate::plugin::session::Door;

/// Version of the layout.
pub(super) const SCHEMA: u32 = 1;
/// Largest `pack.toml`, in bytes.
pub(super) const MANIFEST_BYTES: usize = 1 << 20;

/// Why a `pack.toml` is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum PackManifestError {
    /// There is none.
    #[error("it holds no pack.toml")]
    Missing,
    /// It is no TOML of this layout.
    #[error("its pack.toml cannot be read: {0}")]
    Unreadable(String),
    /// It was written for a later version.
    #[error(
        "its pack.toml has layout {0}, this lm-bench ({HOST_VERSION}) reads layout {SCHEMA}: update lm-bench, or use an \
         older version of the pack"
    )]
    Schema(u64),
    /// A value is not allowed.
    #[error("its pack.toml is not valid: {0}")]
    Invalid(String),
    /// Digests or sizes are missing.
    #[error("its pack.toml gives no sha256 or size for {0}: `lm-bench pack build` fills them in")]
    Incomplete(String),
}

/// A pack's description. In a draft, from which a pack is built, digests, sizes and `requires` may be missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackManifest {
    /// Version of the layout.
    pub schema: u32,
    /// Name, of the form of a plugin's id.
    pub name: String,
    /// Version; builds of one version are not told apart.
    pub version: Version,
    /// SPDX licence expression.
    pub license: String,
    /// What it is for, one line.
    pub about: String,
    /// Its plugins: one entry for each file.
    pub plugins: Vec<PackedPlugin>,
    /// Texts for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<PackedDocument>,
    /// Configuration by plugin id, over which the user's own is laid.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, toml::Table>,
}

/// A plugin's file in a pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedPlugin {
    /// The plugin's id.
    pub id: String,
    /// `wasm` or `dylib`.
    pub door: PackedDoor,
    /// Machine and system of a native library, as Rust names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The file, below the pack's folder.
    pub file: String,
    /// SHA-256 of the file, 64 lower-case hexadecimal digits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// Its size in bytes.
    #[serde(default)]
    pub size: u64,
    /// Interfaces that the plugin needs from lm-bench.
    #[serde(default)]
    pub requires: Vec<String>,
}

/// A text in a pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedDocument {
    /// The file.
    pub file: String,
    /// SHA-256 of the file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// Its size in bytes.
    #[serde(default)]
    pub size: u64,
}

/// Doors that a file in a pack can be for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PackedDoor {
    /// A component; before native libraries, because it is taken before them.
    Wasm,
    /// A native library.
    Dylib,
}

impl From<PackedDoor> for Door {
    fn from(door: PackedDoor) -> Self {
        match door {
            PackedDoor::Wasm => Self::Wasm,
            PackedDoor::Dylib => Self::Dylib,
        }
    }
}

/// A file that `pack.toml` names, with its digest and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedFile<'a> {
    /// Its name in the pack.
    pub file: &'a str,
    /// Its digest.
    pub sha256: &'a str,
    /// Its size in bytes.
    pub size: u64,
}

impl NamedFile<'_> {
    /// Says so if a file of this size and digest is not the one that is named.
    pub fn differs(&self, size: u64, sha256: &str) -> Option<String> {
        let same = size == self.size && sha256 == self.sha256;
        (!same).then(|| {
            format!(
                "{} is not the file whose sha256 and size pack.toml gives",
                self.file
            )
        })
    }
}

impl PackManifest {
    /// Reads the description of a finished pack.
    ///
    /// # Errors
    /// When it is not of this layout, a value is not allowed, or a digest or size is missing.
    pub fn parse(bytes: &[u8]) -> Result<Self, PackManifestError> {
        let manifest = Self::parse_draft(bytes)?;
        let incomplete = manifest
            .files()
            .find(|file| file.sha256.is_empty() || file.size == 0);
        if let Some(file) = incomplete {
            return Err(PackManifestError::Incomplete(file.file.to_owned()));
        }
        Ok(manifest)
    }

    /// Reads a description whose digests and sizes may be missing.
    ///
    /// # Errors
    /// As [`PackManifest::parse`], missing digests and sizes apart.
    pub fn parse_draft(bytes: &[u8]) -> Result<Self, PackManifestError> {
        #[derive(Deserialize)]
        struct Layout {
            schema: u64,
        }
        let unreadable = |text: &dyn ToString| PackManifestError::Unreadable(one_line(&text.to_string()));
        if bytes.len() > MANIFEST_BYTES {
            return Err(unreadable(&format!("it has more than {MANIFEST_BYTES} bytes")));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| unreadable(&error))?;
        // The layout comes first: a later one may have keys that this one does not know.
        let layout: Layout = toml::from_str(text).map_err(|error| unreadable(&error))?;
        if layout.schema != u64::from(SCHEMA) {
            return Err(PackManifestError::Schema(layout.schema));
        }
        let manifest: Self = toml::from_str(text).map_err(|error| unreadable(&error))?;
        manifest.check().map_err(PackManifestError::Invalid)?;
        Ok(manifest)
    }

    /// The text of `pack.toml`; equal descriptions give equal text.
    ///
    /// # Errors
    /// When a number is too large for TOML.
    pub fn to_toml(&self) -> Result<String, PackManifestError> {
        toml::to_string(self).map_err(|error| PackManifestError::Unreadable(error.to_string()))
    }

    /// All files that the pack names.
    pub fn files(&self) -> impl Iterator<Item = NamedFile<'_>> {
        let plugins = self.plugins.iter().map(|plugin| NamedFile {
            file: &plugin.file,
            sha256: &plugin.sha256,
            size: plugin.size,
        });
        let documents = self.documents.iter().map(|document| NamedFile {
            file: &document.file,
            sha256: &document.sha256,
            size: document.size,
        });
        plugins.chain(documents)
    }

    /// The pack's configuration for a plugin.
    pub fn config_of(&self, id: &str) -> serde_json::Map<String, serde_json::Value> {
        let table = self.config.get(id);
        // Values without a JSON form were refused when the text was read.
        table
            .and_then(|table| {
                table
                    .iter()
                    .map(|(key, value)| Some((key.clone(), json(value)?)))
                    .collect()
            })
            .unwrap_or_default()
    }
}

impl PackedPlugin {
    /// Whether the file is for this program's machine and system.
    pub fn is_for_host(&self) -> bool {
        self.target
            .as_deref()
            .is_none_or(|target| target == host_target())
    }
}

/// Machine and system that this program was built for, as Rust names them.
pub fn host_target() -> String {
    let environment = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    format!("{}-unknown-linux-{environment}", std::env::consts::ARCH)
}

/// A value as JSON, where JSON has it.
fn json(value: &toml::Value) -> Option<serde_json::Value> {
    Some(match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => serde_json::Number::from_f64(*number)?.into(),
        toml::Value::Boolean(truth) => (*truth).into(),
        toml::Value::Datetime(_) => return None,
        toml::Value::Array(values) => values.iter().map(json).collect::<Option<Vec<_>>>()?.into(),
        toml::Value::Table(table) => {
            let pairs = table.iter().map(|(key, value)| Some((key.clone(), json(value)?)));
            serde_json::Value::Object(pairs.collect::<Option<_>>()?)
        }
    })
}

/// Reads one of the small TOML documents that say which layout they have.
pub(super) fn read_layout<T: DeserializeOwned>(
    bytes: &[u8],
    layout: u32,
    layout_of: impl Fn(&T) -> u32,
) -> Result<T, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let document: T = toml::from_str(text).map_err(|error| one_line(&error.to_string()))?;
    match layout_of(&document) {
        found if found == layout => Ok(document),
        found => Err(format!(
            "it has layout {found}, this lm-bench reads layout {layout}"
        )),
    }
}

/// What the TOML reader says takes several lines; the first says where, the last says what.
pub(super) fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    let line = match lines.as_slice() {
        [only] => (*only).to_owned(),
        [first, .., last] => format!("{first}: {last}"),
        [] => String::new(),
    };
    crate::plugin::failure::one_line(&line, 300)
}

mod check;

pub(super) use check::is_sha256;

#[cfg(test)]
mod tests;
