//! What to do about a plugin that would not run.

use super::Diagnosis;
use crate::plugin::dylib::ElfError;
use crate::plugin::error::PluginError;
use crate::plugin::file::FileError;
use crate::plugin::pack::{LockError, UseError};
use crate::plugin::wasm::ComponentError;
use crate::plugin::{ManifestError, PATH_VARIABLE};

const REBUILD: &str = "build it again with `lm-bench plugin build DIR --door dylib|wasm --out FOLDER`";

/// What to do about an error.
pub(super) fn for_error(error: &PluginError, diagnosis: &Diagnosis) -> String {
    match error {
        PluginError::Unknown { .. } => unknown(diagnosis),
        PluginError::Folder { .. } => "name a folder that there is, or leave the flag out".to_owned(),
        PluginError::NoTarget(_) => {
            "give an id (a-z, 0-9 and -), or a path with a / in it such as ./my_plugin.wasm".to_owned()
        }
        PluginError::File(error) | PluginError::Pack(UseError::File(error)) => file(error).to_owned(),
        PluginError::Elf { error, .. } => elf(error).to_owned(),
        PluginError::Component { error, .. } => component(error).to_owned(),
        PluginError::Manifest { error, .. } => manifest(error).to_owned(),
        PluginError::OtherId { found, .. } => {
            format!("ask for {found}, or give the file the name of its id")
        }
        PluginError::NativeCode(_) => {
            "trust it with --allow-native, pin it with `lm-bench plugin lock`, or use its WASM build".to_owned()
        }
        PluginError::NotDeterministic(_) => {
            "use its WASM build, or leave --deterministic out".to_owned()
        }
        PluginError::Pack(UseError::Refused { .. }) => {
            "see `lm-bench pack list`; get a pack with a valid signature, or trust its key with `lm-bench pack trust`"
                .to_owned()
        }
        PluginError::Lock(error) => lock(error).to_owned(),
        _ => "see docs/plugins/README.md".to_owned(),
    }
}

fn unknown(diagnosis: &Diagnosis) -> String {
    let passed_over = diagnosis
        .places
        .iter()
        .flat_map(|place| &place.files)
        .find(|file| file.state.starts_with("passed over"));
    if let Some(file) = passed_over {
        return format!("give the path {} instead of the id", file.path.display());
    }
    format!(
        "check the spelling (`lm-bench plugin list` has all ids), or name the folder of its file with --plugin-dir or in {PATH_VARIABLE}"
    )
}

fn file(error: &FileError) -> &'static str {
    match error {
        FileError::Unreadable { .. } => "give a file that there is and that you may read",
        FileError::Link(_) => "name the file that the link points to",
        FileError::NotAFile(_) => "name the plugin's file, not its folder",
        FileError::Empty(_) => "copy or build it again: nothing was written to it",
        FileError::TooLarge { .. } => {
            "raise the limit with --plugin-limit component_bytes=N or library_bytes=N if it is meant to be that large"
        }
        FileError::CoreModule(_) => {
            "make a component of it: `lm-bench plugin build DIR --door wasm --out FOLDER`"
        }
        FileError::Precompiled(_) => "give the component it was made from",
        FileError::Unknown(_) => "give a plugin: a .so or .wasm file that `lm-bench plugin build` made",
    }
}

fn elf(error: &ElfError) -> &'static str {
    match error {
        ElfError::Manifest(error) => manifest(error),
        ElfError::Damaged(_) => "copy or build it again: it is cut short or damaged",
        ElfError::NotShared => "give the library (.so) of the plugin, not a program or an object file",
        _ => "use a build for this machine, or the plugin's WASM build, which runs on every machine",
    }
}

fn component(error: &ComponentError) -> &'static str {
    match error {
        ComponentError::Manifest(error) => manifest(error),
        ComponentError::Invalid(_) => "copy or build it again: it is cut short or damaged",
        ComponentError::Import { .. } => "build it for wasm32-unknown-unknown, without WASI",
        ComponentError::Version { .. } => "update lm-bench, or use an older build of the plugin",
        _ => REBUILD,
    }
}

fn manifest(error: &ManifestError) -> &'static str {
    match error {
        ManifestError::Schema { .. } | ManifestError::Interface { .. } => {
            "update lm-bench, or use an older version of the plugin"
        }
        _ => REBUILD,
    }
}

fn lock(error: &LockError) -> &'static str {
    match error {
        LockError::Io { .. } | LockError::Unreadable { .. } => {
            "name a lock file that can be read with --lock, or make it again with `lm-bench plugin lock`"
        }
        _ => "get the pinned file, or pin this one with `lm-bench plugin lock`",
    }
}
