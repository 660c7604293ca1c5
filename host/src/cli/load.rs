//! `lm-bench load`.

use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value};

use super::args::{OutputArgs, PluginArgs, overlay};
use super::exit::{Exit, Failure};
use super::progress::Shown;
use super::run::{check_target, ended, save, show, stop_on_signal};
use crate::plan;
use crate::run::{self, LoadPlan};
use crate::workload::{Lengths, RequestRate};

/// Flags of `load`.
#[derive(Debug, Args, Serialize)]
pub(super) struct LoadArgs {
    /// Where the server is: http://HOST:PORT, with a path where that is not /v1/completions
    #[arg(long, value_name = "URL")]
    #[serde(skip)]
    url: String,

    /// Name of the model at the server
    #[arg(long, value_name = "NAME")]
    #[serde(skip)]
    model: String,

    /// Requests per second of an open loop; inf sends all at once. Without it the loop is closed: a request follows when
    /// another ended
    #[arg(long, value_name = "RATE")]
    #[serde(skip)]
    request_rate: Option<RequestRate>,

    /// Shape of the gaps between arrivals: 1 Poisson, less burstier, more steadier, inf constant
    #[arg(long, value_name = "SHAPE", default_value_t = 1.0, value_parser = burstiness)]
    #[serde(skip)]
    burstiness: f64,

    /// Most requests at once [default: 1 in a closed loop, else no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    #[serde(skip)]
    max_concurrency: Option<u32>,

    /// Measured requests
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    #[serde(skip)]
    num_prompts: u64,

    /// Requests before the measured ones, one after another, reported apart
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    #[serde(skip)]
    num_warmups: u64,

    /// Prompt tokens wanted: 128, uniform:64-256, normal:MEAN,SD, lognormal:MEAN,SD; the last two with ,LOW-HIGH to truncate.
    /// Four bytes of English count as one; the report has the server's count
    #[arg(long, value_name = "LENGTHS", default_value = "128")]
    #[serde(skip)]
    seq_len: Lengths,

    /// Output tokens asked for, written like --seq-len
    #[arg(long, value_name = "LENGTHS", default_value = "32")]
    #[serde(skip)]
    output_len: Lengths,

    /// Ask for whole answers; there is no time to first token then
    #[arg(long)]
    #[serde(skip)]
    no_stream: bool,

    /// Keys to add to each request's body, as a JSON object, such as '{"ignore_eos":true}'
    #[arg(long, value_name = "JSON", value_parser = object)]
    #[serde(skip)]
    extra_body: Option<Map<String, Value>>,

    /// Environment variable that holds the server's key
    #[arg(long, value_name = "NAME")]
    #[serde(skip)]
    api_key_env: Option<String>,

    /// Seconds after which a request counts as failed
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0, value_parser = seconds)]
    #[serde(skip)]
    request_timeout: f64,

    /// Seed of lengths, prompts and arrivals [default: 0]
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,

    /// Write all events to this file (NAME.lmrec)
    #[arg(long, value_name = "NAME.lmrec")]
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<std::path::PathBuf>,

    #[command(flatten)]
    #[serde(flatten)]
    plugins: PluginArgs,

    #[command(flatten)]
    #[serde(flatten)]
    output: OutputArgs,
}

fn burstiness(text: &str) -> Result<f64, String> {
    let shape = text.parse::<f64>().ok().filter(|shape| *shape >= 0.01);
    shape.ok_or_else(|| "burstiness is a number of at least 0.01, or inf".to_owned())
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text
        .parse::<f64>()
        .ok()
        .filter(|seconds| (0.001..=86_400.0).contains(seconds));
    seconds.ok_or_else(|| "a time-out is 0.001 to 86400 seconds".to_owned())
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))
}

/// Runs the load that the flags describe.
pub(super) fn load(args: &LoadArgs) -> Result<Exit, Failure> {
    let plan = plan(args)?;
    let target = plan.settings.save_result.as_deref();
    check_target(target)?;
    let stop = stop_on_signal();
    let mut shown = Shown::detect();
    let finished = run::load(&plan, &mut shown, &stop).map_err(|error| ended(&mut shown, &error))?;
    let saved = save(&finished, target);
    let exit = show(&finished, plan.settings.output_format, plan.settings.detail)?;
    saved.map(|()| exit)
}

fn plan(args: &LoadArgs) -> Result<LoadPlan, Failure> {
    let flags = overlay(args, &args.plugins, &args.output).map_err(Failure::unusable)?;
    let settings = plan::resolve(toml::Table::new(), flags).map_err(Failure::unusable)?;
    let api_key = match &args.api_key_env {
        None => None,
        Some(name) => {
            let key = std::env::var(name).map_err(|_| {
                Failure::unusable(format!(
                    "--api-key-env: the environment has no {name}, or it is not text"
                ))
            })?;
            Some(key)
        }
    };
    let closed = args.request_rate.is_none();
    Ok(LoadPlan {
        url: args.url.clone(),
        model: args.model.clone(),
        request_rate: args.request_rate,
        burstiness: args.burstiness,
        max_concurrency: args.max_concurrency.or(closed.then_some(1)),
        num_prompts: args.num_prompts,
        num_warmups: args.num_warmups,
        prompt_len: args.seq_len,
        output_len: args.output_len,
        stream: !args.no_stream,
        extra_body: args.extra_body.clone().unwrap_or_default(),
        request_timeout_s: args.request_timeout,
        seed: settings.seed,
        api_key,
        settings,
    })
}
