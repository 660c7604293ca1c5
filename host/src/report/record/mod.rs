//! The run record: what `--output-format json` prints and `--save-result` writes.
//!
//! Undefined numbers are `null`, never 0 and never NaN. Maps are ordered, so equal runs give equal text.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod build;
mod facts;
mod headline;
mod judge;
mod metric;
mod observer;
mod plugin;
mod probe;
#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;

pub use build::metric_records;
pub use facts::{Build, Cgroup, Cpu, EngineFacts, Environment, Gpu, ModelFacts};
pub use headline::{Definition, Headline, Iteration, gigabytes, headline_metrics};
pub use judge::{Note, Verdict};
pub use metric::{CONFIDENCE, IntervalRecord, MetricRecord, MetricValue, PercentileRecord, metrics_json};
pub use observer::{IterationPair, Observed, ObserverEffect, Overhead, pairs_needed};
pub use plugin::{PluginDoor, PluginRecord, config_sha256, cpu_share, ns_per_row};
pub use probe::ProbeRecord;

/// Version of the record's layout: a new field raises the second number, a changed or removed one the first.
pub const SCHEMA_VERSION: &str = "1.1";

/// Everything a run found out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunRecord {
    /// Version of this layout. A new field raises the second number, a changed or removed one the first.
    pub schema_version: String,
    /// The program that made the record.
    pub tool: Tool,
    /// Whether the result may be used.
    pub verdict: Verdict,
    /// What to know before using the result, though it does not make it invalid.
    pub warnings: Vec<Note>,
    /// Wall-clock time at the start, in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// Seconds from the start of the program's work to the end of the last collector.
    pub duration_s: f64,
    /// Latency, batch size and throughput in one line each; `definitions` tells what the numbers are.
    #[serde(flatten)]
    pub headline: Headline,
    /// How tokens were counted.
    pub token_source: TokenSource,
    /// The iterations before the measured ones; in no other number of the record.
    pub warmup: Warmup,
    /// What being measured cost the engine; `null` where that was not asked for.
    #[serde(default)]
    pub observer_effect: Option<ObserverEffect>,
    /// What was done.
    pub counts: Counts,
    /// Where the time went.
    pub timings: Timings,
    /// The model.
    pub model: ModelFacts,
    /// What computed.
    pub engine: EngineFacts,
    /// The machine and the build.
    pub environment: Environment,
    /// Every setting of the run as it was in force, defaults included.
    pub plan: BTreeMap<String, serde_json::Value>,
    /// What the collectors found, ordered by plugin, name and labels.
    pub metrics: Vec<MetricRecord>,
    /// What the collectors cost.
    pub plugins: Vec<PluginRecord>,
    /// What the probes gave and cost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ProbeRecord>,
    /// Rows of the event stream by kind.
    pub events: BTreeMap<String, EventTotals>,
    /// Why rows of the event stream were lost.
    #[serde(default)]
    pub event_losses: EventLosses,
    /// Text that the model generated in the last measured iteration, where it has a tokenizer.
    pub output_sample: Option<String>,
}

impl RunRecord {
    /// A record of this program in which nothing has happened yet.
    pub fn empty() -> Self {
        Self {
            schema_version: SCHEMA_VERSION.to_owned(),
            tool: Tool::this(),
            verdict: Verdict::default(),
            warnings: Vec::new(),
            started_unix_ms: 0,
            duration_s: 0.0,
            headline: Headline::default(),
            token_source: TokenSource::default(),
            warmup: Warmup::default(),
            observer_effect: None,
            counts: Counts::default(),
            timings: Timings::default(),
            model: ModelFacts::default(),
            engine: EngineFacts::default(),
            environment: Environment::default(),
            plan: BTreeMap::new(),
            metrics: Vec::new(),
            plugins: Vec::new(),
            probes: Vec::new(),
            events: BTreeMap::new(),
            event_losses: EventLosses::default(),
            output_sample: None,
        }
    }
}

/// The program that made a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Always `lm-bench`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Commit it was built from, where the build knew it.
    pub commit: Option<String>,
}

impl Tool {
    /// This program. Its commit is what `LM_BENCH_COMMIT` said when it was built.
    pub fn this() -> Self {
        Self {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("LM_BENCH_COMMIT").map(str::to_owned),
        }
    }
}

/// How tokens were counted. Throughputs from different sources do not compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenSource {
    /// The engine is in this process and every token passed through the driver.
    #[default]
    Engine,
    /// The server stated usage.
    ServerUsage,
    /// The returned text was tokenised.
    Tokenizer,
    /// One token per content chunk was assumed.
    Chunks,
}

/// The iterations before the measured ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Warmup {
    /// How many.
    pub iterations: u64,
    /// Median prefill latency in milliseconds.
    pub prefill_latency_ms: Option<f64>,
    /// Median decode latency per token in milliseconds.
    pub decode_latency_per_token_ms: Option<f64>,
}

/// What was done in the measured part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Iterations that were completed.
    pub iterations: u64,
    /// Iterations that were planned.
    pub iterations_planned: u64,
    /// Decode steps of these iterations.
    #[serde(default)]
    pub decode_steps: u64,
    /// Sequences that were started.
    pub requests: u64,
    /// Tokens that went through prefill.
    pub prompt_tokens: u64,
    /// Tokens that were generated, the one that prefill yields included.
    pub output_tokens: u64,
    /// Sequences that failed.
    pub errors: u64,
}

/// Where the time went, in seconds; `null` where the run has no such part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timings {
    /// Opening the model and making the engine ready.
    pub load_s: Option<f64>,
    /// Warm-up iterations.
    pub warmup_s: Option<f64>,
    /// Measured iterations.
    pub measured_s: Option<f64>,
    /// Bare iterations that the measured ones were compared with.
    #[serde(default)]
    pub bare_s: Option<f64>,
    /// Collectors that ran after the measured part.
    pub collect_s: Option<f64>,
}

/// Rows of one kind of event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventTotals {
    /// Rows that were recorded.
    pub rows: u64,
    /// Rows of these that never reached the collectors; `event_losses` tells why.
    pub lost: u64,
    /// Most events that one of the recorded rows stands for: N where one step in N is recorded.
    pub weight: u32,
    /// Fewest events that one of them stands for; less than `weight` where rows from before the first step are among
    /// them. `null` in records of older versions.
    #[serde(default)]
    pub least_weight: Option<u32>,
}

/// Why rows of the event stream were lost, over all kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EventLosses {
    /// Blocks of rows that were dropped because the queue between engine and collectors was full.
    pub blocks_dropped: u64,
    /// Rows that were lost because the events kept for collectors that run after the timed part reached their limit
    /// of memory.
    pub rows_over_budget: u64,
    /// Rows that the engine offered with lists of a length that cannot be recorded. They are not among the recorded
    /// rows.
    pub rows_refused: u64,
}
