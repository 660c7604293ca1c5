//! What each collector cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// How a collector was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PluginDoor {
    /// Linked into the program.
    // Published examples of earlier versions have the word without a hyphen.
    #[serde(rename = "built-in", alias = "builtin")]
    Builtin,
    /// A native library.
    Dylib,
    /// A WebAssembly component in a sandbox.
    Wasm,
}

impl PluginDoor {
    /// The word of records and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Builtin => "built-in",
            Self::Dylib => "dylib",
            Self::Wasm => "wasm",
        }
    }
}

/// What a collector was, saw and cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PluginRecord {
    /// Id.
    pub id: String,
    /// Version.
    pub version: String,
    /// How it was loaded.
    pub door: PluginDoor,
    /// Whether a native plugin ran in a process of its own; `null` for the other doors.
    pub isolated: Option<bool>,
    /// File it was loaded from; `null` for built-in ones.
    pub path: Option<String>,
    /// SHA-256 of that file.
    pub sha256: Option<String>,
    /// Its configuration in force.
    pub config: serde_json::Value,
    /// SHA-256 of that configuration as compact JSON with sorted keys.
    pub config_sha256: String,
    /// Rows of events it was given.
    pub rows: u64,
    /// Rows it should have been given but that were lost on the way.
    pub lost: u64,
    /// Calls into the plugin.
    pub calls: u64,
    /// Time spent in those calls, in nanoseconds.
    pub busy_ns: u64,
    /// `busy_ns / rows`; `null` without rows.
    pub ns_per_row: Option<f64>,
    /// `busy_ns` over the duration of the run, or of the replay that made the metrics: cores' worth of processor time.
    pub cpu_share: Option<f64>,
    /// Most memory it held, in bytes; `null` where its door cannot tell.
    pub peak_memory: Option<u64>,
    /// Fuel that its calls used, about one unit per instruction; `null` but for WASM plugins of a deterministic run.
    pub fuel: Option<u64>,
    /// What went wrong. A plugin with a fault was taken out of the run.
    pub faults: Vec<String>,
    /// Whether its metrics are from a part of the run only: from a checkpoint before the fault, or up to an interruption.
    pub partial: bool,
    /// Metrics of it in this record.
    pub metrics: u64,
}

/// Time per row in nanoseconds; `None` without rows.
pub fn ns_per_row(busy_ns: u64, rows: u64) -> Option<f64> {
    (rows > 0).then(|| busy_ns as f64 / rows as f64)
}

/// Share of one core over a duration; `None` where that is 0.
pub fn cpu_share(busy_ns: u64, duration_ns: u64) -> Option<f64> {
    (duration_ns > 0).then(|| busy_ns as f64 / duration_ns as f64)
}

/// SHA-256, in hexadecimal, of a configuration as compact JSON; keys are sorted because `serde_json` sorts them.
pub fn config_sha256(config: &serde_json::Value) -> String {
    let digest = Sha256::digest(config.to_string());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ratios_without_a_denominator_are_null() {
        assert_eq!((ns_per_row(300, 4), ns_per_row(300, 0)), (Some(75.0), None));
        assert_eq!((cpu_share(5, 20), cpu_share(5, 0)), (Some(0.25), None));
    }

    #[test]
    fn the_digest_does_not_depend_on_the_order_of_keys() {
        let one: serde_json::Value = serde_json::from_str(r#"{"b": 1, "a": [2]}"#).unwrap();
        assert_eq!(config_sha256(&one), config_sha256(&json!({"a": [2], "b": 1})));
        // printf '{}' | sha256sum
        assert_eq!(
            config_sha256(&json!({})),
            "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
    }
}
