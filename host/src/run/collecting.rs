//! Joins collectors and recording with the event stream.

use std::sync::Arc;

use lm_bench_plugin::RunInfo;

use super::{Progress, RunError};
use crate::clock::Clock;
use crate::events::{
    CollectMode, Collection, CollectionSetup, KindTable, Recorder, RecorderConfig, RecordingWriter,
    SymbolTable,
};
use crate::plan::{Collect, PluginPlan, RunPlan};
use crate::plugin::{CacheState, CollectorOutcome, Collectors, Policy, ProbeOutcome, Probes, Requests};

/// Ending that names a recording.
const RECORDING_EXTENSION: &str = "lmrec";

/// Requests and policy of a plan.
fn requests(plan: &PluginPlan) -> (Requests, Policy) {
    let requests = Requests {
        plugins: plan.requests.clone(),
        defaults: plan.defaults,
        config: plan.config.clone(),
        probe_period: plan.probe_period.unwrap_or_default().time(),
        replay: plan.probe_period.is_none(),
    };
    let policy = Policy {
        allow_native: plan.allow_native,
        in_process: plan.in_process,
        deterministic: plan.deterministic,
        limits: plan.limits.clone(),
        plugin_dirs: plan.dirs.clone(),
        lock: plan.lock.clone(),
        ..Policy::default()
    };
    (requests, policy)
}

/// Refuses plugins that cannot be found or may not be loaded, before the time to load a model is spent, and states
/// the risk of native code in this process before any of it runs.
pub(super) fn check_plugins(plan: &PluginPlan, progress: &mut dyn Progress) -> Result<(), RunError> {
    let (requests, policy) = requests(plan);
    let native = Collectors::check(&requests, &policy)?;
    for path in native.iter().filter(|_| plan.in_process) {
        progress.warn(&format!(
            "{} is native code and --in-process loads it into this process: if it crashes or loops, the whole run \
             ends without a result, and its limits of time and memory cannot be enforced",
            path.display()
        ));
    }
    Ok(())
}

/// Loads the collectors that a plan asks for.
pub(super) fn collectors(
    plan: &PluginPlan,
    info: &RunInfo,
    kinds: &KindTable,
) -> Result<Collectors, RunError> {
    let (requests, policy) = requests(plan);
    Ok(Collectors::load(&requests, info, kinds, &policy)?)
}

/// Loads and opens the probes that a plan asks for.
pub(super) fn probes(plan: &RunPlan, info: &RunInfo) -> Result<Probes, RunError> {
    let (requests, policy) = requests(&plan.plugins());
    let probes = Probes::load(&requests, info, &policy)?;
    if plan.observer_effect && !probes.is_empty() {
        let text = "--observer-effect compares iterations with and without collectors, and probes sample in both: \
                    leave the probes out, or --observer-effect";
        return Err(RunError::Unsupported(text.to_owned()));
    }
    Ok(probes)
}

/// What probes logged.
pub(super) fn remarks_of_probes(outcomes: &[ProbeOutcome]) -> Vec<String> {
    let of_one = |outcome: &ProbeOutcome| {
        let id = &outcome.manifest.id;
        let refused = (outcome.log_refused > 0)
            .then(|| format!("{id}: {} more log lines were refused", outcome.log_refused));
        let lines = outcome
            .log
            .iter()
            .map(|line| format!("{id}: {:?}: {}", line.level, line.text));
        lines.chain(refused).collect::<Vec<_>>()
    };
    outcomes.iter().flat_map(of_one).collect()
}

/// What the user should know about the plugins of a run beside the result.
pub(super) fn remarks_before(collectors: &Collectors) -> Vec<String> {
    let shadows = collectors
        .shadows()
        .map(|(id, path)| format!("{id}: {} is not taken, another one comes first", path.display()));
    let cache = match collectors.cache() {
        Some(CacheState::Off(reason)) => Some(format!(
            "compiled components are not kept, each start compiles anew: {reason}"
        )),
        _ => None,
    };
    shadows.chain(cache).collect()
}

/// What plugins logged, and what was missing for them.
pub(super) fn remarks_after(outcomes: &[CollectorOutcome]) -> Vec<String> {
    let of_one = |outcome: &CollectorOutcome| {
        let id = &outcome.manifest.id;
        let mut lines: Vec<String> = outcome
            .log
            .iter()
            .map(|line| format!("{id}: {:?}: {}", line.level, line.text))
            .collect();
        if outcome.log_refused > 0 {
            lines.push(format!(
                "{id}: {} more log lines were refused",
                outcome.log_refused
            ));
        }
        lines.extend(
            outcome
                .absent_kinds
                .iter()
                .map(|kind| format!("{id}: this run has no events {kind}")),
        );
        lines
    };
    outcomes.iter().flat_map(of_one).collect()
}

/// Starts to collect.
pub(super) fn start(
    plan: &RunPlan,
    (clock, kinds): (&Clock, KindTable),
    collectors: Collectors,
) -> Result<(Recorder, Collection<Collectors>), RunError> {
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
