//! What a plugin may use and report: the defaults, all of which a run may override and all of which its record keeps.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of one plugin. A plugin that exceeds one is quarantined; the run goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Linear memory of a WASM plugin, in bytes, over all its memories.
    pub memory_bytes: usize,
    /// Stack of a WASM plugin, in bytes. Read by the first WASM plugin of a run.
    pub wasm_stack_bytes: usize,
    /// Time for one batch, in milliseconds.
    pub batch_ms: u64,
    /// Time for each of describe, subscribe, open, checkpoint and finish, in milliseconds.
    pub call_ms: u64,
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

impl Limits {
    /// Time for one batch.
    pub fn batch_time(&self) -> Duration {
        Duration::from_millis(self.batch_ms)
    }

    /// Time for any other call.
    pub fn call_time(&self) -> Duration {
        Duration::from_millis(self.call_ms)
    }
}

/// What plugins are allowed in a run, and where they are looked for.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Whether native libraries may be loaded (`--allow-native`): they run with all rights of the user.
    pub allow_native: bool,
    /// Limits of each plugin.
    pub limits: Limits,
    /// Folders of `--plugin-dir`, searched before all others.
    pub plugin_dirs: Vec<PathBuf>,
    /// Lock file that pins plugins (`--lock`); by default `lm-bench.lock` in the working directory, if there is one.
    pub lock: Option<PathBuf>,
    /// Folder for compiled components; by default `lm-bench/wasm` in the user's cache folder.
    pub component_cache: Option<PathBuf>,
}
