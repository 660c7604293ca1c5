//! The native door: libraries in this process, checked as far as bytes can be before the first instruction runs.

mod callbacks;
mod elf;
mod library;
mod session;

pub use elf::{ElfError, LibraryFacts, inspect};
pub use library::LibraryError;
pub use session::DylibSession;
