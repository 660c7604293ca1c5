//! The collectors that each run has: latency, throughput, memory and KV cache. They are built-in only.

mod durations;
pub mod kv_cache;
pub mod latency;
pub mod memory;
pub mod throughput;

/// The configuration of a collector that has nothing to configure.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NoConfig {}
