//! Native libraries.

#[path = "../../../../host/src/plugin/dylib/elf.rs"]
pub(crate) mod elf;
