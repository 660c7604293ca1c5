//! `lm-bench replay`.

use std::path::PathBuf;

use clap::Args;

use super::args::{OutputArgs, PluginArgs};
use super::exit::{Exit, Failure};
use super::progress::Shown;
use super::run::{ended, save, show};
use crate::plan::{PluginPlan, RunPlan};
use crate::run::{self, ReplayPlan};

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

/// Replays a recording.
pub(super) fn replay(args: &ReplayArgs) -> Result<Exit, Failure> {
    let defaults = RunPlan {
        metric_percentiles: match args.output.metric_percentiles.as_slice() {
            [] => RunPlan::default().metric_percentiles,
            given => given.to_vec(),
        },
        ..RunPlan::default()
    };
    defaults.validate().map_err(Failure::unusable)?;
    let plan = ReplayPlan {
        recording: args.recording.clone(),
        plugins: PluginPlan {
            requests: args.plugins.plugin.clone(),
            defaults: !args.plugins.no_default_plugins,
            dirs: args.plugins.plugin_dir.clone(),
            allow_native: args.plugins.allow_native,
            config: args.plugins.config(),
        },
        metric_percentiles: defaults.metric_percentiles,
    };
    let mut shown = Shown::detect();
    let finished = run::replay(&plan, &mut shown).map_err(|error| ended(&mut shown, &error))?;
    save(&finished, args.output.save_result.as_deref())?;
    show(&finished, args.output.output_format.unwrap_or_default())
}
