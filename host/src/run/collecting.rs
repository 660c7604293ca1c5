//! Joins collectors and recording with the event stream.

use std::sync::Arc;

use lm_bench_plugin::RunInfo;

use super::RunError;
use crate::clock::Clock;
use crate::events::{
    CollectMode, Collection, CollectionSetup, KindTable, Recorder, RecorderConfig, RecordingWriter,
    SymbolTable,
};
use crate::plan::{Collect, PluginPlan, RunPlan};
use crate::plugin::{Collectors, Policy, Requests};

/// Ending that names a recording.
const RECORDING_EXTENSION: &str = "lmrec";

/// Loads the collectors that a plan asks for.
pub(super) fn collectors(
    plan: &PluginPlan,
    info: &RunInfo,
    kinds: &KindTable,
) -> Result<Collectors, RunError> {
    let requests = Requests {
        plugins: plan.requests.clone(),
        defaults: plan.defaults,
        config: plan.config.clone(),
    };
    let policy = Policy {
        allow_native: plan.allow_native,
        plugin_dirs: plan.dirs.clone(),
        ..Policy::default()
    };
    Ok(Collectors::load(&requests, info, kinds, &policy)?)
}

/// Starts to collect.
pub(super) fn start(
    plan: &RunPlan,
    clock: &Clock,
    collectors: Collectors,
) -> Result<(Recorder, Collection<Collectors>), RunError> {
    let kinds = KindTable::builtin();
    let recording = plan
        .record
        .as_deref()
        .map(|path| RecordingWriter::create(path, &kinds))
        .transpose()?;
    let setup = CollectionSetup {
        config: RecorderConfig {
            level: plan.instrument.into(),
            sample_every: plan.sample_every,
            raised: collectors.demands().kinds,
            ..RecorderConfig::default()
        },
        kinds,
        symbols: Arc::new(SymbolTable::new()),
        clock: clock.clone(),
        mode: match plan.collect {
            Collect::Live => CollectMode::Live,
            Collect::After => CollectMode::default(),
        },
    };
    Ok(Collection::start(setup, recording, collectors)?)
}

/// Refuses a recording that `replay` would not take for one.
pub(super) fn check_recording_name(plan: &RunPlan) -> Result<(), RunError> {
    if let Some(path) = &plan.record
        && path
            .extension()
            .is_none_or(|extension| extension != RECORDING_EXTENSION)
    {
        return Err(RunError::Unsupported(format!(
            "a recording is named NAME.{RECORDING_EXTENSION}, not {}",
            path.display()
        )));
    }
    Ok(())
}
