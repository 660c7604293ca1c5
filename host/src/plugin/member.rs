//! One collector of a run: calls it, keeps its tally, and ends it at its first failure.

use std::time::Duration;

use lm_bench_plugin::{Batch, Metric, Resolved, Subscription};

use super::check;
use super::delivery::Feed;
use super::failure::Failure;
use super::gather::Report;
use super::limits::Limits;
use super::log::LogLine;
use super::outcome::CollectorOutcome;
use super::registry::Found;
use super::resolve::Agreement;
use super::session::{Door, Session};
use crate::clock::Clock;
use crate::events::{Delivery, SymbolTable};

/// Batches between two checkpoints, once it has been doubled often enough.
const MOST_BATCHES_PER_CHECKPOINT: u64 = 256;

/// A loaded collector with its tally.
pub(crate) struct Member {
    found: Found,
    isolated: bool,
    config: serde_json::Value,
    limits: Limits,
    deterministic: bool,
    clock: Clock,
    /// Empty after a failure: nothing is called any more.
    session: Option<Box<dyn Session>>,
    feeds: Vec<Feed>,
    absent_kinds: Vec<String>,
    tally: Tally,
    checkpoints: Checkpoints,
    good: Option<Vec<Metric>>,
}

#[derive(Debug, Default)]
struct Tally {
    rows: u64,
    lost: u64,
    busy_ns: u64,
    calls: u64,
    peak_memory: Option<u64>,
    fuel: Option<u64>,
    faults: Vec<String>,
    log: Vec<LogLine>,
    log_refused: u64,
}

/// When the next checkpoint is due: after 1, 2, 4, … batches, so that an early failure leaves something, and at
/// the latest after some time.
#[derive(Debug)]
struct Checkpoints {
    batches: u64,
    next: u64,
    last_ns: u64,
}

impl Checkpoints {
    fn batch_due(&mut self) -> bool {
        self.batches += 1;
        self.batches >= self.next
    }

    fn done(&mut self, now_ns: u64) {
        self.next = self.next.saturating_mul(2).min(MOST_BATCHES_PER_CHECKPOINT);
        self.batches = 0;
        self.last_ns = now_ns;
    }
}

/// How a collector was set up.
pub(crate) struct Setup {
    /// What it is.
    pub(crate) found: Found,
    /// Whether it has a process of its own.
    pub(crate) isolated: bool,
    /// Its code.
    pub(crate) session: Box<dyn Session>,
    /// Its configuration.
    pub(crate) config: serde_json::Value,
    /// Its limits.
    pub(crate) limits: Limits,
    /// Whether time may decide nothing.
    pub(crate) deterministic: bool,
}

impl Member {
    /// A collector that has not been called.
    pub(crate) fn new(setup: Setup, clock: Clock) -> Self {
        let last_ns = clock.now_ns();
        Self {
            found: setup.found,
            isolated: setup.isolated,
            config: setup.config,
            limits: setup.limits,
            deterministic: setup.deterministic,
            clock,
            session: Some(setup.session),
            feeds: Vec::new(),
            absent_kinds: Vec::new(),
            tally: Tally::default(),
            checkpoints: Checkpoints {
                batches: 0,
                next: 1,
                last_ns,
            },
            good: None,
        }
    }

    /// What it is.
    pub(crate) fn found(&self) -> &Found {
        &self.found
    }

    /// Indices of the kinds that it takes.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = usize> {
        self.feeds.iter().map(Feed::kind)
    }

    /// Asks what it wants; `None` when it failed and is quarantined.
    ///
    /// # Errors
    /// What it says about its configuration.
    pub(crate) fn subscribe(&mut self, run: &str) -> Result<Option<Subscription>, Failure> {
        let config = self.config.to_string();
        let limit = self.limits.call_time();
        self.or_quarantine(|member| member.timed(limit, |session| session.subscribe(&config, run)))
    }

    /// Starts it with what it is going to get.
    ///
    /// # Errors
    /// What it says about its configuration.
    pub(crate) fn open(&mut self, run: &str, agreement: Agreement) -> Result<(), Failure> {
        let config = self.config.to_string();
        let limit = self.limits.call_time();
        let resolved: Resolved = agreement.resolved;
        self.absent_kinds = agreement.absent;
        let opened = self
            .or_quarantine(|member| member.timed(limit, |session| session.open(&config, run, &resolved)))?;
        if opened.is_none() {
            // Quarantined: what it would have taken is not worth recording for it.
            return Ok(());
        }
        self.feeds = agreement
            .wanted
            .into_iter()
            .map(|wanted| Feed::new(wanted, agreement.max_rows, self.limits.batch_bytes))
            .collect();
        Ok(())
    }

    /// Ends it before it has started, because what it asked for breaks the contract.
    pub(crate) fn refuse(&mut self, reason: String) {
        self.quarantine(&Failure::Contract(reason));
    }

    /// Hands on a delivery if it takes the kind.
    pub(crate) fn accept(&mut self, delivery: &Delivery, symbols: &SymbolTable) {
        let Some(at) = self.feeds.iter().position(|feed| feed.kind() == delivery.kind) else {
            return;
        };
        self.tally.lost += delivery.lost_before;
        let Some(session) = self.session.as_mut() else {
            return;
        };
        session.host().learn(symbols);
        // Taken out for the time of the calls, which need the rest of the collector.
        let mut feed = self.feeds.swap_remove(at);
        let delivered = feed.deliver(&delivery.block, delivery.lost_before, |batch| self.deliver(batch));
        self.feeds.push(feed);
        if let Err(failure) = delivered {
            self.quarantine(&failure);
        } else if self.checkpoints.batch_due() {
            self.checkpoint();
        }
    }

    /// Takes note of rows of a kind that were lost after its last delivery.
    pub(crate) fn lost(&mut self, kind: usize, rows: u64) {
        if let Some(feed) = self.feeds.iter_mut().find(|feed| feed.kind() == kind) {
            self.tally.lost += rows;
            feed.lose(rows);
        }
    }

    /// Tells it of the losses that no batch has told.
    fn tell_losses(&mut self) -> Result<(), Failure> {
        let mut untold: Vec<(u16, u64)> = self.feeds.iter_mut().filter_map(Feed::take_lost).collect();
        untold.sort_unstable();
        for (kind, rows) in untold {
            self.timed(self.limits.call_time(), |session| session.lost_after(kind, rows))?;
        }
        Ok(())
    }

    fn deliver(&mut self, batch: &Batch<'_>) -> Result<(), Failure> {
        self.timed(self.limits.batch_time(), |session| session.on_batch(batch))?;
        self.tally.rows += u64::from(batch.rows);
        Ok(())
    }

    /// Takes a checkpoint if batches came and the last one is long ago, where time may decide that.
    pub(crate) fn tick(&mut self) {
        if self.deterministic {
            return;
        }
        let age = Duration::from_nanos(self.clock.now_ns() - self.checkpoints.last_ns);
        if self.checkpoints.batches > 0 && age >= Duration::from_millis(self.limits.checkpoint_ms) {
            self.checkpoint();
        }
    }

    /// Takes a checkpoint.
    pub(crate) fn checkpoint(&mut self) {
        if self.session.is_none() {
            return;
        }
        let report = self.timed(self.limits.call_time(), |session| session.checkpoint());
        match report.and_then(|report| self.checked(report)) {
            Ok(metrics) => self.good = Some(metrics),
            Err(failure) => self.quarantine(&failure),
        }
        self.checkpoints.done(self.clock.now_ns());
    }

    fn checked(&self, report: Report) -> Result<Vec<Metric>, Failure> {
        check::check(report.into_metrics()?, &self.found.manifest, &self.limits)
    }

    /// Takes the final metrics.
    pub(crate) fn finish(mut self) -> CollectorOutcome {
        if self.session.is_some() {
            let report = self
                .tell_losses()
                .and_then(|()| self.timed(self.limits.call_time(), |session| session.finish()));
            match report.and_then(|report| self.checked(report)) {
                Ok(metrics) => self.good = Some(metrics),
                Err(failure) => self.quarantine(&failure),
            }
            self.retire();
        }
        let quarantined = !self.tally.faults.is_empty();
        let reason = match self.tally.faults.first() {
            Some(fault) => format!("the collector was quarantined: {fault}"),
            None => "the collector reported nothing for this metric".to_owned(),
        };
        let partial = quarantined && self.good.is_some();
        let mut metrics = self.good.take().unwrap_or_default();
        check::complete(&mut metrics, &self.found.manifest, &reason);
        let file = self.found.file();
        CollectorOutcome {
            door: self.found.door(),
            isolated: self.isolated,
            sha256: file.map(|file| file.sha256.clone()),
            path: file.map(|file| file.path.clone()),
            manifest: self.found.manifest,
            config: self.config,
            metrics,
            rows: self.tally.rows,
            lost: self.tally.lost,
            busy_ns: self.tally.busy_ns,
            calls: self.tally.calls,
            peak_memory: self.tally.peak_memory,
            fuel: self.tally.fuel,
            faults: self.tally.faults,
            partial,
            log: self.tally.log,
            log_refused: self.tally.log_refused,
            absent_kinds: self.absent_kinds,
        }
    }

    /// Runs one call, measures it, and holds calls that cannot be interrupted against their limit.
    fn timed<T>(
        &mut self,
        limit: Duration,
        call: impl FnOnce(&mut dyn Session) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let Some(session) = self.session.as_mut() else {
            return Err(Failure::contract("it was called after a failure"));
        };
        let start = self.clock.now_ns();
        let interrupts = session.interrupts();
        let result = call(session.as_mut());
        let took = Duration::from_nanos(self.clock.now_ns() - start);
        self.tally.busy_ns += took.as_nanos() as u64;
        self.tally.calls += 1;
        if self.found.door() == Door::Dylib && !interrupts && took > limit {
            return result.and(Err(Failure::Late { took, limit }));
        }
        result
    }

    /// Keeps a configuration fault for the user and turns each other failure into a quarantine.
    fn or_quarantine<T>(
        &mut self,
        call: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        match call(self) {
            Ok(value) => Ok(Some(value)),
            Err(failure) if failure.is_configuration() => Err(failure),
            Err(failure) => {
                self.quarantine(&failure);
                Ok(None)
            }
        }
    }

    fn quarantine(&mut self, failure: &Failure) {
        self.tally.faults.push(failure.to_string());
        self.retire();
    }

    /// Lets go of the code, and keeps its log.
    fn retire(&mut self) {
        if let Some(mut session) = self.session.take() {
            self.tally.peak_memory = session.peak_memory();
            self.tally.fuel = session.fuel();
            session.end();
            let log = &session.host().log;
            self.tally.log = log.lines().to_vec();
            self.tally.log_refused = log.refused();
        }
    }
}
