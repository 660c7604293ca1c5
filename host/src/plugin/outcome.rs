//! What a collector leaves when the run is over.

use std::path::PathBuf;

use lm_bench_plugin::Metric;
use lm_bench_plugin::manifest::Manifest;

use super::log::LogLine;
use super::session::Door;

/// Metrics and account of one collector.
#[derive(Clone, Debug)]
pub struct CollectorOutcome {
    /// Who it is.
    pub manifest: Manifest,
    /// How it was connected.
    pub door: Door,
    /// Whether it had a process of its own.
    pub isolated: bool,
    /// Digest of its file.
    pub sha256: Option<String>,
    /// Its file.
    pub path: Option<PathBuf>,
    /// Its configuration.
    pub config: serde_json::Value,
    /// Its metrics, checked, by name and labels. A declared metric that it did not report is unavailable.
    pub metrics: Vec<Metric>,
    /// Rows that it took.
    pub rows: u64,
    /// Rows of its kinds that were lost before they could reach it.
    pub lost: u64,
    /// Wall time spent in its calls, in nanoseconds.
    pub busy_ns: u64,
    /// Number of its calls.
    pub calls: u64,
    /// Most memory that it held, in bytes; `None` where it shares this program's memory.
    pub peak_memory: Option<u64>,
    /// Fuel that its calls used in a deterministic run; `None` in others and for doors without fuel.
    pub fuel: Option<u64>,
    /// Why it was quarantined; empty when it was not.
    pub faults: Vec<String>,
    /// Whether the metrics are those of its last good checkpoint, not of the whole run.
    pub partial: bool,
    /// What it logged.
    pub log: Vec<LogLine>,
    /// Log lines that were refused because there were too many.
    pub log_refused: u64,
    /// Vendors' kinds that it would have taken and this run does not have.
    pub absent_kinds: Vec<String>,
}

impl CollectorOutcome {
    /// Whether it was quarantined.
    pub fn quarantined(&self) -> bool {
        !self.faults.is_empty()
    }
}
