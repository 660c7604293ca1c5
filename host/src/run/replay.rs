//! Feeds a recording to collectors.

use std::path::PathBuf;

use super::record::{self, Account, RecordedRun};
use super::{Finished, Progress, RunError, collecting};
use crate::clock::Clock;
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

/// Replays a recording. The record is that of the recorded run with the metrics of this replay.
///
/// # Errors
/// When the recording or a plugin cannot be used.
pub fn replay(plan: &ReplayPlan, progress: &mut dyn Progress) -> Result<Finished, RunError> {
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
    recording.replay(&mut collectors)?;
    let outcomes = collectors.finish();
    remarks.extend(collecting::remarks_after(&outcomes));
    let duration_ns = clock.now_ns();
    record.timings.collect_s = Some(record::seconds(duration_ns));
    let account = Account {
        outcomes: &outcomes,
        duration_ns,
        cut: false,
    };
    record::add_outcomes(&mut record, &account, &plan.metric_percentiles);
    // The recorded run's verdict stands; only what the collectors of this replay did is judged anew.
    let mut reasons = std::mem::take(&mut record.verdict.reasons);
    reasons.retain(|reason| !reason.is_derived());
    record.judge(reasons);
    progress.done();
    Ok(Finished {
        remarks,
        recording_failed: None,
        quarantined: outcomes.iter().any(|outcome| outcome.quarantined()),
        interrupted: false,
        record,
    })
}
