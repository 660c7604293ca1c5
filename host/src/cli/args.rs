//! Flags. Each flag that belongs to the plan has the plan's name for it, so that flags, plan file and record
//! speak of the same thing.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::LoadFormat;
use crate::plan::{Collect, Instrument, MaxOverhead, OutputFormat, PluginConfig, ProbePeriod, PromptSource};
use crate::stats::Percent;

/// Largest integer of a plan: TOML has none above.
const MAX_INTEGER: u64 = i64::MAX as u64;

/// Flags of `run`.
#[derive(Debug, Default, Args, Serialize)]
pub(super) struct RunArgs {
    /// Plan file (TOML) that flags are laid over
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub plan: Option<PathBuf>,

    #[command(flatten)]
    #[serde(flatten)]
    pub workload: WorkloadArgs,

    #[command(flatten)]
    #[serde(flatten)]
    pub measurement: MeasurementArgs,

    #[command(flatten)]
    #[serde(flatten)]
    pub plugins: PluginArgs,

    #[command(flatten)]
    #[serde(flatten)]
    pub output: OutputArgs,
}

/// What runs.
#[derive(Debug, Default, Args, Serialize)]
#[command(next_help_heading = "What runs")]
pub(super) struct WorkloadArgs {
    /// Preset, GGUF file, or directory with config.json and safetensors [default: tiny-moe, the demo]
    #[arg(long, value_name = "NAME|PATH")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,

    /// How weights are obtained [default: auto]
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_format: Option<LoadFormat>,

    /// Device that computes [default: auto]
    #[arg(long, value_name = "auto|cpu")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,

    /// Quantisation that the engine applies: none, fp8 [default: fp8 for the demo, else none]
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantize: Option<String>,

    /// Sequences per batch [default: 1]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_size: Option<u32>,

    /// Prompt tokens per sequence [default: 128]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq_len: Option<u32>,

    /// Output tokens per sequence [default: 32]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_len: Option<u32>,

    /// Measured iterations, each one prefill and its decode steps [default: 5]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_iters: Option<u32>,

    /// Iterations before the measured ones, reported apart [default: 1]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup_iters: Option<u32>,

    /// Seed of dummy weights and prompts [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=MAX_INTEGER))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,

    /// Threads of the CPU engine [default: one per physical core]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,

    /// Where prompts come from [default: auto]
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_source: Option<PromptSource>,
}

/// What is measured.
#[derive(Debug, Default, Args, Serialize)]
#[command(next_help_heading = "What is measured")]
pub(super) struct MeasurementArgs {
    /// Level of instrumentation; collectors raise it for what they subscribe to [default: steps]
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instrument: Option<Instrument>,

    /// Instrument one step in N at the levels ops and kernels [default: 8]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_every: Option<u32>,

    /// When collectors see the events [default: after]
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collect: Option<Collect>,

    /// Pair each measured iteration with a bare one and report what recording, and under --collect live the
    /// collectors too, cost the engine
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub observer_effect: bool,

    /// Make the result invalid where the observer effect is surely above this; needs --observer-effect
    #[arg(long, value_name = "P%")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_overhead: Option<MaxOverhead>,

    /// Time between two samples of each probe, such as 10ms or 1s [default: 100ms]
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_period: Option<ProbePeriod>,

    /// Write the events to NAME.lmrec for `replay`
    #[arg(long, value_name = "NAME.lmrec")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
}

/// Which plugins run.
#[derive(Debug, Default, Args, Serialize)]
#[command(next_help_heading = "Plugins")]
pub(super) struct PluginArgs {
    /// Run a plugin: an id or a path; may be given several times
    #[arg(long, value_name = "ID|PATH")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plugin: Vec<String>,

    /// Configure a plugin; VALUE is JSON, or text where it is not; may be given several times
    #[arg(long, value_name = "ID.KEY=VALUE", value_parser = config_entry)]
    #[serde(skip)]
    pub plugin_config: Vec<ConfigEntry>,

    /// Change what a plugin may take, such as memory_bytes=134217728; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = limit_entry)]
    #[serde(skip)]
    pub plugin_limit: Vec<(String, i64)>,

    /// Leave out the built-in collectors that run by default
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_default_plugins: bool,

    /// Look for plugins in this folder first; may be given several times
    #[arg(long, value_name = "FOLDER")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plugin_dir: Vec<PathBuf>,

    /// Lock file that pins plugins [default: lm-bench.lock, if there is one]
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<PathBuf>,

    /// Permit native plugins (.so): they can do whatever you can
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_native: bool,

    /// Load native plugins into this process instead of one of their own: faster per batch, but a crash or an endless
    /// loop of theirs then ends the whole run
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_process: bool,

    /// End calls of WASM plugins by fuel instead of time, so that the same events lead to the same outcome on every
    /// machine; refuses native plugins
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deterministic: bool,
}

/// What is printed and written.
#[derive(Debug, Default, Args, Serialize)]
#[command(next_help_heading = "Result")]
pub(super) struct OutputArgs {
    /// Shape of the result on stdout [default: table]
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_format: Option<OutputFormat>,

    /// List metrics per layer and expert, and percentiles with their intervals, in the table
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub detail: bool,

    /// Percentiles reported for distributions [default: 50,90,95,99]
    #[arg(long, value_name = "P,P", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metric_percentiles: Vec<Percent>,

    /// Write the record (JSON) to this file too
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub save_result: Option<PathBuf>,
}

/// One `--plugin-config`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ConfigEntry {
    id: String,
    key: String,
    value: Value,
}

pub(super) fn config_entry(text: &str) -> Result<ConfigEntry, String> {
    let parts = text
        .split_once('=')
        .and_then(|(path, value)| Some((path.split_once('.')?, value)));
    match parts {
        Some(((id, key), value)) if !id.is_empty() && !key.is_empty() => {
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
            // A plan keeps it as TOML.
            toml::Value::try_from(&value)
                .map_err(|_| "null and integers above 2^63 - 1 are no values of a plan".to_owned())?;
            Ok(ConfigEntry {
                id: id.to_owned(),
                key: key.to_owned(),
                value,
            })
        }
        _ => Err("expected ID.KEY=VALUE, such as fp8-error.detail=layer".to_owned()),
    }
}

pub(super) fn limit_entry(text: &str) -> Result<(String, i64), String> {
    let parts = text
        .split_once('=')
        .and_then(|(key, value)| Some((key, value.parse::<i64>().ok()?)));
    match parts {
        Some((key, value)) if !key.is_empty() && value >= 0 => Ok((key.to_owned(), value)),
        _ => Err("expected KEY=VALUE with a whole number, such as batch_ms=200".to_owned()),
    }
}

impl PluginArgs {
    /// The limits that were given, by key.
    fn limits(&self) -> toml::Table {
        limits_of(&self.plugin_limit)
    }

    /// Configuration by plugin id.
    fn config(&self) -> PluginConfig {
        config_of(&self.plugin_config)
    }
}

/// Limits by key, as a plan has them.
pub(super) fn limits_of(entries: &[(String, i64)]) -> toml::Table {
    entries
        .iter()
        .map(|(key, value)| (key.clone(), toml::Value::Integer(*value)))
        .collect()
}

/// Configuration by plugin id; of two values for a key the later one counts.
pub(super) fn config_of(entries: &[ConfigEntry]) -> PluginConfig {
    let mut config = PluginConfig::new();
    for entry in entries {
        let keys: &mut Map<_, _> = config.entry(entry.id.clone()).or_default();
        keys.insert(entry.key.clone(), entry.value.clone());
    }
    config
}

impl RunArgs {
    /// The flags that were given, by the plan's names.
    ///
    /// # Errors
    /// When a path has no TOML form, because it is not UTF-8; names the flag.
    pub(super) fn overlay(&self) -> Result<toml::Table, String> {
        let record = self.measurement.record.as_slice();
        check_text("--record", record)?;
        overlay(self, &self.plugins, &self.output)
    }
}

/// The flags that were given to a command that has these two groups among its own, by the plan's names.
///
/// # Errors
/// When a path has no TOML form, because it is not UTF-8; names the flag.
pub(super) fn overlay(
    flags: &impl Serialize,
    plugins: &PluginArgs,
    output: &OutputArgs,
) -> Result<toml::Table, String> {
    check_text("--save-result", output.save_result.as_slice())?;
    check_text("--plugin-dir", &plugins.plugin_dir)?;
    check_text("--lock", plugins.lock.as_slice())?;
    let form = |error: toml::ser::Error| format!("a flag has no form in a plan: {error}");
    let mut table = toml::Table::try_from(flags).map_err(form)?;
    if !plugins.plugin_config.is_empty() {
        let config = toml::Value::try_from(plugins.config()).map_err(form)?;
        table.insert("plugin_config".to_owned(), config);
    }
    if !plugins.plugin_limit.is_empty() {
        table.insert("plugin_limits".to_owned(), toml::Value::Table(plugins.limits()));
    }
    Ok(table)
}

fn check_text(flag: &str, paths: &[PathBuf]) -> Result<(), String> {
    match paths.iter().find(|path| path.to_str().is_none()) {
        Some(path) => Err(format!(
            "{flag}: {} is not UTF-8; name another path",
            path.display()
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan;

    #[derive(clap::Parser)]
    struct Flags {
        #[command(flatten)]
        run: RunArgs,
    }

    fn parse(flags: &[&str]) -> RunArgs {
        let line = std::iter::once("run").chain(flags.iter().copied());
        <Flags as clap::Parser>::try_parse_from(line)
            .expect("valid flags")
            .run
    }

    #[test]
    fn each_flag_reaches_the_plan() {
        let args = parse(&[
            "--model=m",
            "--load-format=dummy",
            "--device=cpu",
            "--quantize=fp8",
            "--batch-size=2",
            "--seq-len=3",
            "--output-len=4",
            "--num-iters=15",
            "--warmup-iters=6",
            "--seed=7",
            "--threads=8",
            "--prompt-source=random",
            "--instrument=ops",
            "--sample-every=9",
            "--collect=live",
            "--observer-effect",
            "--probe-period=2s",
            "--max-overhead=1%",
            "--record=r.lmrec",
            "--plugin=p",
            "--plugin-config=p.k=[1]",
            "--plugin-limit=batch_ms=200",
            "--no-default-plugins",
            "--plugin-dir=d",
            "--allow-native",
            "--in-process",
            "--deterministic",
            "--lock=l.lock",
            "--output-format=json",
            "--detail",
            "--metric-percentiles=50,99.9",
            "--save-result=s.json",
        ]);
        let overlay = args.overlay().expect("TOML");
        let plan = plan::resolve(toml::Table::new(), overlay.clone()).expect("a valid plan");
        let defaults = toml::Table::try_from(plan::RunPlan::default()).expect("TOML");
        let plan = toml::Table::try_from(plan).expect("TOML");
        for (key, value) in &plan {
            assert_ne!(Some(value), defaults.get(key), "no flag sets {key}");
        }
        for key in overlay.keys() {
            assert!(plan.contains_key(key), "flag {key} sets nothing");
        }
    }

    #[test]
    fn config_values_are_json_or_text() {
        let entry = |text| config_entry(text).map(|entry| entry.value);
        assert_eq!(entry("a.k=3"), Ok(Value::from(3)));
        assert_eq!(entry("a.k=per row"), Ok(Value::from("per row")));
        assert_eq!(entry("a.k=x=y"), Ok(Value::from("x=y")));
        assert!(entry("a=3").is_err() && entry(".k=3").is_err() && entry("a.k").is_err());
        assert!(entry("a.k=null").is_err() && entry("a.k=9223372036854775808").is_err());
    }
}
