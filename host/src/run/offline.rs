//! An offline run: fixed batches on an engine in this process.

use lm_bench_plugin::RunInfo;

use super::driver::{Done, Driver, Loop};
use super::record::{self, Facts, Parts, Reported, seconds};
use super::{Finished, Progress, RunError, Stop, collecting, engine, facts, observer};
use crate::clock::Clock;
use crate::engine::Engine;
use crate::events::{Collected, Collection, EventSink, Recorder, SinkError, Watch};
use crate::model::Tokenizer;
use crate::plan::RunPlan;
use crate::plugin::{CollectorOutcome, Collectors, ProbeOutcome, RunningProbes};
use crate::probe::machine;
use crate::report::{Note, RunRecord};
use crate::workload::{PromptTokens, Prompts};

/// Runs a plan.
///
/// # Errors
/// When there is no result: the plan cannot run on this machine, or the engine failed.
pub fn offline(plan: &RunPlan, progress: &mut dyn Progress, stop: &Stop) -> Result<Finished, RunError> {
    let clock = Clock::start();
    collecting::check_recording_name(plan)?;
    collecting::check_plugins(&plan.plugins(), progress)?;
    observer::check_pairs_of_plan(plan)?;
    let mut prepared = prepare(plan, &clock, (progress, stop))?;
    let run_info = prepared.run_info;
    let probes = collecting::probes(plan, &run_info)?;
    let kinds = probes.kinds()?;
    let collectors = collecting::collectors(&plan.plugins(), &run_info, &kinds)?;
    let remarks = collecting::remarks_before(&collectors);
    let (recorder, collection) = collecting::start(plan, (&clock, kinds.clone()), collectors)?;
    let sampled_every = recorder.sampled_every();
    // Again, since what the collectors want may need more pairs, and depends on the model.
    observer::check_pairs(plan, sampled_every)?;

    let tokens = prompt_tokens(prepared.tokenizer.as_ref(), &run_info);
    let mut driver = Driver {
        engine: prepared.engine.as_mut(),
        recorder,
        collection: &collection,
        prompts: Prompts::new(tokens, plan.seed, plan.seq_len as usize),
        shape: shape(plan),
        stop,
        progress: &mut *progress,
    };
    let (parts, probes) = drive(&mut driver, || probes.start(&kinds, || collection.row_recorder()))?;
    let recorder = driver.recorder;
    let collecting_ns = clock.now_ns();
    let collected = collect(collection, recorder, (progress, stop, &parts.done))?;

    let mut record = record::of_iterations(plan, prepared.facts, &parts);
    if plan.observer_effect {
        record.observer_effect = Some(observer::effect(plan, &parts.done.pairs, sampled_every));
    }
    let decoded = |tokenizer: Tokenizer| tokenizer.decode(&parts.done.sample).ok();
    record.output_sample = prepared.tokenizer.and_then(decoded);
    record.timings.load_s = Some(seconds(prepared.loaded_ns));
    let ended = Ended {
        done: parts.done,
        collected,
        probes,
        collecting_ns,
        remarks,
    };
    let finished = finish(plan, &clock, (record, &run_info), ended);
    progress.done();
    Ok(finished)
}

/// What is there when the collection is over.
struct Ended {
    done: Done,
    collected: Collected<Collectors>,
    probes: Vec<ProbeOutcome>,
    collecting_ns: u64,
    remarks: Vec<String>,
}

/// Completes the record with what the collectors report, and the recording with the record.
fn finish(
    plan: &RunPlan,
    clock: &Clock,
    (mut record, run_info): (RunRecord, &RunInfo),
    mut ended: Ended,
) -> Finished {
    let collected = ended.collected;
    let outcomes = collected.collectors.finish();
    ended.remarks.extend(collecting::remarks_after(&outcomes));
    ended.remarks.extend(collecting::remarks_of_probes(&ended.probes));
    record.timings.collect_s = Some(seconds(clock.now_ns() - ended.collecting_ns));
    record.duration_s = seconds(clock.now_ns());
    record::add_collected(&mut record, &collected.totals);
    let reported = Reported {
        outcomes: &outcomes,
        duration_ns: clock.now_ns(),
        cut: collected.rows_cut > 0,
    };
    record::add_outcomes(&mut record, &reported, &plan.metric_percentiles);
    record::add_probes(&mut record, &ended.probes, reported.duration_ns);
    let fault = collected.collectors_fault;
    record.judge(objections(&ended.done, fault, collected.rows_cut));
    let recording_failed = collected.recording.and_then(|recording| {
        record::finish_recording(recording, (&record, run_info), &collected.totals).err()
    });
    Finished {
        remarks: ended.remarks,
        recording_failed,
        quarantined: outcomes.iter().any(CollectorOutcome::quarantined)
            || ended.probes.iter().any(ProbeOutcome::failed),
        interrupted: ended.done.interrupted || reported.cut,
        record,
    }
}

/// What is there before the collectors are.
struct Prepared {
    engine: Box<dyn Engine>,
    tokenizer: Option<Tokenizer>,
    run_info: RunInfo,
    facts: Facts,
    loaded_ns: u64,
}

/// Loads the engine and gathers what no iteration changes.
fn prepare(
    plan: &RunPlan,
    clock: &Clock,
    (progress, stop): (&mut dyn Progress, &Stop),
) -> Result<Prepared, RunError> {
    let environment = facts::environment(&machine::facts());
    progress.stage(&format!("loading {}", plan.model_name()));
    let loaded = engine::load(plan, stop)?;
    let (engine, tokenizer) = (loaded.engine, loaded.tokenizer);
    let loaded_ns = clock.now_ns();
    let run_info = facts::run_info(plan, engine.info(), engine.measure_peaks());
    let facts = Facts {
        started_unix_ms: clock.start_unix_ms(),
        environment,
        engine: facts::engine_facts(engine.info()),
        model: facts::model_facts(&run_info, engine.info(), (loaded.weights, tokenizer.is_some())),
    };
    Ok(Prepared {
        engine,
        tokenizer,
        run_info,
        facts,
        loaded_ns,
    })
}

/// Ends the collection. Ctrl-C ends the run between two batches, unless it was what ended the timed part: then the collectors
/// get what there is.
fn collect<S: EventSink + 'static>(
    collection: Collection<S>,
    recorder: Recorder,
    (progress, stop, done): (&mut dyn Progress, &Stop, &Done),
) -> Result<Collected<S>, RunError> {
    progress.stage("collecting");
    let watch = |had, all| {
        progress.steps(had, all);
        if stop.requested() && !done.interrupted {
            Watch::Cut
        } else {
            Watch::GoOn
        }
    };
    Ok(collection.finish_watched(recorder, watch)?)
}

fn prompt_tokens<'a>(tokenizer: Option<&'a Tokenizer>, run: &RunInfo) -> PromptTokens<'a> {
    match tokenizer {
        Some(tokenizer) => PromptTokens::Text(tokenizer),
        None => PromptTokens::Random {
            vocab: run.model.vocab,
        },
    }
}

fn shape(plan: &RunPlan) -> Loop {
    Loop {
        batch: plan.batch_size as usize,
        prompt_tokens: plan.seq_len as usize,
        output_tokens: plan.output_len,
        warmup: plan.warmup_iters,
        iterations: plan.num_iters,
        pairs: plan.observer_effect.then_some(plan.seed),
    }
}

/// Probes sample in the measured part alone.
fn drive<S: EventSink + 'static>(
    driver: &mut Driver<'_, S>,
    start_probes: impl FnOnce() -> RunningProbes,
) -> Result<(Parts, Vec<ProbeOutcome>), RunError> {
    driver.engine.record_load(&mut driver.recorder);
    driver.progress.stage("warming up");
    let warmup = driver.warm_up()?;
    driver.progress.stage("measuring");
    let probes = start_probes();
    let done = driver.measure();
    let probes = probes.stop();
    Ok((Parts { warmup, done: done? }, probes))
}

/// Reasons against the result that only the driver knows.
fn objections(done: &Done, collectors_fault: Option<SinkError>, rows_cut: u64) -> Vec<Note> {
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
    found.extend(record::rows_cut(rows_cut));
    found
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use lm_bench_plugin::kinds::step;

    use super::*;
    use crate::events::{CollectMode, CollectionSetup, Delivery, KindTable, RecorderConfig, SymbolTable};

    /// Asks the run to end once the collectors have had a batch.
    struct Impatient {
        stop: Stop,
        looked: Sender<()>,
    }

    impl Progress for Impatient {
        fn warn(&mut self, _: &str) {}
        fn stage(&mut self, _: &str) {}

        fn steps(&mut self, had: u64, _: u64) {
            if had > 0 {
                self.stop.request();
            }
            let _ = self.looked.send(());
        }

        fn done(&mut self) {}
    }

    /// Takes a batch after a look, or when none came for some time.
    struct Slow(Receiver<()>);

    impl EventSink for Slow {
        fn accept(&mut self, _: &Delivery, _: &SymbolTable) -> Result<(), SinkError> {
            let _ = self.0.recv_timeout(Duration::from_millis(100));
            Ok(())
        }
    }

    fn rows_cut(interrupted: bool) -> u64 {
        let (looked, look) = channel();
        let setup = CollectionSetup {
            config: RecorderConfig {
                block_rows: 1,
                ..RecorderConfig::default()
            },
            kinds: KindTable::builtin(),
            symbols: Arc::new(SymbolTable::new()),
            clock: Clock::fake(),
            mode: CollectMode::default(),
        };
        let (mut recorder, collection) = Collection::start(setup, None, Slow(look)).expect("starts");
        for _ in 0..20 {
            recorder.record(&step::Row::default());
        }
        let stop = Stop::default();
        let mut progress = Impatient {
            stop: stop.clone(),
            looked,
        };
        let done = Done {
            interrupted,
            ..Done::default()
        };
        collect(collection, recorder, (&mut progress, &stop, &done))
            .expect("ends")
            .rows_cut
    }

    #[test]
    fn ctrl_c_ends_collecting_between_batches_but_not_twice_the_same_run() {
        assert!((1..20).contains(&rows_cut(false)));
        assert_eq!(rows_cut(true), 0, "the timed part was what Ctrl-C ended");
    }

    #[test]
    fn rows_that_were_cut_make_the_result_invalid() {
        let reasons = objections(&Done::default(), None, 7);
        assert_eq!((reasons.len(), reasons[0].code.as_str()), (1, "interrupted"));
        assert!(reasons[0].text.contains("7 rows"), "{}", reasons[0].text);
        assert!(objections(&Done::default(), None, 0).is_empty());
    }
}
