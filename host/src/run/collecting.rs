//! Joins collectors and recording with the event stream.

use std::sync::Arc;

use lm_bench_plugin::RunInfo;

use super::RunError;
use crate::clock::Clock;
use crate::events::{
    CollectMode, Collection, CollectionSetup, Finished, KindTable, Recorder, RecorderConfig, RecordingWriter,
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

/// Event stream of a run, and the symbols that its rows refer to.
pub(super) struct Collecting {
    collection: Collection<Collectors>,
    symbols: Arc<SymbolTable>,
}

impl Collecting {
    /// Ends the stream: collectors that waited get their events now.
    pub(super) fn finish(
        self,
        recorder: Recorder,
    ) -> Result<(Finished<Collectors>, Arc<SymbolTable>), RunError> {
        Ok((self.collection.finish(recorder)?, self.symbols))
    }
}

/// Starts to collect.
pub(super) fn start(
    plan: &RunPlan,
    clock: &Clock,
    collectors: Collectors,
) -> Result<(Recorder, Collecting), RunError> {
    let kinds = KindTable::builtin();
    let recording = plan
        .record
        .as_deref()
        .map(|path| RecordingWriter::create(path, &kinds))
        .transpose()?;
    let symbols = Arc::new(SymbolTable::new());
    let setup = CollectionSetup {
        config: RecorderConfig {
            level: plan.instrument.into(),
            sample_every: plan.sample_every,
            raised: collectors.demands().kinds,
            ..RecorderConfig::default()
        },
        kinds,
        symbols: Arc::clone(&symbols),
        clock: clock.clone(),
        mode: match plan.collect {
            Collect::Live => CollectMode::Live,
            Collect::After => CollectMode::default(),
        },
    };
    let (recorder, collection) = Collection::start(setup, recording, collectors)?;
    Ok((recorder, Collecting { collection, symbols }))
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
