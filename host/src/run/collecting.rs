//! Joins collectors and recording with the event stream.

use std::path::Path;
use std::sync::Arc;

use lm_bench_plugin::RunInfo;

use super::RunError;
use crate::clock::Clock;
use crate::events::{
    CollectMode, Collection, CollectionSetup, KindTable, Recorder, RecorderConfig, RecordingWriter, SymbolTable,
};
use crate::plan::{Collect, PluginPlan, RunPlan};
use crate::plugin::{Collectors, Policy, Request, SearchPath};

/// Ending that names a recording.
const RECORDING_EXTENSION: &str = "lmrec";

/// Loads the collectors that a plan asks for.
pub(super) fn collectors(plan: &PluginPlan, info: &RunInfo, kinds: &KindTable) -> Result<Collectors, RunError> {
    let request = Request {
        plugins: plan.requests.clone(),
        defaults: plan.defaults,
        config: plan.config.clone(),
        search: SearchPath::standard(&plan.dirs),
    };
    let policy = Policy { allow_native: plan.allow_native, ..Policy::default() };
    Ok(Collectors::load(&request, info, kinds, &policy)?)
}

/// Starts to collect.
pub(super) fn start(
    plan: &RunPlan,
    clock: &Clock,
    collectors: Collectors,
) -> Result<(Recorder, Collection<Collectors>), RunError> {
    let kinds = KindTable::builtin();
    let recording = plan.record.as_deref().map(|path| RecordingWriter::create(path, &kinds)).transpose()?;
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

/// Refuses output files that could not be written, before the run's time is spent.
pub(super) fn check_outputs(plan: &RunPlan) -> Result<(), RunError> {
    if let Some(path) = &plan.record
        && path.extension().is_none_or(|extension| extension != RECORDING_EXTENSION)
    {
        return Err(RunError::Unsupported(format!(
            "a recording is named NAME.{RECORDING_EXTENSION}, not {}",
            path.display()
        )));
    }
    plan.save_result.as_deref().map_or(Ok(()), check_writable)
}

fn check_writable(path: &Path) -> Result<(), RunError> {
    crate::report::check_writable(path).map_err(|source| RunError::File {
        what: "cannot write",
        path: path.to_owned(),
        source,
    })
}
