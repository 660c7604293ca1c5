//! `lm-bench replay`.

use std::path::PathBuf;

use clap::Args;

use super::args::{OutputArgs, PluginArgs};
use super::exit::{Exit, Failure};
use super::progress::Shown;
use super::run::{check_target, ended, save, show};
use crate::plan::PluginPlan;
use crate::plugin::Limits;
use crate::run::{self, ReplayPlan};
use crate::stats::Percent;

/// Flags of `replay`.
#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    /// Recording to replay
    #[arg(value_name = "NAME.lmrec")]
    recording: PathBuf,

    #[command(flatten)]
    plugins: PluginArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// The default limits with those that were given.
fn limits(args: &ReplayArgs) -> Result<Limits, Failure> {
    let refused = |why: String| Failure::unusable(format!("--plugin-limit: {why}"));
    let given = args.plugins.limits();
    let limits: Limits = given
        .try_into()
        .map_err(|error: toml::de::Error| refused(error.to_string().trim().replace('\n', " ")))?;
    limits.validate().map_err(|error| refused(error.to_string()))?;
    Ok(limits)
}

/// Replays a recording.
pub(super) fn replay(args: &ReplayArgs) -> Result<Exit, Failure> {
    let percentiles = match args.output.metric_percentiles.as_slice() {
        [] => Percent::DEFAULT.to_vec(),
        given => given.to_vec(),
    };
    let plan = ReplayPlan {
        recording: args.recording.clone(),
        plugins: PluginPlan {
            requests: args.plugins.plugin.clone(),
            defaults: !args.plugins.no_default_plugins,
            dirs: args.plugins.plugin_dir.clone(),
            lock: args.plugins.lock.clone(),
            allow_native: args.plugins.allow_native,
            in_process: args.plugins.in_process,
            config: args.plugins.config(),
            limits: limits(args)?,
        },
        metric_percentiles: percentiles,
    };
    check_target(args.output.save_result.as_deref())?;
    let mut shown = Shown::detect();
    let finished = run::replay(&plan, &mut shown).map_err(|error| ended(&mut shown, &error))?;
    let saved = save(&finished, args.output.save_result.as_deref());
    let exit = show(
        &finished,
        args.output.output_format.unwrap_or_default(),
        args.output.detail,
    )?;
    saved.map(|()| exit)
}
