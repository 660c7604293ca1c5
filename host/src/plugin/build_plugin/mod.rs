//! Builds a collector crate into a plugin file: one `cargo rustc` with the door's options. Installs nothing.

mod toolchain;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lm_bench_plugin::manifest::Manifest;
use serde::Deserialize;

use super::error::PluginError;
use super::file::hex;
use super::identity::is_id;
use super::limits::Policy;
use super::registry::Registry;
use super::search::file_name;
use super::session::Door;
use toolchain::WasmTools;

/// Target of WASM plugins: without WASI, so that the component imports nothing but the host's interface.
pub const WASM_TARGET: &str = "wasm32-unknown-unknown";

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
    "strip=\"debuginfo\"",
    "incremental=false",
];

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

/// Why a plugin could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is no crate.
    #[error("{} is no folder with a Cargo.toml of a collector crate", .0.display())]
    NoCrate(PathBuf),
    /// A tool could not be started.
    #[error("{tool} cannot be run: {error}; Rust's tools come with rustup (https://rustup.rs)")]
    Tool {
        /// The tool.
        tool: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// A tool answered something unexpected.
    #[error("{tool} failed: {message}")]
    Answer {
        /// The tool.
        tool: String,
        /// What it said.
        message: String,
    },
    /// The target is not installed.
    #[error("the Rust target {WASM_TARGET} is not installed: run `rustup target add {WASM_TARGET}`")]
    NoTarget,
    /// The toolchain has no linker for components.
    #[error("{} is missing: WASM plugins need a Rust toolchain of rustup, 1.82 or later", .0.display())]
    NoLinker(PathBuf),
    /// The crate's name is no id.
    #[error(
        "crate {0:?} cannot be a plugin: its name is the plugin's id, 2 to 63 of a-z, 0-9 and -, a letter first"
    )]
    Name(String),
    /// Cargo refused; it has said why.
    #[error("cargo could not build {0}; its messages stand above")]
    Cargo(String),
    /// Cargo succeeded without the expected file.
    #[error("cargo built no {0} library; does the crate have a src/lib.rs?")]
    NoLibrary(String),
    /// The file could not be written.
    #[error("{}: {error}", .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// What was built is not a plugin that this version runs.
    #[error("the crate builds, but the result is no plugin (does it say lm_bench_plugin::export!(…)?): {0}")]
    Useless(#[from] PluginError),
    /// The collector calls itself otherwise than its crate.
    #[error("crate {name} exports the collector {id}: both must have the same name")]
    OtherId {
        /// The crate.
        name: String,
        /// The id.
        id: String,
    },
}

/// A file that was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// Its digest.
    pub sha256: String,
    /// Its manifest.
    pub manifest: Manifest,
}

/// Doors that a plugin can be built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum BuildDoor {
    /// A native library.
    Dylib,
    /// A WebAssembly component.
    Wasm,
}

impl From<BuildDoor> for Door {
    fn from(door: BuildDoor) -> Self {
        match door {
            BuildDoor::Dylib => Self::Dylib,
            BuildDoor::Wasm => Self::Wasm,
        }
    }
}

/// What to build.
#[derive(Clone, Debug)]
pub struct BuildRequest {
    /// Folder of the crate.
    pub dir: PathBuf,
    /// Door to build for.
    pub door: BuildDoor,
    /// Folder for the plugin file.
    pub out: PathBuf,
    /// Folder for intermediate results; by default `plugins` in the crate's own target folder.
    pub target_dir: Option<PathBuf>,
}

/// Builds a plugin and checks the result without executing it. Cargo's messages go to stderr.
///
/// # Errors
/// When a tool is missing, cargo fails, or the result is not a plugin.
pub fn build(request: &BuildRequest) -> Result<Built, BuildError> {
    let package = package(&request.dir)?;
    if !is_id(&package.name) {
        return Err(BuildError::Name(package.name));
    }
    let target_dir = request
        .target_dir
        .clone()
        .unwrap_or_else(|| package.target_directory.join("plugins"));
    let library = compile(request, &package, &target_dir)?;
    let path = install(
        &library,
        &request.out,
        &file_name(&package.name, request.door.into()),
    )?;
    let registry = Registry::new(&Policy::default())?;
    let found = registry.find(&path.to_string_lossy())?;
    found.check()?;
    if found.manifest.id != package.name {
        return Err(BuildError::OtherId {
            name: package.name,
            id: found.manifest.id,
        });
    }
    let (size, sha256) = match found.file() {
        Some(file) => (file.bytes.len() as u64, file.sha256.clone()),
        None => (0, hex(&[])),
    };
    Ok(Built {
        path,
        size,
        sha256,
        manifest: found.manifest,
    })
}

struct Package {
    name: String,
    manifest: PathBuf,
    target_directory: PathBuf,
}

/// Asks cargo which package the folder holds.
fn package(folder: &Path) -> Result<Package, BuildError> {
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

/// Compiles the crate and returns the library's path.
fn compile(request: &BuildRequest, package: &Package, target_dir: &Path) -> Result<PathBuf, BuildError> {
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
        .arg(format!("--profile={PROFILE}"));
    for setting in PROFILE_SETTINGS {
        command
            .arg("--config")
            .arg(format!("profile.{PROFILE}.{setting}"));
    }
    if request.door == BuildDoor::Wasm {
        WasmTools::find(&request.dir)?.apply(&mut command);
        command.arg(format!("--target={WASM_TARGET}"));
        command
            .arg("--config")
            .arg(format!("profile.{PROFILE}.panic=\"abort\""));
    } else {
        // Panics are caught at the edge, so they must unwind.
        command
            .arg("--config")
            .arg(format!("profile.{PROFILE}.panic=\"unwind\""));
        command.args([
            "--",
            "--cfg",
            "lmb_door=\"dylib\"",
            "--check-cfg",
            "cfg(lmb_door, values(\"dylib\"))",
        ]);
    }
    command
        .current_dir(&request.dir)
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

/// Copies the library to its place; a plugin that was there is replaced as a whole.
fn install(library: &Path, out: &Path, name: &str) -> Result<PathBuf, BuildError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| BuildError::Write { path, error }
    };
    std::fs::create_dir_all(out).map_err(failed(out))?;
    let out = out.canonicalize().map_err(failed(out))?;
    let mut file = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(&out)
        .map_err(failed(&out))?;
    let mut source = std::fs::File::open(library).map_err(failed(library))?;
    std::io::copy(&mut source, &mut file).map_err(failed(library))?;
    let path = out.join(name);
    file.persist(&path).map_err(|error| BuildError::Write {
        path: path.clone(),
        error: error.error,
    })?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_in(folder: &Path, door: BuildDoor) -> BuildError {
        let request = BuildRequest {
            dir: folder.to_owned(),
            door,
            out: folder.join("out"),
            target_dir: None,
        };
        build(&request).expect_err("refused")
    }

    #[test]
    fn a_folder_without_a_crate_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert!(
            matches!(build_in(folder.path(), BuildDoor::Wasm), BuildError::NoCrate(path) if path == folder.path())
        );
    }

    #[test]
    fn a_crate_whose_name_is_no_id_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let manifest =
            "[package]\nname = \"my_collector\"\nversion = \"1.0.0\"\nedition = \"2024\"\n[workspace]\n";
        std::fs::write(folder.path().join("Cargo.toml"), manifest).expect("a written file");
        std::fs::create_dir(folder.path().join("src")).expect("a folder");
        std::fs::write(folder.path().join("src/lib.rs"), "").expect("a written file");
        assert!(
            matches!(build_in(folder.path(), BuildDoor::Dylib), BuildError::Name(name) if name == "my_collector")
        );
    }

    #[test]
    fn a_manifest_that_cargo_refuses_is_told_in_its_words() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("Cargo.toml"), "[package]\nname = 3\n").expect("a written file");
        let error = build_in(folder.path(), BuildDoor::Dylib).to_string();
        assert!(
            error.starts_with("cargo failed: ") && error.contains("name"),
            "{error}"
        );
        assert_eq!(error.lines().count(), 1);
    }

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
