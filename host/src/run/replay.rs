//! Feeds a recording to collectors.

use std::path::PathBuf;

use super::record::{self, RecordedRun, Reported};
use super::{Finished, Progress, RunError, Stop, collecting};
use crate::clock::Clock;
use crate::events::Watch;
use crate::events::recording::Recording;
use crate::plan::PluginPlan;
use crate::stats::Percent;

/// What to replay, and to whom.
#[derive(Clone, Debug)]
pub struct ReplayPlan {
    /// The recording.
    pub recording: PathBuf,
    /// The collectors.
    pub plugins: PluginPlan,
    /// Percentiles that are reported for distributions.
    pub metric_percentiles: Vec<Percent>,
}

/// Replays a recording. The record is that of the recorded run with the metrics of this replay. `stop` ends it between two
/// batches; the metrics are then those of the batches until there.
///
/// # Errors
/// When the recording or a plugin cannot be used.
pub fn replay(plan: &ReplayPlan, progress: &mut dyn Progress, stop: &Stop) -> Result<Finished, RunError> {
    let clock = Clock::start();
    collecting::check_plugins(&plan.plugins, progress)?;
    progress.stage(&format!("reading {}", plan.recording.display()));
    let recording = Recording::open(&plan.recording)?;
    let RecordedRun { run_info, mut record } =
        serde_json::from_value(recording.run().clone()).map_err(|error| RunError::RecordedFacts {
            path: plan.recording.clone(),
            error,
        })?;
    let mut collectors = collecting::collectors(&plan.plugins, &run_info, recording.kinds())?;
    let mut remarks = collecting::remarks_before(&collectors);
    progress.stage("replaying");
    let rows_cut = recording.replay_watched(&mut collectors, |had, all| {
        progress.steps(had, all);
        if stop.requested() { Watch::Cut } else { Watch::GoOn }
    })?;
    let outcomes = collectors.finish();
    remarks.extend(collecting::remarks_after(&outcomes));
    let duration_ns = clock.now_ns();
    record.timings.collect_s = Some(record::seconds(duration_ns));
    let reported = Reported {
        outcomes: &outcomes,
        duration_ns,
        cut: rows_cut > 0,
    };
    record::add_replay_plan(&mut record, &plan.plugins);
    record::add_outcomes(&mut record, &reported, &plan.metric_percentiles);
    // The recorded run's verdict stands; only what the collectors of this replay did is judged anew.
    let mut reasons = std::mem::take(&mut record.verdict.reasons);
    reasons.retain(|reason| !reason.is_derived());
    reasons.extend(record::rows_cut(rows_cut));
    record.judge(reasons);
    progress.done();
    Ok(Finished {
        remarks,
        recording_failed: None,
        quarantined: outcomes.iter().any(|outcome| outcome.quarantined()),
        interrupted: reported.cut,
        record,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use lm_bench_plugin::RunInfo;
    use lm_bench_plugin::kinds::step;

    use super::*;
    use crate::events::{
        CollectMode, Collection, CollectionSetup, KindTable, RecorderConfig, RecordingWriter, SymbolTable,
    };
    use crate::report::{Counts, RunRecord};

    /// A recording of 20 rows in as many batches, of a run that was complete.
    fn record(path: &Path) {
        let setup = CollectionSetup {
            config: RecorderConfig {
                block_rows: 1,
                ..RecorderConfig::default()
            },
            kinds: KindTable::builtin(),
            symbols: Arc::new(SymbolTable::new()),
            clock: Clock::fake(),
            mode: CollectMode::Live,
        };
        let writer = RecordingWriter::create(path, &setup.kinds).expect("a writable folder");
        let (mut recorder, collection) = Collection::start(setup, Some(writer), ()).expect("starts");
        for _ in 0..20 {
            recorder.record(&step::Row::default());
        }
        let collected = collection.finish(recorder).expect("ends");
        let writer = collected.recording.expect("asked for").expect("written");
        let mut record = RunRecord::empty();
        record.counts = Counts {
            iterations: 1,
            iterations_planned: 1,
            output_tokens: 1,
            ..Counts::default()
        };
        let run = RecordedRun {
            run_info: RunInfo::default(),
            record,
        };
        let run = serde_json::to_value(run).expect("JSON");
        writer.finish(run, &collected.totals).expect("written");
    }

    /// Asks the replay to end once the collectors have had `after` batches.
    struct Impatient {
        after: u64,
        stop: Stop,
    }

    impl Progress for Impatient {
        fn warn(&mut self, _: &str) {}
        fn stage(&mut self, _: &str) {}

        fn steps(&mut self, had: u64, _: u64) {
            if had >= self.after {
                self.stop.request();
            }
        }

        fn done(&mut self) {}
    }

    #[test]
    fn ctrl_c_ends_a_replay_between_two_batches() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let plan = ReplayPlan {
            recording: folder.path().join("run.lmrec"),
            plugins: PluginPlan::default(),
            metric_percentiles: Percent::DEFAULT.to_vec(),
        };
        record(&plan.recording);
        let ended = |after| {
            let stop = Stop::default();
            let mut progress = Impatient {
                after,
                stop: stop.clone(),
            };
            replay(&plan, &mut progress, &stop).expect("a record")
        };
        let whole = ended(20);
        assert!(!whole.interrupted && whole.record.verdict.valid, "{whole:?}");
        let cut = ended(13);
        assert!(cut.interrupted && !cut.record.verdict.valid, "{cut:?}");
        let reasons = &cut.record.verdict.reasons;
        assert_eq!((reasons.len(), reasons[0].code.as_str()), (1, "interrupted"));
        assert!(reasons[0].text.contains(" 7 rows "), "{}", reasons[0].text);
    }
}
