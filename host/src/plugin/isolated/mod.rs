//! Native plugins in a process of their own, so that a crash, an endless loop or a leak ends the plugin and nothing else.
//!
//! ```text
//! this program                                     a child of the same program
//! IsolatedSession --calls, answers (socket)------> serve -> DylibSession -> the library
//!       `---columns (shared memory, read-only there)-^
//! ```
//!
//! The child gets no environment but a mark, no open files and no right to write files; it dies with this program, and what
//! it started dies with it. It shares the user's rights otherwise: it contains accidents, not attacks.

mod child;
mod columns;
mod confine;
mod offspring;
mod probe;
mod process;
mod session;
mod wire;

pub use child::serve;
pub(crate) use probe::IsolatedProbe;
pub(crate) use session::IsolatedSession;

/// Argument of this program that makes it the process of a plugin.
pub const PROCESS_COMMAND: &str = "plugin-process";
