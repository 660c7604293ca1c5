//! A load run: requests over time against a server.

mod drive;
mod rows;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use lm_bench_plugin::{ModelInfo, RunInfo};
use serde::Serialize;
use serde_json::{Map, Value};

use drive::{Shared, Tally};

use super::record::{self, Reported, seconds};
use super::{Finished, Progress, RunError, Stop, collecting, facts};
use crate::clock::Clock;
use crate::engine::http::{Client, Endpoint};
use crate::events::{KindTable, Watch};
use crate::plan::RunPlan;
use crate::plugin::CollectorOutcome;
use crate::probe::machine;
use crate::report::{Counts, Headline, Note, RunRecord, Timings, TokenSource, Warmup};
use crate::workload::{Arrivals, Lengths, LoadRequests, LoadShape, RequestRate};

/// Numbers from which warm-up requests count, so that their prompts are none of the measured ones.
const WARM_UP_FROM: u64 = 1 << 48;
/// 99th percentile of the client's own delay above which a result is invalid, in nanoseconds.
const MAX_LAG_NS: u64 = 10_000_000;

/// What is sent where, and when.
#[derive(Clone, Debug, Serialize)]
pub struct LoadPlan {
    /// The server's interface.
    pub url: String,
    /// Model's name at the server.
    pub model: String,
    /// Requests per second of the open loop; `None` for a closed loop.
    pub request_rate: Option<RequestRate>,
    /// Shape of the gaps between arrivals.
    pub burstiness: f64,
    /// Most requests at once.
    pub max_concurrency: Option<u32>,
    /// Measured requests.
    pub num_prompts: u64,
    /// Requests before the measured ones, one after another.
    pub num_warmups: u64,
    /// Prompt tokens wanted.
    pub prompt_len: Lengths,
    /// Output tokens asked for.
    pub output_len: Lengths,
    /// Whether answers come in pieces.
    pub stream: bool,
    /// Keys of each request's body beside the usual.
    pub extra_body: Map<String, Value>,
    /// Seconds after which a request is given up.
    pub request_timeout_s: f64,
    /// Seed of lengths, prompts and arrivals.
    pub seed: u64,
    /// The key, which no report shows.
    #[serde(skip)]
    pub api_key: Option<String>,
    /// Collectors, recording and result.
    #[serde(skip)]
    pub settings: RunPlan,
}

/// Runs a load plan.
///
/// # Errors
/// When nothing could be measured: a wrong URL, a plugin that cannot be used, no file descriptor.
pub fn load(plan: &LoadPlan, progress: &mut dyn Progress, stop: &Stop) -> Result<Finished, RunError> {
    let clock = Clock::start();
    collecting::check_recording_name(&plan.settings)?;
    collecting::check_plugins(&plan.settings.plugins(), progress)?;
    let client = client(plan, &clock)?;
    let environment = facts::environment(&machine::facts());
    let run_info = run_info(plan);
    let collectors = collecting::collectors(&plan.settings.plugins(), &run_info, &KindTable::builtin())?;
    let mut remarks = collecting::remarks_before(&collectors);
    let (recorder, collection) = collecting::start(&plan.settings, &clock, collectors)?;
    let shared = Rc::new(Shared {
        client,
        recorder: RefCell::new(recorder),
        clock: clock.clone(),
        model: plan.model.clone(),
        stream: plan.stream,
        tally: RefCell::default(),
        in_flight: RefCell::default(),
        ended: Cell::new(0),
    });
    let (warm_up, tally) = drive_both(plan, &shared, (progress, stop))?;
    let recorder =
        Rc::into_inner(shared).ok_or_else(|| RunError::Client("a request outlived the load".into()))?;
    let collecting_ns = clock.now_ns();
    progress.stage("collecting");
    let collected = collection.finish_watched(recorder.recorder.into_inner(), |had, all| {
        progress.steps(had, all);
        if stop.requested() && !tally.interrupted {
            Watch::Cut
        } else {
            Watch::GoOn
        }
    })?;
    let outcomes = collected.collectors.finish();
    remarks.extend(collecting::remarks_after(&outcomes));
    remarks.extend(failures(&tally));

    let mut record = of_tally(plan, (&warm_up, &tally));
    record.started_unix_ms = clock.start_unix_ms();
    record.environment = environment;
    record.timings.collect_s = Some(seconds(clock.now_ns() - collecting_ns));
    record.duration_s = seconds(clock.now_ns());
    record::add_collected(&mut record, &collected.totals);
    let reported = Reported {
        outcomes: &outcomes,
        duration_ns: clock.now_ns(),
        cut: collected.rows_cut > 0,
    };
    record::add_outcomes(&mut record, &reported, &plan.settings.metric_percentiles);
    let mut reasons = objections(plan, &tally);
    reasons.extend(record::rows_cut(collected.rows_cut));
    record.judge(reasons);
    let recording_failed = collected.recording.and_then(|recording| {
        record::finish_recording(recording, (&record, &run_info), &collected.totals).err()
    });
    progress.done();
    Ok(Finished {
        remarks,
        recording_failed,
        quarantined: outcomes.iter().any(CollectorOutcome::quarantined),
        interrupted: tally.interrupted || reported.cut,
        record,
    })
}

fn client(plan: &LoadPlan, clock: &Clock) -> Result<Client, RunError> {
    let endpoint = Endpoint::parse(&plan.url).map_err(|error| RunError::Unsupported(error.to_string()))?;
    let settings = (
        plan.extra_body.clone(),
        Duration::from_secs_f64(plan.request_timeout_s),
    );
    let mut client = Client::new(endpoint, clock.clone(), settings);
    if let Some(key) = &plan.api_key
        && !client.set_key(key)
    {
        return Err(RunError::Unsupported(
            "the key holds characters that no header can".to_owned(),
        ));
    }
    Ok(client)
}

/// Warm-up, then the measured requests; each with its own account.
fn drive_both(
    plan: &LoadPlan,
    shared: &Rc<Shared>,
    (progress, stop): (&mut dyn Progress, &Stop),
) -> Result<(Tally, Tally), RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| RunError::Client(error.to_string()))?;
    let shape = LoadShape {
        prompt: plan.prompt_len,
        output: plan.output_len,
        seed: plan.seed,
    };
    progress.stage("warming up");
    shared.recorder.borrow_mut().set_enabled(false);
    let requests = LoadRequests::new(shape.clone(), None, WARM_UP_FROM..WARM_UP_FROM + plan.num_warmups);
    runtime.block_on(drive::drive(shared, (requests, Some(1)), (&mut *progress, stop)))?;
    let warm_up = shared.tally.take();
    shared.recorder.borrow_mut().set_enabled(true);
    progress.stage("measuring");
    let arrivals = plan
        .request_rate
        .map(|rate| Arrivals::new(rate, plan.burstiness, plan.seed));
    let requests = LoadRequests::new(shape, arrivals, 0..plan.num_prompts);
    runtime.block_on(drive::drive(
        shared,
        (requests, plan.max_concurrency),
        (progress, stop),
    ))?;
    shared.recorder.borrow_mut().flush();
    Ok((warm_up, shared.tally.take()))
}

fn run_info(plan: &LoadPlan) -> RunInfo {
    RunInfo {
        model: ModelInfo {
            name: plan.model.clone(),
            ..ModelInfo::default()
        },
        engine: "http".to_owned(),
        device: plan.url.clone(),
        prompt_tokens: plan.prompt_len.bounds().1,
        output_tokens: plan.output_len.bounds().1,
        sample_every: plan.settings.sample_every,
        ..RunInfo::default()
    }
}

fn of_tally(plan: &LoadPlan, (warm_up, tally): (&Tally, &Tally)) -> RunRecord {
    let mut record = RunRecord {
        token_source: if tally.counted_by_server == tally.finished {
            TokenSource::ServerUsage
        } else {
            TokenSource::Chunks
        },
        warmup: Warmup {
            iterations: warm_up.finished,
            ..Warmup::default()
        },
        counts: Counts {
            requests: tally.started,
            prompt_tokens: tally.prompt_tokens,
            output_tokens: tally.output_tokens,
            errors: tally.failed(),
            ..Counts::default()
        },
        timings: Timings {
            warmup_s: Some(seconds(warm_up.wall_ns)),
            measured_s: Some(seconds(tally.wall_ns)),
            ..Timings::default()
        },
        headline: Headline::of(&[], None),
        plan: settings(plan),
        ..RunRecord::empty()
    };
    record.model.name.clone_from(&plan.model);
    record.engine.name = "http".to_owned();
    record.engine.device.clone_from(&plan.url);
    record
}

fn settings(plan: &LoadPlan) -> BTreeMap<String, Value> {
    let keys = |value| match value {
        Ok(Value::Object(keys)) => keys,
        _ => unreachable!("a plan is a struct with string keys"),
    };
    let mut all = keys(serde_json::to_value(&plan.settings));
    // What only an offline run has decided nothing here.
    for key in [
        "batch_size",
        "seq_len",
        "num_iters",
        "warmup_iters",
        "threads",
        "quantize",
        "load_format",
        "device",
        "prompt_source",
    ] {
        all.remove(key);
    }
    all.extend(keys(serde_json::to_value(plan)));
    all.into_iter().collect()
}

/// What failed, a line for each cause.
fn failures(tally: &Tally) -> Vec<String> {
    let line = |(cause, (count, text)): (&String, &(u64, String))| {
        format!("{count} requests failed with {cause}; the first: {text}")
    };
    tally.failures.iter().map(line).collect()
}

/// Reasons against the result that only the driver knows.
fn objections(plan: &LoadPlan, tally: &Tally) -> Vec<Note> {
    let mut found = Vec::new();
    if tally.interrupted {
        let text = format!(
            "{} of {} requests were started before the run was interrupted",
            tally.started, plan.num_prompts
        );
        found.push(Note::new("interrupted", text));
    }
    let mut lags = tally.lags_ns.clone();
    lags.sort_unstable();
    let p99 = lags.len().checked_sub(1).map(|last| lags[last * 99 / 100]);
    if let Some(p99) = p99.filter(|p99| *p99 > MAX_LAG_NS) {
        let text = format!(
            "the client began 1 % of the requests {:.1} ms or more after they were due: this machine cannot keep up, use a lower rate",
            p99 as f64 * 1e-6
        );
        found.push(Note::new("client_lag", text));
    }
    found
}
