//! Components.

#[path = "../../../../host/src/plugin/wasm/binary.rs"]
pub(crate) mod binary;
