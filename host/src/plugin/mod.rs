//! Plugins: found, identified, loaded through three doors, fed, limited and accounted for.
//!
//! ```text
//! Registry -> Found -> Session (builtin | dylib | wasm) -> Member (limits, checkpoints, account) -> CollectorOutcome
//! ```
//!
//! A plugin that traps, panics, overruns or reports what it may not is quarantined and never ends the run.

mod admission;
pub mod bench;
pub mod build_plugin;
mod builtin;
mod check;
mod collectors;
pub mod contract;
mod delivery;
mod describe;
pub mod doctor;
mod dylib;
mod error;
mod failure;
mod file;
mod gather;
mod identity;
mod isolated;
mod limits;
mod log;
mod math;
mod member;
pub mod new_plugin;
mod outcome;
pub mod pack;
mod probes;
mod registry;
mod resolve;
mod search;
mod session;
mod wasm;

pub use collectors::{Collectors, Demands, Requests};
pub use dylib::{ElfError, LibraryError};
pub use error::PluginError;
pub use file::FileError;
pub use identity::ManifestError;
pub use isolated::{PROCESS_COMMAND, serve as serve_plugin_process};
pub use limits::{LimitError, Limits, Policy};
pub use log::LogLine;
pub use outcome::CollectorOutcome;
pub use probes::{ProbeOutcome, Probes, RunningProbes};
pub use registry::{Inspection, Listed, Registry};
pub use resolve::Unresolved;
pub use search::PATH_VARIABLE;
pub use session::Door;
pub use wasm::{CacheState, ComponentError};

/// Version of this program, as messages about plugins give it.
pub const HOST_VERSION: &str = env!("CARGO_PKG_VERSION");
