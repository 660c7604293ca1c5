//! What a probe leaves when the run is over.

use std::path::PathBuf;
use std::time::Duration;

use lm_bench_plugin::manifest::Manifest;

use crate::plugin::log::LogLine;

/// The account of one probe.
#[derive(Clone, Debug)]
pub struct ProbeOutcome {
    /// Who it is.
    pub manifest: Manifest,
    /// Whether it had a process of its own.
    pub isolated: bool,
    /// Its file.
    pub path: Option<PathBuf>,
    /// Digest of that file.
    pub sha256: Option<String>,
    /// Its configuration.
    pub config: serde_json::Value,
    /// Time between two samples.
    pub period: Duration,
    /// Samples that were taken.
    pub samples: u64,
    /// Those of them that began more than half a period after they were due.
    pub late: u64,
    /// Samples that were left out because the one before took too long.
    pub missed: u64,
    /// Rows of all samples.
    pub rows: u64,
    /// Wall time spent in samples, in nanoseconds.
    pub busy_ns: u64,
    /// The longest sample, in nanoseconds.
    pub longest_ns: u64,
    /// Most memory that it held, in bytes; `None` where it shares this program's memory.
    pub peak_memory: Option<u64>,
    /// Why it was ended; empty when it was not.
    pub faults: Vec<String>,
    /// What it logged.
    pub log: Vec<LogLine>,
    /// Log lines that were refused because there were too many.
    pub log_refused: u64,
}

impl ProbeOutcome {
    /// Whether it was ended before the run was over.
    pub fn failed(&self) -> bool {
        !self.faults.is_empty()
    }
}
