//! Puts what a run found out into its record.

use std::collections::BTreeMap;

use lm_bench_plugin::RunInfo;
use serde::{Deserialize, Serialize};

use super::RunError;
use super::driver::Done;
use crate::events::{RecordingWriter, SinkError, Totals};
use crate::plan::{PluginPlan, RunPlan};
use crate::plugin::{CollectorOutcome, Door, ProbeOutcome};
use crate::report::{
    Counts, EngineFacts, Environment, EventLosses, EventTotals, Headline, Iteration, ModelFacts, Note,
    PluginDoor, PluginRecord, ProbeRecord, RunRecord, Timings, TokenSource, Warmup, config_sha256, cpu_share,
    metric_records, ns_per_row,
};
use crate::stats::Percent;

/// What the driver did.
pub(super) struct Parts {
    pub(super) warmup: Done,
    pub(super) done: Done,
}

/// What a recording keeps beside the events: the facts that collectors were told, and the record without metrics.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RecordedRun {
    pub(super) run_info: RunInfo,
    pub(super) record: RunRecord,
}

/// Facts that no iteration changes.
pub(super) struct Facts {
    pub(super) started_unix_ms: u64,
    pub(super) environment: Environment,
    pub(super) engine: EngineFacts,
    pub(super) model: ModelFacts,
}

/// The record of a run whose collectors have not reported yet.
pub(super) fn of_iterations(plan: &RunPlan, facts: Facts, parts: &Parts) -> RunRecord {
    let (warmup, done) = (&parts.warmup, &parts.done);
    let (prefill_latency_ms, decode_latency_per_token_ms) = Headline::latencies(&warmup.iterations);
    RunRecord {
        started_unix_ms: facts.started_unix_ms,
        headline: Headline::of(&done.iterations, None),
        token_source: TokenSource::Engine,
        warmup: Warmup {
            iterations: warmup.iterations.len() as u64,
            prefill_latency_ms,
            decode_latency_per_token_ms,
        },
        counts: counts(plan, done),
        timings: Timings {
            warmup_s: Some(seconds(warmup.wall_ns)),
            measured_s: Some(seconds(done.wall_ns)),
            bare_s: plan.observer_effect.then(|| seconds(done.bare_ns)),
            ..Timings::default()
        },
        model: facts.model,
        engine: facts.engine,
        environment: facts.environment,
        plan: resolved(plan),
        ..RunRecord::empty()
    }
}

/// Nanoseconds as seconds.
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

fn counts(plan: &RunPlan, done: &Done) -> Counts {
    let sum = |tokens: fn(&Iteration) -> u64| done.iterations.iter().map(tokens).sum();
    Counts {
        iterations: done.iterations.len() as u64,
        iterations_planned: u64::from(plan.num_iters),
        decode_steps: sum(|one| one.decode_steps),
        requests: done.requests,
        prompt_tokens: sum(|one| one.prompt_tokens),
        output_tokens: sum(|one| one.output_tokens),
        errors: 0,
    }
}

/// The plan as it was in force.
fn resolved(plan: &RunPlan) -> BTreeMap<String, serde_json::Value> {
    let resolved = RunPlan {
        model: Some(plan.model_name().to_owned()),
        quantize: Some(plan.quantization().to_owned()),
        ..plan.clone()
    };
    match serde_json::to_value(resolved) {
        Ok(serde_json::Value::Object(keys)) => keys.into_iter().collect(),
        _ => unreachable!("a plan is a struct with string keys"),
    }
}

/// Puts down how the plugins of a replay were limited, in place of those of the recorded run.
pub(super) fn add_replay_plan(record: &mut RunRecord, plugins: &PluginPlan) {
    let limits = serde_json::to_value(&plugins.limits).expect("limits are a struct of numbers");
    let keys = [
        ("plugin_limits", limits),
        ("deterministic", plugins.deterministic.into()),
    ];
    let keys = keys.map(|(key, value)| (key.to_owned(), value));
    record.plan.extend(keys);
}

/// Adds the account of the event stream.
pub(super) fn add_collected(record: &mut RunRecord, totals: &Totals) {
    for totals in &totals.kinds {
        let Some(weights) = totals.weights else { continue };
        let entry = EventTotals {
            rows: totals.recorded,
            lost: totals.lost,
            weight: weights.greatest,
            least_weight: Some(weights.least),
        };
        record.events.insert(totals.kind.clone(), entry);
    }
    record.event_losses = EventLosses {
        blocks_dropped: totals.blocks_dropped,
        rows_over_budget: totals.rows_over_budget,
        rows_refused: totals.rows_refused,
    };
}

/// The reason against a result whose collectors were not given all rows because the user interrupted.
pub(super) fn rows_cut(rows: u64) -> Option<Note> {
    (rows > 0).then(|| {
        let text = format!("collecting was interrupted: {rows} rows never reached the collectors");
        Note::new("interrupted", text)
    })
}

/// What the collectors of a run or replay leave.
pub(super) struct Reported<'a> {
    pub(super) outcomes: &'a [CollectorOutcome],
    /// Time that their share of the processor refers to.
    pub(super) duration_ns: u64,
    /// Whether they were not given all rows because the user interrupted.
    pub(super) cut: bool,
}

/// Adds metrics and accounts of the collectors.
pub(super) fn add_outcomes(record: &mut RunRecord, reported: &Reported<'_>, percentiles: &[Percent]) {
    for outcome in reported.outcomes {
        let manifest = &outcome.manifest;
        let mut metrics = metric_records(&manifest.id, &manifest.metrics, &outcome.metrics, percentiles);
        let partial = outcome.partial || reported.cut;
        for metric in &mut metrics {
            metric.partial = partial && metric.value.is_some();
        }
        record.metrics.extend(metrics);
        record.plugins.push(PluginRecord {
            partial,
            ..plugin_record(outcome, reported.duration_ns)
        });
    }
    record
        .metrics
        .sort_by(|a, b| (&a.plugin, &a.name, &a.labels).cmp(&(&b.plugin, &b.name, &b.labels)));
    record.plugins.sort_by(|a, b| a.id.cmp(&b.id));
}

/// Adds the accounts of the probes.
pub(super) fn add_probes(record: &mut RunRecord, outcomes: &[ProbeOutcome], duration_ns: u64) {
    record.probes.extend(outcomes.iter().map(|outcome| {
        ProbeRecord {
            id: outcome.manifest.id.clone(),
            version: outcome.manifest.version.clone(),
            door: PluginDoor::Dylib,
            isolated: outcome.isolated,
            path: outcome.path.as_ref().map(|path| path.display().to_string()),
            sha256: outcome.sha256.clone(),
            config_sha256: config_sha256(&outcome.config),
            config: outcome.config.clone(),
            kinds: outcome
                .manifest
                .kinds
                .iter()
                .map(|kind| kind.name.clone())
                .collect(),
            period_ns: outcome.period.as_nanos() as u64,
            samples: outcome.samples,
            late: outcome.late,
            missed: outcome.missed,
            rows: outcome.rows,
            busy_ns: outcome.busy_ns,
            ns_per_sample: ns_per_row(outcome.busy_ns, outcome.samples),
            longest_ns: outcome.longest_ns,
            cpu_share: cpu_share(outcome.busy_ns, duration_ns),
            peak_memory: outcome.peak_memory,
            faults: outcome.faults.clone(),
        }
    }));
}

fn plugin_record(outcome: &CollectorOutcome, duration_ns: u64) -> PluginRecord {
    PluginRecord {
        id: outcome.manifest.id.clone(),
        version: outcome.manifest.version.clone(),
        door: door(outcome.door),
        isolated: (outcome.door == Door::Dylib).then_some(outcome.isolated),
        path: outcome.path.as_ref().map(|path| path.display().to_string()),
        sha256: outcome.sha256.clone(),
        config_sha256: config_sha256(&outcome.config),
        config: outcome.config.clone(),
        rows: outcome.rows,
        lost: outcome.lost,
        calls: outcome.calls,
        busy_ns: outcome.busy_ns,
        ns_per_row: ns_per_row(outcome.busy_ns, outcome.rows),
        cpu_share: cpu_share(outcome.busy_ns, duration_ns),
        peak_memory: outcome.peak_memory,
        fuel: outcome.fuel,
        faults: outcome.faults.clone(),
        partial: outcome.partial,
        metrics: outcome.metrics.len() as u64,
    }
}

fn door(door: Door) -> PluginDoor {
    match door {
        Door::Builtin => PluginDoor::Builtin,
        Door::Dylib => PluginDoor::Dylib,
        Door::Wasm => PluginDoor::Wasm,
    }
}

/// Completes a recording with the facts of its run.
pub(super) fn finish_recording(
    recording: Result<RecordingWriter, SinkError>,
    (record, run_info): (&RunRecord, &RunInfo),
    totals: &Totals,
) -> Result<(), RunError> {
    let writer = recording.map_err(|error| RunError::RecordingFailed(error.to_string()))?;
    let bare = RunRecord {
        metrics: Vec::new(),
        plugins: Vec::new(),
        ..record.clone()
    };
    let run = RecordedRun {
        run_info: run_info.clone(),
        record: bare,
    };
    let run = serde_json::to_value(run).expect("records have string keys and finite numbers");
    writer
        .finish(run, totals)
        .map_err(|error| RunError::RecordingFailed(error.to_string()))?;
    Ok(())
}
