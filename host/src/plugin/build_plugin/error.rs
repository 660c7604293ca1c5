//! Why a plugin could not be built.

use std::path::{Path, PathBuf};

use super::WASM_TARGET;
use crate::plugin::error::PluginError;

/// Why a plugin could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is no crate.
    #[error("{} is no folder with a Cargo.toml of a collector crate or a plugin.toml", .0.display())]
    NoCrate(PathBuf),
    /// A tool is not there.
    #[error("{tool} cannot be run: {cure}")]
    Missing {
        /// The tool.
        tool: String,
        /// What to do.
        cure: String,
    },
    /// A tool refused; it has said why.
    #[error("{tool} could not build {plugin}; its messages stand above")]
    Refused {
        /// The tool.
        tool: String,
        /// The plugin.
        plugin: String,
    },
    /// The description of a project, or what belongs to it, is not as it must be.
    #[error("{}: {message}", .path.display())]
    Project {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong, and what to do.
        message: String,
    },
    /// A language does not have a door.
    #[error("a plugin in {language} has one door only: build it with --door {door}")]
    Door {
        /// The language.
        language: &'static str,
        /// The door that it has.
        door: &'static str,
    },
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
    /// The built library has no room for what it says of itself.
    #[error("{}: its table of sections cannot be extended: it is no 64-bit ELF file, or has none", .0.display())]
    NoSection(PathBuf),
    /// The file could not be read or written.
    #[error("{}: {error}", .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// What was built is not a plugin that this version runs.
    #[error("it builds, but the result is no plugin (does a crate say lm_bench_plugin::export!(…)?): {0}")]
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

impl BuildError {
    /// Makes an error of the system at a file or folder into one of the build.
    pub(in crate::plugin) fn write(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Write { path, error }
    }
}
