//! Where a user's packs and trusted keys are.

use std::ffi::OsString;
use std::path::PathBuf;

use super::error::PackError;
use super::store::PackStore;
use crate::plugin::search::user_folder;

/// Folder of installed packs; `None` without a home. `variable` reads an environment variable.
pub(crate) fn packs_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    user_folder("XDG_DATA_HOME", ".local/share", variable).map(|data| data.join("packs"))
}

/// The list of trusted keys; `None` without a home. `variable` reads an environment variable.
pub(crate) fn trust_file(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    user_folder("XDG_CONFIG_HOME", ".config", variable).map(|config| config.join("trust.toml"))
}

/// The user's installed packs.
///
/// # Errors
/// When the user has no home.
pub fn user_store() -> Result<PackStore, PackError> {
    let folder = packs_folder(|name| std::env::var_os(name));
    folder
        .map(PackStore::new)
        .ok_or(PackError::NoHome("packs", "XDG_DATA_HOME"))
}

/// The user's list of trusted keys.
///
/// # Errors
/// When the user has no home.
pub fn user_trust() -> Result<PathBuf, PackError> {
    trust_file(|name| std::env::var_os(name)).ok_or(PackError::NoHome("trusted keys", "XDG_CONFIG_HOME"))
}
