//! Asks cargo about the crate and lets it compile.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::toolchain::{self, WasmTools};
use super::{BuildDoor, BuildError, WASM_TARGET};

/// The profile of plugins, given on the command line so that a crate need not have it. Overflow is checked as in
/// the host itself, so that all doors behave alike.
const PROFILE: &str = "lmb-plugin";
const PROFILE_SETTINGS: &[&str] = &[
    "inherits=\"release\"",
    "opt-level=3",
    "lto=\"fat\"",
    "codegen-units=1",
    "overflow-checks=true",
    "debug=false",
    // Names are half as large as the code they name, and nobody reads them.
    "strip=\"symbols\"",
    "incremental=false",
];

/// The profile of descriptions: made once, asked once.
const DESCRIPTION_PROFILE: &str = "lmb-description";
const DESCRIPTION_PROFILE_SETTINGS: &[&str] = &[
    "inherits=\"dev\"",
    "opt-level=0",
    "debug=false",
    "strip=\"symbols\"",
    "incremental=false",
];

/// All values of the cfg that the export macro looks at.
const DOORS: &str = "cfg(lmb_door, values(\"dylib\", \"description\"))";

/// Settings of the caller's environment that would change what is built, or how.
const FOREIGN_SETTINGS: &[&str] = &[
    "RUSTFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_BUILD_RUSTFLAGS",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER",
    "CARGO_BUILD_TARGET",
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_TARGET_DIR",
];

/// A crate.
pub(super) struct Package {
    pub(super) name: String,
    manifest: PathBuf,
    pub(super) target_directory: PathBuf,
}

/// Asks cargo which package the folder holds.
pub(super) fn package(folder: &Path) -> Result<Package, BuildError> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<MetadataPackage>,
        target_directory: PathBuf,
    }
    #[derive(Deserialize)]
    struct MetadataPackage {
        name: String,
        manifest_path: PathBuf,
    }
    let no_crate = || BuildError::NoCrate(folder.to_owned());
    let manifest = folder.join("Cargo.toml").canonicalize().map_err(|_| no_crate())?;
    let mut command = cargo();
    command
        .args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"])
        .arg(&manifest);
    let answer = toolchain::output(&mut command)?;
    let metadata: Metadata = serde_json::from_str(&answer).map_err(|error| BuildError::Answer {
        tool: "cargo metadata".to_owned(),
        message: error.to_string(),
    })?;
    let mut packages = metadata.packages.into_iter();
    let package = packages.find(|package| {
        package
            .manifest_path
            .canonicalize()
            .is_ok_and(|path| path == manifest)
    });
    let MetadataPackage { name, .. } = package.ok_or_else(no_crate)?;
    Ok(Package {
        name,
        manifest,
        target_directory: metadata.target_directory,
    })
}

/// The cargo that started this program, or the one in the path.
fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for setting in FOREIGN_SETTINGS {
        command.env_remove(setting);
    }
    let profile_setting = |name: &str| name.starts_with("CARGO_PROFILE_");
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(profile_setting) {
            command.env_remove(name);
        }
    }
    command
}

/// What is made of a crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Artefact {
    /// A plugin.
    Plugin(BuildDoor),
    /// A component that tells the schema of a component's configuration. The code for it is as large as all else and
    /// would be compiled at the start of each run.
    Description,
}

impl Artefact {
    /// The profile and its settings; each profile has its own folder.
    const fn profile(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Plugin(_) => (PROFILE, PROFILE_SETTINGS),
            Self::Description => (DESCRIPTION_PROFILE, DESCRIPTION_PROFILE_SETTINGS),
        }
    }

    /// The cfg that tells the export macro, where it needs to be told.
    const fn cfg(self) -> Option<&'static str> {
        match self {
            Self::Plugin(BuildDoor::Dylib) => Some("lmb_door=\"dylib\""),
            Self::Plugin(BuildDoor::Wasm) => None,
            Self::Description => Some("lmb_door=\"description\""),
        }
    }
}

/// Compiles the crate and returns the library's path.
pub(super) fn compile(
    artefact: Artefact,
    folder: &Path,
    package: &Package,
    target_dir: &Path,
) -> Result<PathBuf, BuildError> {
    let (profile, settings) = artefact.profile();
    let mut command = cargo();
    command.args([
        "rustc",
        "--lib",
        "--crate-type=cdylib",
        "--message-format=json-render-diagnostics",
    ]);
    command.arg("--manifest-path").arg(&package.manifest);
    command
        .arg("--target-dir")
        .arg(target_dir)
        .arg(format!("--profile={profile}"));
    // Panics of a library are caught at the edge, so they must unwind.
    let panic = if artefact == Artefact::Plugin(BuildDoor::Dylib) {
        "panic=\"unwind\""
    } else {
        WasmTools::find(folder)?.apply(&mut command);
        command.arg(format!("--target={WASM_TARGET}"));
        "panic=\"abort\""
    };
    for setting in settings.iter().chain([&panic]) {
        command
            .arg("--config")
            .arg(format!("profile.{profile}.{setting}"));
    }
    // A crate need not know what the export macro looks at.
    command.args(["--", "--check-cfg", DOORS]);
    if let Some(cfg) = artefact.cfg() {
        command.args(["--cfg", cfg]);
    }
    command
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let output = command.output().map_err(|error| BuildError::Tool {
        tool: "cargo".to_owned(),
        error,
    })?;
    if !output.status.success() {
        return Err(BuildError::Cargo(package.name.clone()));
    }
    library(&String::from_utf8_lossy(&output.stdout), &package.manifest)
        .ok_or_else(|| BuildError::NoLibrary(package.name.clone()))
}

/// Finds the library in cargo's messages.
fn library(messages: &str, manifest: &Path) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Message {
        manifest_path: PathBuf,
        filenames: Vec<PathBuf>,
    }
    let wanted = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == "so" || extension == "wasm")
    };
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| {
            message
                .manifest_path
                .canonicalize()
                .is_ok_and(|path| path == manifest)
        })
        .find_map(|message| message.filenames.into_iter().find(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_found_among_other_artefacts() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let manifest = folder.path().join("Cargo.toml");
        std::fs::write(&manifest, "").expect("a written file");
        let manifest = manifest.canonicalize().expect("it exists");
        let artefact = |manifest: &str, file: &str| {
            format!(
                "{{\"reason\":\"compiler-artifact\",\"manifest_path\":{manifest:?},\"filenames\":[{file:?}]}}\n"
            )
        };
        let own = manifest.to_string_lossy();
        let messages = artefact("/other/Cargo.toml", "/t/other.so")
            + "{\"reason\":\"build-script-executed\"}\nnoise\n"
            + &artefact(&own, "/t/libmine.rlib")
            + &artefact(&own, "/t/libmine.so");
        assert_eq!(library(&messages, &manifest), Some("/t/libmine.so".into()));
        assert_eq!(library("", &manifest), None);
    }
}
