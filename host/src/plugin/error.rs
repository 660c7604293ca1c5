//! Why plugins cannot be found or loaded. Each is the user's to solve and ends the run before it starts.

use std::path::PathBuf;

use super::HOST_VERSION;
use super::dylib::{ElfError, LibraryError};
use super::file::FileError;
use super::identity::ManifestError;
use super::pack::{LockError, UseError};
use super::resolve::Unresolved;
use super::wasm::ComponentError;
use crate::events::KindError;

/// Why a plugin cannot take part in a run.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// No plugin has this id.
    #[error(
        "there is no plugin {id}: built in are {}; looked in {}",
        .builtin.join(", "), list(.searched)
    )]
    Unknown {
        /// The id.
        id: String,
        /// Ids that are built in.
        builtin: Vec<String>,
        /// Folders that were searched.
        searched: Vec<PathBuf>,
    },
    /// A folder that was named to look for plugins in cannot be read.
    #[error("--plugin-dir {}: {source}; name a folder that there is, or leave it out", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A probe was asked for where nothing is measured.
    #[error(
        "{0} is a probe, which takes samples of a run, and here nothing is measured: leave it out; the rows of a run's probes are in its recording"
    )]
    ProbeInReplay(String),
    /// A probe is not a native library.
    #[error("{0} is a probe, but no native library: build it with `lm-bench plugin build DIR --door dylib`")]
    ProbeDoor(String),
    /// The kinds of two probes do not go together.
    #[error("the probes cannot run together: {0}")]
    Kinds(KindError),
    /// The text is neither an id nor a path.
    #[error("{0:?} is no plugin: give an id (a-z, 0-9 and -) or a path with a / in it")]
    NoTarget(String),
    /// The file cannot be a plugin.
    #[error(transparent)]
    File(#[from] FileError),
    /// The component cannot be used.
    #[error("{}: {error}", .path.display())]
    Component {
        /// The file.
        path: PathBuf,
        /// Why.
        error: ComponentError,
    },
    /// The library's file cannot be used.
    #[error("{}: {error}", .path.display())]
    Elf {
        /// The file.
        path: PathBuf,
        /// Why.
        error: ElfError,
    },
    /// The library cannot be loaded.
    #[error("{}: {error}", .path.display())]
    Library {
        /// The file.
        path: PathBuf,
        /// Why.
        error: LibraryError,
    },
    /// The plugin cannot run in this version.
    #[error("{place}: {error}")]
    Manifest {
        /// The file, or the word for built-in ones.
        place: String,
        /// Why.
        error: ManifestError,
    },
    /// The plugin does not say what it is.
    #[error("{place}: it does not describe itself: {reason}")]
    Silent {
        /// The file, or the word for built-in ones.
        place: String,
        /// Why.
        reason: String,
    },
    /// The file found for an id holds another plugin.
    #[error("{} was found for plugin {id}, but holds plugin {found}: rename it", .path.display())]
    OtherId {
        /// The file.
        path: PathBuf,
        /// The id that was asked for.
        id: String,
        /// The id in the file.
        found: String,
    },
    /// Native code without permission.
    #[error(
        "{} is native code, which can do whatever you can: permit it with --allow-native, pin it with `lm-bench plugin lock`, or use its WASM build",
        .0.display()
    )]
    NativeCode(PathBuf),
    /// Native code in a deterministic run.
    #[error(
        "{} is native code, which only a time limit can end, and --deterministic lets no time decide: use its WASM build, or leave out --deterministic",
        .0.display()
    )]
    NotDeterministic(PathBuf),
    /// The pack that it is in is not accepted.
    #[error(transparent)]
    Pack(#[from] UseError),
    /// The lock file is none, or pins something else.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// One plugin twice in a run.
    #[error("plugin {id} is asked for twice, as {first} and as {second}: give one of them")]
    Twice {
        /// The id.
        id: String,
        /// Where it came from first.
        first: String,
        /// Where it came from again.
        second: String,
    },
    /// WebAssembly does not work here.
    #[error("{0}")]
    Runtime(String),
    /// Configuration for a plugin that does not run.
    #[error("there is configuration for plugin {id}, which is not part of this run (its plugins: {})", .running.join(", "))]
    StrayConfig {
        /// The id.
        id: String,
        /// Ids of the run.
        running: Vec<String>,
    },
    /// The configuration does not suit the plugin.
    #[error("plugin {id} {version}: {message}")]
    Config {
        /// The plugin.
        id: String,
        /// Its version.
        version: String,
        /// What it said.
        message: String,
    },
    /// The plugin wants events that this version does not have.
    #[error("plugin {id} {version} {error}")]
    Unresolved {
        /// The plugin.
        id: String,
        /// Its version.
        version: String,
        /// Which.
        error: Unresolved,
    },
}

fn list(paths: &[PathBuf]) -> String {
    paths
        .iter()
        .map(|path| path.display().to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

impl PluginError {
    /// A fault of a collector that is linked into this program.
    pub(super) fn builtin(error: ManifestError) -> Self {
        Self::Manifest {
            place: format!("built-in collector of lm-bench {HOST_VERSION}"),
            error,
        }
    }
}
