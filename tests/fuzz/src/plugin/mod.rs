//! What the host's `plugin` knows of a file before it loads or compiles it.

pub(crate) mod dylib;
#[path = "../../../../host/src/plugin/identity.rs"]
pub(crate) mod identity;
#[path = "../../../../host/src/plugin/limits.rs"]
pub(crate) mod limits;
pub(crate) mod wasm;

pub use limits::{LimitError, Limits};

/// In the host the program's version.
pub(crate) const HOST_VERSION: &str = "0.0.0";
