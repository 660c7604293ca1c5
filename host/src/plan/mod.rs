//! The run plan: everything that decides what a run does.
//!
//! A plan comes from three places, later ones win: the defaults of [`RunPlan`], a plan file (TOML, `--plan`) and
//! the command line. All three use the same names, and an unknown key is an error.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use lm_bench_plugin::Level;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::LoadFormat;
use crate::plugin::Limits;
use crate::stats::Percent;

mod overhead;
mod overlay;
mod period;

pub use overhead::{MaxOverhead, OverheadError};
pub use overlay::{PlanError, resolve};
pub use period::{PeriodError, ProbePeriod};

/// Longest plan file accepted.
const MAX_PLAN_BYTES: u64 = 1 << 20;

/// Where prompts come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum PromptSource {
    /// Text where the model has a tokenizer, else random token ids.
    #[default]
    Auto,
    /// Built-in English text, tokenised.
    Text,
    /// Uniformly random token ids.
    Random,
}

/// When collectors see the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Collect {
    /// While the engine runs.
    Live,
    /// When the timed part is over, so that collectors do not compete with the engine.
    #[default]
    After,
}

/// Level of instrumentation as the command line spells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Instrument {
    /// Requests and tokens only.
    Off,
    /// Also forward passes, KV cache and memory.
    #[default]
    Steps,
    /// Also operators, one step in `sample_every`.
    Ops,
    /// Also device kernels, one step in `sample_every`.
    Kernels,
}

impl From<Instrument> for Level {
    fn from(instrument: Instrument) -> Self {
        match instrument {
            Instrument::Off => Self::Off,
            Instrument::Steps => Self::Steps,
            Instrument::Ops => Self::Ops,
            Instrument::Kernels => Self::Kernels,
        }
    }
}

/// Shape of the result on stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum OutputFormat {
    /// Aligned tables for people.
    #[default]
    Table,
    /// The whole record.
    Json,
    /// One metric per line.
    Jsonl,
    /// One metric per row.
    Csv,
}

/// Which plugins run, and how.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PluginPlan {
    /// Ids or paths of plugins beside the default ones.
    pub requests: Vec<String>,
    /// Whether the built-in collectors run too.
    pub defaults: bool,
    /// Folders to look for plugins in, before the standard ones.
    pub dirs: Vec<PathBuf>,
    /// Lock file that pins plugins.
    pub lock: Option<PathBuf>,
    /// Whether native plugins may be loaded.
    pub allow_native: bool,
    /// Whether native plugins are loaded into this process.
    pub in_process: bool,
    /// Whether the same events lead to the same outcome on every machine.
    pub deterministic: bool,
    /// Time between two samples of each probe; `None` where nothing is measured and probes are refused.
    pub probe_period: Option<ProbePeriod>,
    /// Configuration of each plugin by id.
    pub config: PluginConfig,
    /// What each plugin may take.
    pub limits: Limits,
}

/// Configuration keys by plugin id.
pub type PluginConfig = BTreeMap<String, serde_json::Map<String, serde_json::Value>>;

/// Everything that decides what an offline run does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunPlan {
    /// Preset, GGUF file, or directory with config.json and safetensors.
    pub model: Option<String>,
    /// How weights are obtained.
    pub load_format: LoadFormat,
    /// Device; `auto` takes the best that this build and machine have.
    pub device: String,
    /// Quantisation that the engine applies: `none`, `fp8`. Unset: `fp8` for the demo (no model named), else `none`.
    pub quantize: Option<String>,
    /// Sequences per batch.
    pub batch_size: u32,
    /// Prompt tokens per sequence.
    pub seq_len: u32,
    /// Output tokens per sequence.
    pub output_len: u32,
    /// Measured iterations: each is one prefill and `output_len - 1` decode steps.
    pub num_iters: u32,
    /// Iterations before the measured ones; reported apart.
    pub warmup_iters: u32,
    /// Seed of dummy weights and prompts.
    pub seed: u64,
    /// Threads of the CPU engine; unset: one per physical core.
    pub threads: Option<u32>,
    /// Where prompts come from.
    pub prompt_source: PromptSource,
    /// Level of instrumentation. Collectors raise it for what they subscribe to.
    pub instrument: Instrument,
    /// Of how many steps one is instrumented at the levels `ops` and `kernels`.
    pub sample_every: u32,
    /// When collectors see the events.
    pub collect: Collect,
    /// Whether each measured iteration is paired with a bare one of the same prompts, to find what being measured costs.
    pub observer_effect: bool,
    /// Most observer effect with which the result is valid, such as `1%`; needs `observer_effect`.
    pub max_overhead: Option<MaxOverhead>,
    /// Ids or paths of plugins beside the default ones.
    pub plugin: Vec<String>,
    /// Leaves out the built-in collectors that run by default.
    pub no_default_plugins: bool,
    /// Folders to look for plugins in, before the standard ones.
    pub plugin_dir: Vec<PathBuf>,
    /// Lock file that pins plugins; unset: `lm-bench.lock` in the working directory, if there is one.
    pub lock: Option<PathBuf>,
    /// Permits native plugins, which can do whatever this user can. Each runs in a process of its own.
    pub allow_native: bool,
    /// Loads native plugins into this process: faster, and a crash of theirs is one of the run.
    pub in_process: bool,
    /// Ends calls of WASM plugins by fuel instead of time, so that the same events lead to the same outcome on every
    /// machine; refuses native plugins.
    pub deterministic: bool,
    /// Time between two samples of each probe, `1ms` to `3600s`.
    pub probe_period: ProbePeriod,
    /// Configuration of plugins: key and value by plugin id.
    pub plugin_config: PluginConfig,
    /// What each plugin may take of memory, time and space in the result.
    pub plugin_limits: Limits,
    /// Percentiles that are reported for distributions.
    pub metric_percentiles: Vec<Percent>,
    /// Shape of the result on stdout.
    pub output_format: OutputFormat,
    /// Whether the table lists metrics per layer and expert, and percentiles with their intervals.
    pub detail: bool,
    /// Recording to write (`NAME.lmrec`).
    pub record: Option<PathBuf>,
    /// File to write the record (JSON) to.
    pub save_result: Option<PathBuf>,
}

/// Preset that runs when no model is named.
pub const DEMO_MODEL: &str = "tiny-moe";

impl Default for RunPlan {
    fn default() -> Self {
        Self {
            model: None,
            load_format: LoadFormat::Auto,
            device: "auto".to_owned(),
            quantize: None,
            batch_size: 1,
            seq_len: 128,
            output_len: 32,
            num_iters: 5,
            warmup_iters: 1,
            seed: 0,
            threads: None,
            prompt_source: PromptSource::Auto,
            instrument: Instrument::Steps,
            sample_every: 8,
            collect: Collect::After,
            observer_effect: false,
            max_overhead: None,
            plugin: Vec::new(),
            no_default_plugins: false,
            plugin_dir: Vec::new(),
            lock: None,
            allow_native: false,
            in_process: false,
            deterministic: false,
            probe_period: ProbePeriod::default(),
            plugin_config: PluginConfig::new(),
            plugin_limits: Limits::default(),
            metric_percentiles: Percent::DEFAULT.to_vec(),
            output_format: OutputFormat::Table,
            detail: false,
            record: None,
            save_result: None,
        }
    }
}

impl RunPlan {
    /// The model that runs.
    pub fn model_name(&self) -> &str {
        self.model.as_deref().unwrap_or(DEMO_MODEL)
    }

    /// The quantisation that the engine applies. The demo quantises, so that each operator collector has data.
    pub fn quantization(&self) -> &str {
        match (&self.quantize, &self.model) {
            (Some(name), _) => name,
            (None, None) => "fp8",
            (None, Some(_)) => "none",
        }
    }

    /// Which plugins run.
    pub fn plugins(&self) -> PluginPlan {
        PluginPlan {
            requests: self.plugin.clone(),
            defaults: !self.no_default_plugins,
            dirs: self.plugin_dir.clone(),
            lock: self.lock.clone(),
            allow_native: self.allow_native,
            in_process: self.in_process,
            deterministic: self.deterministic,
            probe_period: Some(self.probe_period),
            config: self.plugin_config.clone(),
            limits: self.plugin_limits.clone(),
        }
    }

    /// Tokens that one sequence takes in the KV cache.
    pub fn tokens_per_sequence(&self) -> u64 {
        u64::from(self.seq_len) + u64::from(self.output_len)
    }

    /// Refuses values that no run can have.
    ///
    /// # Errors
    /// The offending key with its value and what is allowed.
    pub fn validate(&self) -> Result<(), PlanError> {
        for (key, value) in [
            ("batch_size", self.batch_size),
            ("seq_len", self.seq_len),
            ("output_len", self.output_len),
            ("num_iters", self.num_iters),
            ("sample_every", self.sample_every),
        ] {
            if value == 0 {
                return Err(PlanError::value(key, 0, "at least 1"));
            }
        }
        if self.threads == Some(0) {
            return Err(PlanError::value(
                "threads",
                0,
                "at least 1, or leave it out for one per core",
            ));
        }
        if self.metric_percentiles.is_empty() {
            return Err(PlanError::value(
                "metric_percentiles",
                "[]",
                "at least one percentile",
            ));
        }
        if let (Some(limit), false) = (self.max_overhead, self.observer_effect) {
            return Err(PlanError::value(
                "max_overhead",
                limit,
                "left out, or used together with observer_effect (--observer-effect)",
            ));
        }
        self.plugin_limits.validate()?;
        if self.warmup_iters.checked_add(self.num_iters).is_none() {
            let allowed = "at most 4294967295 together with num_iters";
            return Err(PlanError::value("warmup_iters", self.warmup_iters, allowed));
        }
        Ok(())
    }
}

/// Reads a plan file.
///
/// # Errors
/// When the file cannot be read, is longer than 1 MiB or is not TOML.
pub fn read(path: &Path) -> Result<toml::Table, PlanError> {
    let unreadable = |source| PlanError::Read {
        path: path.to_owned(),
        source,
    };
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    // A bound, since the path may be a device that never ends.
    let limit = MAX_PLAN_BYTES + 1;
    let bytes = file.take(limit).read_to_string(&mut text).map_err(unreadable)?;
    if bytes as u64 == limit {
        return Err(PlanError::Long {
            path: path.to_owned(),
        });
    }
    parse(&text).map_err(|what| PlanError::Syntax {
        path: path.to_owned(),
        what,
    })
}

/// Reads TOML; what is wrong comes in one line.
fn parse(text: &str) -> Result<toml::Table, String> {
    text.parse().map_err(|error: toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start);
        let before = text.get(..at).unwrap_or_default();
        let line = 1 + before.matches('\n').count();
        format!("line {line}: {}", error.message())
    })
}

#[cfg(test)]
mod tests;
