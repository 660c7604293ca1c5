//! Sends the requests: each when it is due, as many at once as allowed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use lm_bench_plugin::kinds::request_phase;
use tokio::sync::Semaphore;
use tokio::task::LocalSet;

use super::rows::RequestEvents;
use crate::clock::{Clock, Timer};
use crate::engine::http::{Call, Client};
use crate::events::Recorder;
use crate::run::{Progress, RunError, Stop};
use crate::workload::{LoadRequest, LoadRequests};

/// Longest time without a look at whether the user wants to end the run.
const LOOK_NS: u64 = 50_000_000;

/// What the requests came to.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) started: u64,
    pub(super) finished: u64,
    pub(super) prompt_tokens: u64,
    pub(super) output_tokens: u64,
    /// Finished requests whose output tokens the server counted.
    pub(super) counted_by_server: u64,
    /// Failed requests by cause, and what the first of them said.
    pub(super) failures: BTreeMap<String, (u64, String)>,
    /// How long after it was due the client began with each request of an open loop, in nanoseconds.
    pub(super) lags_ns: Vec<u64>,
    /// From the start of the load to the end of the last request.
    pub(super) wall_ns: u64,
    pub(super) interrupted: bool,
}

impl Tally {
    /// Requests that failed.
    pub(super) fn failed(&self) -> u64 {
        self.failures.values().map(|(count, _)| count).sum()
    }
}

/// What all requests of a run share.
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) recorder: RefCell<Recorder>,
    pub(super) clock: Clock,
    pub(super) model: String,
    pub(super) stream: bool,
    pub(super) tally: RefCell<Tally>,
    pub(super) in_flight: RefCell<std::collections::BTreeSet<u64>>,
    pub(super) ended: Cell<u64>,
}

/// Sends all requests and waits for their ends, or until the user wants to end the run; what is in flight then is cancelled.
/// `most` is the number of requests at once.
pub(super) async fn drive(
    shared: &Rc<Shared>,
    (requests, most): (LoadRequests, Option<u32>),
    (progress, stop): (&mut dyn Progress, &Stop),
) -> Result<(), RunError> {
    let timer = Timer::new().map_err(|error| RunError::Client(error.to_string()))?;
    let local = LocalSet::new();
    let all = requests.size_hint().0 as u64;
    let permits = most.map(|most| Arc::new(Semaphore::new(most as usize)));
    let start = shared.clock.now_ns();
    let before = shared.ended.get();
    let pace = async {
        for request in requests {
            let Some(due_ns) = wait_until_due(shared, &request, (start, &timer, &permits), stop).await?
            else {
                return Ok(false);
            };
            shared.tally.borrow_mut().started += 1;
            let (shared, permits) = (Rc::clone(shared), permits.clone());
            tokio::task::spawn_local(async move { one(&shared, request, (due_ns, permits)).await });
        }
        let mut shown = 0;
        while shared.ended.get() - before < all {
            let done = shared.ended.get() - before;
            if done != shown {
                progress.steps(done, all);
                shown = done;
            }
            if stop.requested() {
                return Ok(false);
            }
            timer
                .sleep(LOOK_NS / 10)
                .await
                .map_err(|error| RunError::Client(error.to_string()))?;
        }
        Ok(true)
    };
    let complete = local.run_until(pace).await?;
    drop(local);
    let mut tally = shared.tally.borrow_mut();
    tally.interrupted |= !complete;
    tally.wall_ns += shared.clock.now_ns() - start;
    let now = shared.clock.now_ns();
    for id in std::mem::take(&mut *shared.in_flight.borrow_mut()) {
        RequestEvents::new(&shared.recorder, id).phase(now, request_phase::CANCELLED, (0, 0));
    }
    Ok(())
}

/// When a request is due, on the clock; `None` when the user ends the run before. In a closed loop it is due when it
/// may be sent.
async fn wait_until_due(
    shared: &Shared,
    request: &LoadRequest,
    (start, timer, permits): (u64, &Timer, &Option<Arc<Semaphore>>),
    stop: &Stop,
) -> Result<Option<u64>, RunError> {
    loop {
        if stop.requested() {
            return Ok(None);
        }
        let now = shared.clock.now_ns();
        let left = match (request.due_ns, permits) {
            (Some(due), _) => (start + due).saturating_sub(now),
            (None, Some(permits)) if permits.available_permits() == 0 => {
                // Woken by the end of a request, or to look for the user's wish.
                let free = async { drop(permits.acquire().await) };
                let _ = tokio::time::timeout(std::time::Duration::from_nanos(LOOK_NS), free).await;
                continue;
            }
            (None, _) => 0,
        };
        if left == 0 {
            // Lets requests that were just started take their permit before the next is looked at.
            tokio::task::yield_now().await;
            let due = request.due_ns.map_or(now, |due| start + due);
            return Ok(Some(due));
        }
        let sleep = timer.sleep(left.min(LOOK_NS)).await;
        sleep.map_err(|error| RunError::Client(error.to_string()))?;
    }
}

/// One request from due to its end.
async fn one(shared: &Shared, request: LoadRequest, (due_ns, permits): (u64, Option<Arc<Semaphore>>)) {
    let mut events = RequestEvents::new(&shared.recorder, request.id);
    shared.in_flight.borrow_mut().insert(request.id);
    events.phase(due_ns, request_phase::DUE, (0, 0));
    if request.due_ns.is_some() {
        let lag = shared.clock.now_ns() - due_ns;
        shared.tally.borrow_mut().lags_ns.push(lag);
    }
    let _permit = match &permits {
        Some(permits) => permits.acquire().await.ok(),
        None => None,
    };
    events.phase(shared.clock.now_ns(), request_phase::PERMIT, (0, 0));
    let call = Call {
        model: &shared.model,
        prompt: &request.prompt,
        output_tokens: request.output_tokens,
        stream: shared.stream,
    };
    let ended = shared.client.complete(call, &mut events).await;
    shared.in_flight.borrow_mut().remove(&request.id);
    let mut tally = shared.tally.borrow_mut();
    match ended {
        Ok(answer) => {
            events.finished(&answer);
            tally.finished += 1;
            tally.prompt_tokens += u64::from(answer.prompt_tokens.unwrap_or(0));
            tally.output_tokens += u64::from(answer.output_tokens);
            tally.counted_by_server += u64::from(answer.counted_by_server);
        }
        Err(failure) => {
            events.failed(shared.clock.now_ns(), &failure);
            let entry = tally.failures.entry(failure.cause.to_string());
            entry.or_insert((0, failure.text)).0 += 1;
        }
    }
    drop(tally);
    shared.ended.set(shared.ended.get() + 1);
}
