//! The WASM door: components in a sandbox that has nothing but a log and the run's symbols.

mod binary;
mod bindings;
mod cache;
mod convert;
mod engine;
mod limiter;
mod session;

pub use binary::ComponentError;
pub(crate) use binary::{ComponentFacts, check, inspect};
pub use cache::CacheState;
pub(crate) use engine::{WasmEngine, WasmMode};
pub(crate) use session::{WasmSession, config_schema};
