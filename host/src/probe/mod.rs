//! What the machine and the process look like from outside the engine.

pub mod cgroup;
pub mod machine;
pub mod process;
mod procfs;

pub use machine::Machine;
pub use process::ProcessMemory;
