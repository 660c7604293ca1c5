//! An offline run: fixed batches on an engine in this process.

use super::driver::{Done, Driver, Loop};
use super::record::{self, Facts, Parts, seconds};
use super::{Finished, Progress, RunError, Stop, collecting, engine, facts};
use crate::clock::Clock;
use crate::events::{KindTable, SinkError};
use crate::plan::RunPlan;
use crate::plugin::CollectorOutcome;
use crate::probe::machine;
use crate::report::Note;
use crate::workload::{Prompts, TokenSource};

/// Runs a plan.
///
/// # Errors
/// When there is no result: the plan cannot run on this machine, or the engine failed.
pub fn offline(plan: &RunPlan, progress: &mut dyn Progress, stop: &Stop) -> Result<Finished, RunError> {
    let clock = Clock::start();
    let environment = facts::environment(&machine::facts());
    collecting::check_recording_name(plan)?;
    collecting::check_plugins(&plan.plugins())?;

    progress.stage(&format!("loading {}", plan.model_name()));
    let loaded = engine::load(plan, stop)?;
    let (mut engine, tokenizer) = (loaded.engine, loaded.tokenizer);
    let loaded_ns = clock.now_ns();
    let run_info = facts::run_info(plan, engine.info(), engine.measure_peaks());
    let facts = Facts {
        started_unix_ms: clock.start_unix_ms(),
        environment,
        engine: facts::engine_facts(engine.info()),
        model: facts::model_facts(&run_info, engine.info(), (loaded.weights, tokenizer.is_some())),
    };
    let collectors = collecting::collectors(&plan.plugins(), &run_info, &KindTable::builtin())?;
    let mut remarks = collecting::remarks_before(&collectors);
    let (recorder, collection) = collecting::start(plan, &clock, collectors)?;

    let source = match &tokenizer {
        Some(tokenizer) => TokenSource::Text(tokenizer),
        None => TokenSource::Random {
            vocab: run_info.model.vocab,
        },
    };
    let mut driver = Driver {
        engine: engine.as_mut(),
        recorder,
        prompts: Prompts::new(source, plan.seed, plan.seq_len as usize),
        shape: shape(plan),
        stop,
        progress,
    };
    let parts = drive(&mut driver)?;
    let recorder = driver.recorder;
    progress.stage("collecting");
    let collecting_ns = clock.now_ns();
    let collected = collection.finish(recorder)?;

    let mut record = record::of_iterations(plan, facts, &parts);
    record.output_sample = tokenizer.and_then(|tokenizer| tokenizer.decode(&parts.done.sample).ok());
    record.timings.load_s = Some(seconds(loaded_ns));
    let outcomes = collected.collectors.finish();
    remarks.extend(collecting::remarks_after(&outcomes));
    record.timings.collect_s = Some(seconds(clock.now_ns() - collecting_ns));
    record.duration_s = seconds(clock.now_ns());
    record::add_collected(&mut record, &collected.totals, plan.sample_every);
    record::add_outcomes(&mut record, &outcomes, &plan.metric_percentiles);
    record.judge(objections(&parts.done, collected.collectors_fault));
    let recording_failed = collected.recording.and_then(|recording| {
        record::finish_recording(recording, (&record, &run_info), &collected.totals).err()
    });
    progress.done();
    Ok(Finished {
        remarks,
        recording_failed,
        quarantined: outcomes.iter().any(CollectorOutcome::quarantined),
        interrupted: parts.done.interrupted,
        record,
    })
}

fn shape(plan: &RunPlan) -> Loop {
    Loop {
        batch: plan.batch_size as usize,
        prompt_tokens: plan.seq_len as usize,
        output_tokens: plan.output_len,
        warmup: plan.warmup_iters,
        iterations: plan.num_iters,
    }
}

fn drive(driver: &mut Driver<'_>) -> Result<Parts, RunError> {
    driver.engine.record_load(&mut driver.recorder);
    driver.progress.stage("warming up");
    let warmup = driver.warm_up()?;
    driver.progress.stage("measuring");
    let done = driver.measure()?;
    Ok(Parts { warmup, done })
}

/// Reasons against the result that only the driver knows.
fn objections(done: &Done, collectors_fault: Option<SinkError>) -> Vec<Note> {
    let mut found = Vec::new();
    if done.nonfinite_steps > 0 {
        let text = format!("{} steps had logits that are not finite", done.nonfinite_steps);
        found.push(Note::new("nonfinite_logits", text));
    }
    if let Some(fault) = collectors_fault {
        found.push(Note::new(
            "collectors_failed",
            format!("the collectors did not get all events: {fault}"),
        ));
    }
    found
}
