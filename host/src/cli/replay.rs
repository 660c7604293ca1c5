//! `lm-bench replay`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::args::{OutputArgs, PluginArgs, overlay};
use super::exit::{Exit, Failure};
use super::progress::Shown;
use super::run::{check_target, ended, save, show, stop_on_signal};
use crate::plan;
use crate::run::{self, ReplayPlan};

/// Flags of `replay`: those of a plan that say something about collectors and the result.
#[derive(Debug, Args, Serialize)]
pub(super) struct ReplayArgs {
    /// Recording to replay
    #[arg(value_name = "NAME.lmrec")]
    #[serde(skip)]
    recording: PathBuf,

    #[command(flatten)]
    #[serde(flatten)]
    plugins: PluginArgs,

    #[command(flatten)]
    #[serde(flatten)]
    output: OutputArgs,
}

/// Replays a recording.
pub(super) fn replay(args: &ReplayArgs) -> Result<Exit, Failure> {
    let flags = overlay(args, &args.plugins, &args.output).map_err(Failure::unusable)?;
    let settings = plan::resolve(toml::Table::new(), flags).map_err(Failure::unusable)?;
    let plan = ReplayPlan {
        recording: args.recording.clone(),
        plugins: plan::PluginPlan {
            // A replay takes no samples.
            probe_period: None,
            ..settings.plugins()
        },
        metric_percentiles: settings.metric_percentiles,
    };
    let target = settings.save_result.as_deref();
    check_target(target)?;
    let stop = stop_on_signal();
    let mut shown = Shown::detect();
    let finished = run::replay(&plan, &mut shown, &stop).map_err(|error| ended(&mut shown, &error))?;
    let saved = save(&finished, target);
    let exit = show(&finished, settings.output_format, settings.detail)?;
    saved.map(|()| exit)
}
