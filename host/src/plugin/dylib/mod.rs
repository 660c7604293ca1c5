//! The native door: libraries in this process, checked as far as bytes can be before the first instruction runs.

mod callbacks;
mod elf;
mod library;
mod probe;
mod probe_callbacks;
mod session;

pub use elf::ElfError;
pub(crate) use elf::{LibraryFacts, inspect, inspect_foreign, machine_of};
pub use library::LibraryError;
pub(crate) use library::Sealed;
pub(crate) use probe::DylibProbe;
pub(crate) use session::DylibSession;
