//! What a plugin may use and report: the defaults, all of which a run may override and all of which its record keeps.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::events::SINK_STACK_BYTES;

/// Limits of one plugin. A plugin that exceeds one is quarantined; the run goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Memory in bytes: linear memory of a WASM plugin, over all its memories; what a native plugin in a process of
    /// its own may allocate beyond what the process had.
    pub memory_bytes: usize,
    /// Stack of a WASM plugin, in bytes. Read by the first WASM plugin of a run.
    pub wasm_stack_bytes: usize,
    /// Time for one batch, in milliseconds.
    pub batch_ms: u64,
    /// Time for each of describe, subscribe, open, checkpoint and finish, in milliseconds.
    pub call_ms: u64,
    /// What stands for one millisecond of these two times in a deterministic run, in units of fuel: a unit is about one
    /// instruction of a WASM plugin.
    pub fuel_per_ms: u64,
    /// Rows per batch; a plugin may ask for fewer.
    pub max_rows: u32,
    /// Bytes per batch; a single row may have more.
    pub batch_bytes: usize,
    /// Kinds in a subscription.
    pub wants: usize,
    /// Metrics in one report.
    pub metrics: usize,
    /// Bytes of a metric's name.
    pub name_bytes: usize,
    /// Labels of a metric.
    pub labels: usize,
    /// Bytes of a label's key and of its value.
    pub label_bytes: usize,
    /// Bytes of a reason or of a fault's message; longer ones are cut.
    pub text_bytes: usize,
    /// Distinct values in one distribution.
    pub distribution_values: usize,
    /// Bytes of one whole report.
    pub report_bytes: usize,
    /// Log lines per second.
    pub log_lines_per_second: u32,
    /// Bytes of log in a run.
    pub log_bytes: usize,
    /// Bytes of configuration.
    pub config_bytes: usize,
    /// Size of a component file, in bytes.
    pub component_bytes: u64,
    /// Size of a native library file, in bytes.
    pub library_bytes: u64,
    /// Longest time between checkpoints while events arrive, in milliseconds.
    pub checkpoint_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        const KIB: usize = 1 << 10;
        const MIB: usize = 1 << 20;
        Self {
            memory_bytes: 64 * MIB,
            wasm_stack_bytes: 512 * KIB,
            batch_ms: 100,
            call_ms: 5_000,
            fuel_per_ms: 1_000_000,
            max_rows: lm_bench_plugin::DEFAULT_MAX_ROWS,
            batch_bytes: MIB,
            wants: 64,
            metrics: lm_bench_plugin::MAX_METRICS,
            name_bytes: 128,
            labels: 16,
            label_bytes: 128,
            text_bytes: KIB,
            distribution_values: 65_536,
            report_bytes: 16 * MIB,
            log_lines_per_second: 200,
            log_bytes: 64 * KIB,
            config_bytes: 64 * KIB,
            component_bytes: 32 << 20,
            library_bytes: 256 << 20,
            checkpoint_ms: 1_000,
        }
    }
}

/// A limit that cannot be kept, or that would leave nothing to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} is {value}, but must be {low} to {high}")]
pub struct LimitError {
    /// The limit.
    pub key: &'static str,
    /// What was given.
    pub value: u64,
    /// Least value.
    pub low: u64,
    /// Greatest value.
    pub high: u64,
}

impl Limits {
    /// Refuses values that cannot be kept, before anything is loaded.
    ///
    /// # Errors
    /// Naming the first limit that is out of its range.
    pub fn validate(&self) -> Result<(), LimitError> {
        const KIB: u64 = 1 << 10;
        const MIB: u64 = 1 << 20;
        const GIB: u64 = 1 << 30;
        const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
        // The rest of the thread's stack is the runtime's own.
        const STACK: u64 = SINK_STACK_BYTES as u64 / 2;
        let ranges = [
            ("memory_bytes", self.memory_bytes as u64, 64 * KIB, 4 * GIB),
            ("wasm_stack_bytes", self.wasm_stack_bytes as u64, 16 * KIB, STACK),
            ("batch_ms", self.batch_ms, 1, DAY_MS),
            ("call_ms", self.call_ms, 1, DAY_MS),
            ("fuel_per_ms", self.fuel_per_ms, 1, 1_000_000_000),
            ("max_rows", self.max_rows.into(), 1, MIB),
            ("batch_bytes", self.batch_bytes as u64, 1, GIB),
            ("wants", self.wants as u64, 1, KIB),
            ("metrics", self.metrics as u64, 1, MIB),
            ("name_bytes", self.name_bytes as u64, 1, 64 * KIB),
            ("labels", self.labels as u64, 0, KIB),
            ("label_bytes", self.label_bytes as u64, 1, 64 * KIB),
            ("text_bytes", self.text_bytes as u64, 16, MIB),
            (
                "distribution_values",
                self.distribution_values as u64,
                1,
                16 * MIB,
            ),
            ("report_bytes", self.report_bytes as u64, 64 * KIB, GIB),
            ("log_lines_per_second", self.log_lines_per_second.into(), 0, MIB),
            ("log_bytes", self.log_bytes as u64, 0, GIB),
            ("config_bytes", self.config_bytes as u64, 2, 16 * MIB),
            ("component_bytes", self.component_bytes, 8, GIB),
            ("library_bytes", self.library_bytes, 8, GIB),
            ("checkpoint_ms", self.checkpoint_ms, 1, DAY_MS),
        ];
        for (key, value, low, high) in ranges {
            if !(low..=high).contains(&value) {
                return Err(LimitError {
                    key,
                    value,
                    low,
                    high,
                });
            }
        }
        Ok(())
    }

    /// Time for one batch.
    pub fn batch_time(&self) -> Duration {
        Duration::from_millis(self.batch_ms)
    }

    /// Time for any other call.
    pub fn call_time(&self) -> Duration {
        Duration::from_millis(self.call_ms)
    }

    /// Fuel that stands for a time in a deterministic run.
    pub fn fuel(&self, time: Duration) -> u64 {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        ms.saturating_mul(self.fuel_per_ms)
    }
}

/// What plugins are allowed in a run, and where they are looked for.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Whether native libraries may be loaded (`--allow-native`): they run with all rights of the user.
    pub allow_native: bool,
    /// Whether native libraries are loaded into this process (`--in-process`), where a crash or an endless loop of
    /// theirs is one of this program. By default each gets a process of its own.
    pub in_process: bool,
    /// Program that serves native plugins in processes of their own; by default the one that runs.
    pub program: Option<PathBuf>,
    /// Whether the same events lead to the same outcome on every machine (`--deterministic`): fuel takes the place of time,
    /// and native libraries are refused.
    pub deterministic: bool,
    /// Limits of each plugin.
    pub limits: Limits,
    /// Folders of `--plugin-dir`, searched before all others.
    pub plugin_dirs: Vec<PathBuf>,
    /// Lock file that pins plugins (`--lock`); by default `lm-bench.lock` in the working directory, if there is one.
    pub lock: Option<PathBuf>,
    /// Folder for compiled components; by default `lm-bench/wasm` in the user's cache folder.
    pub component_cache: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_in_range() {
        Limits::default().validate().expect("in range");
    }

    #[test]
    fn what_cannot_be_kept_is_named_with_its_range() {
        let refused = |change: fn(&mut Limits)| {
            let mut limits = Limits::default();
            change(&mut limits);
            limits.validate().expect_err("out of range").to_string()
        };
        assert_eq!(
            refused(|limits| limits.wasm_stack_bytes = 0),
            "wasm_stack_bytes is 0, but must be 16384 to 2097152"
        );
        assert_eq!(
            refused(|limits| limits.memory_bytes = (4 << 30) + 1),
            "memory_bytes is 4294967297, but must be 65536 to 4294967296"
        );
        assert_eq!(
            refused(|limits| limits.max_rows = 0),
            "max_rows is 0, but must be 1 to 1048576"
        );
        assert!(refused(|limits| limits.wasm_stack_bytes = usize::MAX).contains("to 2097152"));
        assert!(refused(|limits| limits.batch_bytes = 0).starts_with("batch_bytes is 0"));
        assert!(refused(|limits| limits.call_ms = u64::MAX).starts_with("call_ms is"));
        assert!(refused(|limits| limits.library_bytes = u64::MAX).starts_with("library_bytes is"));
    }

    #[test]
    fn every_limit_has_a_range() {
        let limits = serde_json::to_value(Limits::default()).expect("JSON");
        for key in limits.as_object().expect("an object").keys() {
            let mut huge = limits.clone();
            // The greatest value of the narrowest type.
            huge[key] = u32::MAX.into();
            let huge: Limits = serde_json::from_value(huge).expect("a limit takes any number of 32 bits");
            // 4 GiB - 1 of memory is a limit that can be kept.
            let refused = huge.validate().is_err_and(|error| error.key == key);
            assert!(refused || key == "memory_bytes", "{key}");
        }
    }
}
