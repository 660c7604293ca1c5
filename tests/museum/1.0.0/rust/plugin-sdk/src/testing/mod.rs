//! Test a collector without the host: feed rows, run the life cycle, look at the metrics.
//!
//! [`CollectorTest`] does what the host does and checks what the host would refuse, and more: that a checkpoint
//! changes nothing, and that the metrics depend neither on how rows are cut into batches nor on the order of the
//! kinds. The example in the [crate documentation](crate) ends with such a test.

mod contract;
mod drive;
mod feed;
mod metrics;

use std::marker::PhantomData;

use crate::block::{Block, EventRow};
use crate::collector::Collector;
use crate::column::{Cell, Column};
use crate::fault::Fault;
use crate::run_info::RunInfo;
use crate::subscription::DEFAULT_MAX_ROWS;

use drive::{Drive, Order};
use feed::Feed;

pub use metrics::Metrics;

/// Why a test run gave no metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The collector returned a fault.
    Fault(Fault),
    /// The collector broke the contract; the text says how.
    Contract(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fault(fault) => write!(f, "fault: {fault}"),
            Self::Contract(text) => write!(f, "broken contract: {text}"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// A collector under test, with its configuration, facts about the run and the rows that it will see.
#[derive(Clone, Debug)]
pub struct CollectorTest<C> {
    config: String,
    run: RunInfo,
    batch_rows: u32,
    weight: f64,
    lose: u64,
    absent: Vec<(&'static str, &'static str)>,
    feed: Feed,
    collector: PhantomData<fn() -> C>,
}

impl<C> Default for CollectorTest<C> {
    fn default() -> Self {
        Self {
            config: "{}".to_owned(),
            run: RunInfo {
                device: "cpu".to_owned(),
                sample_every: 1,
                ..RunInfo::default()
            },
            batch_rows: DEFAULT_MAX_ROWS,
            weight: 1.0,
            lose: 0,
            absent: Vec::new(),
            feed: Feed::default(),
            collector: PhantomData,
        }
    }
}

impl<C: Collector> CollectorTest<C> {
    /// A test with the default configuration, on a run of which only the device is known, `cpu`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the configuration, as JSON.
    #[must_use]
    pub fn config(mut self, json: &str) -> Self {
        json.clone_into(&mut self.config);
        self
    }

    /// Sets the facts about the run.
    #[must_use]
    pub fn run_info(mut self, run: RunInfo) -> Self {
        self.run = run;
        self
    }

    /// Sets the most rows that a batch has. The collector's own `max_rows` may lower it further.
    #[must_use]
    pub fn batch_rows(mut self, rows: u32) -> Self {
        self.batch_rows = rows.max(1);
        self
    }

    /// Hides a column, as a host of an older version would.
    #[must_use]
    pub fn without<T: Cell>(mut self, column: Column<T>) -> Self {
        self.absent.push((column.kind, column.name));
        self
    }

    /// The id of a symbol, for symbol columns of rows.
    pub fn symbol(&mut self, text: &str) -> u32 {
        self.feed.symbol(text)
    }

    /// Sets how many events each of the following rows stands for (1 in the beginning).
    pub fn weight(&mut self, weight: f64) -> &mut Self {
        self.weight = weight;
        self
    }

    /// Pretends that rows were lost just before the next row, of that row's kind.
    pub fn lose(&mut self, rows: u64) -> &mut Self {
        self.lose += rows;
        self
    }

    /// Pretends that rows of a kind were lost after its last row.
    pub fn lose_after(&mut self, kind: &str, rows: u64) -> &mut Self {
        self.feed.lost_after.push((kind.to_owned(), rows));
        self
    }

    /// Adds a row of any kind. Rows that follow each other with the same kind and weight share batches.
    pub fn row<R: EventRow>(&mut self, row: &R) -> &mut Self {
        let lost = std::mem::take(&mut self.lose);
        self.feed.row(row, self.weight, lost);
        self
    }

    /// Adds the rows of a block, for kinds that are not in [`kinds::KINDS`](crate::kinds::KINDS). Its own
    /// weight counts.
    pub fn block(&mut self, block: &Block) -> &mut Self {
        let lost = std::mem::take(&mut self.lose);
        self.feed.block(block, lost);
        self
    }

    /// Runs the collector three times, with the rows in the order given and checkpoints after each batch, with the
    /// same rows and no checkpoint, and with one row per batch and the kinds one after another, last one first.
    ///
    /// # Errors
    /// The collector's own fault, or what it does that the host would refuse.
    pub fn run(&self) -> Result<Metrics, Failure> {
        contract::declarations::<C>()?;
        contract::configuration::<C>(&self.run)?;
        let drive = Drive {
            config: &self.config,
            run: &self.run,
            absent: &self.absent,
            feed: &self.feed,
        };
        let metrics = drive.run::<C>(Order::Given {
            batch_rows: self.batch_rows,
            checkpoints: true,
        })?;
        let quiet = drive.run::<C>(Order::Given {
            batch_rows: self.batch_rows,
            checkpoints: false,
        })?;
        if quiet.all() != metrics.all() {
            let text = "a checkpoint changes the final metrics";
            return Err(Failure::Contract(text.to_owned()));
        }
        let single = drive.run::<C>(Order::KindsApart)?;
        contract::same_but_for_rounding(&metrics, &single)?;
        Ok(metrics)
    }

    /// As [`run`](Self::run), for tests that expect metrics.
    ///
    /// # Panics
    /// With the failure.
    #[track_caller]
    pub fn metrics(&self) -> Metrics {
        match self.run() {
            Ok(metrics) => metrics,
            Err(failure) => panic!("{}: {failure}", C::INFO.id),
        }
    }

    /// As [`run`](Self::run), for tests that expect the collector to refuse.
    ///
    /// # Panics
    /// When the collector returns no fault.
    #[track_caller]
    pub fn fault(&self) -> Fault {
        match self.run() {
            Err(Failure::Fault(fault)) => fault,
            Err(Failure::Contract(text)) => panic!("{}: {text}", C::INFO.id),
            Ok(metrics) => panic!("{}: no fault but these metrics:\n{metrics}", C::INFO.id),
        }
    }
}

#[cfg(test)]
mod tests;
