//! Why a plugin could not be built.

use std::path::PathBuf;

use super::WASM_TARGET;
use crate::plugin::error::PluginError;

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
