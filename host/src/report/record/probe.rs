//! What each probe gave and cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plugin::PluginDoor;

/// What a probe was, gave and cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeRecord {
    /// Id.
    pub id: String,
    /// Version.
    pub version: String,
    /// How it was loaded.
    pub door: PluginDoor,
    /// Whether it ran in a process of its own.
    pub isolated: bool,
    /// File it was loaded from.
    pub path: Option<String>,
    /// SHA-256 of that file.
    pub sha256: Option<String>,
    /// Its configuration in force.
    pub config: serde_json::Value,
    /// SHA-256 of that configuration as compact JSON with sorted keys.
    pub config_sha256: String,
    /// Kinds of events that it declares.
    pub kinds: Vec<String>,
    /// Time between two samples, in nanoseconds.
    pub period_ns: u64,
    /// Samples that were taken.
    pub samples: u64,
    /// Those of them that began more than half a period after they were due.
    pub late: u64,
    /// Samples that were left out because the one before took too long.
    pub missed: u64,
    /// Rows of all samples.
    pub rows: u64,
    /// Time spent in samples, in nanoseconds.
    pub busy_ns: u64,
    /// `busy_ns / samples`; `null` without samples.
    pub ns_per_sample: Option<f64>,
    /// The longest sample, in nanoseconds.
    pub longest_ns: u64,
    /// `busy_ns` over the duration of the run: at most so many cores' worth of processor time.
    pub cpu_share: Option<f64>,
    /// Most memory it held, in bytes; `null` where it shared this program's memory.
    pub peak_memory: Option<u64>,
    /// What went wrong. A probe with a fault was ended: its rows stop there.
    pub faults: Vec<String>,
}
