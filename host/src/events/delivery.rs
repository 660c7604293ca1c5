//! What sinks receive, and the account of rows.

use std::panic::{AssertUnwindSafe, catch_unwind};

use lm_bench_plugin::Block;
use lm_bench_plugin::erased::panic_text;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::kind_table::KindTable;
use super::symbols::SymbolTable;

/// A batch on its way to the sinks.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Index of the block's kind in the run's [`KindTable`].
    pub kind: usize,
    /// The rows, at least 1, with their weight.
    pub block: Block,
    /// Number of the batch within its kind, from 0, without gaps.
    pub seq: u64,
    /// Rows of this kind that were dropped between the previous batch of the same producer and this one; exact.
    pub lost_before: u64,
}

/// Why a sink takes no more deliveries.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SinkError {
    /// The sink gave up and says why.
    #[error("{0}")]
    Failed(String),
    /// The sink panicked; this is a fault of lm-bench, not of the input.
    #[error("the sink panicked: {0}")]
    Panicked(String),
}

/// Receives the event stream: batches of a kind in the order in which they were recorded. After an error or a
/// panic a sink gets nothing more.
pub trait EventSink: Send {
    /// Takes a batch.
    ///
    /// # Errors
    /// When the sink can take no further batch.
    fn accept(&mut self, delivery: &Delivery, symbols: &SymbolTable) -> Result<(), SinkError>;

    /// Learns that rows of a kind, by its index in the run's [`KindTable`], were lost after its last batch. Called
    /// after the last batch of all, at most once per kind.
    ///
    /// # Errors
    /// When the sink is of no more use.
    fn lost(&mut self, kind: usize, rows: u64) -> Result<(), SinkError> {
        let _ = (kind, rows);
        Ok(())
    }

    /// Gives the sink an opportunity between batches, in live collection at least every 50 ms.
    fn tick(&mut self) {}
}

/// Takes everything and keeps nothing.
impl EventSink for () {
    fn accept(&mut self, _: &Delivery, _: &SymbolTable) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Keeps all deliveries.
impl EventSink for Vec<Delivery> {
    fn accept(&mut self, delivery: &Delivery, _: &SymbolTable) -> Result<(), SinkError> {
        self.push(delivery.clone());
        Ok(())
    }
}

/// A sink that is shielded from the pump: no call after a fault, panics become faults.
#[derive(Debug)]
pub(super) struct Guarded<S> {
    pub(super) sink: S,
    pub(super) fault: Option<SinkError>,
}

impl<S: EventSink> Guarded<S> {
    pub(super) fn new(sink: S) -> Self {
        Self { sink, fault: None }
    }

    pub(super) fn accept(&mut self, delivery: &Delivery, symbols: &SymbolTable) {
        self.call(|sink| sink.accept(delivery, symbols));
    }

    pub(super) fn lost(&mut self, kind: usize, rows: u64) {
        self.call(|sink| sink.lost(kind, rows));
    }

    pub(super) fn tick(&mut self) {
        self.call(|sink| {
            sink.tick();
            Ok(())
        });
    }

    fn call(&mut self, call: impl FnOnce(&mut S) -> Result<(), SinkError>) {
        if self.fault.is_none() {
            self.fault = shielded(|| call(&mut self.sink)).err();
        }
    }
}

/// Runs a sink's code; a panic becomes an error. The sink is not called again, so a state that the panic left
/// half changed is not acted upon.
pub(super) fn shielded(call: impl FnOnce() -> Result<(), SinkError>) -> Result<(), SinkError> {
    catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|panic| Err(SinkError::Panicked(panic_text(&*panic).to_owned())))
}

/// Rows of one kind over the whole run. `recorded = delivered + lost`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindTotals {
    /// Name of the kind.
    pub kind: String,
    /// Rows that producers recorded.
    pub recorded: u64,
    /// Rows that were handed to the sinks.
    pub delivered: u64,
    /// Rows that were dropped, those after the last delivered batch included.
    pub lost: u64,
    /// Weights of the recorded rows; `None` where there are none. Each batch of a recording has its own.
    #[serde(skip)]
    pub weights: Option<Weights>,
}

/// How many events a row of a kind stands for: the least and the greatest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// Least weight of a row.
    pub least: u32,
    /// Greatest weight of a row.
    pub greatest: u32,
}

impl Weights {
    /// Rows that all have one weight.
    pub fn all(weight: u32) -> Self {
        Self {
            least: weight,
            greatest: weight,
        }
    }

    /// These rows and others.
    pub fn and(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            greatest: self.greatest.max(other.greatest),
        }
    }
}

/// The account of a run's events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Rows by kind, in the order of the run's [`KindTable`].
    pub kinds: Vec<KindTotals>,
    /// Blocks that were dropped because the sinks did not keep up with the producers.
    pub blocks_dropped: u64,
    /// Blocks that a producer had to allocate because no empty one had come back.
    pub blocks_allocated: u64,
    /// Rows that were lost because the kept events reached the memory budget of [`CollectMode::After`]; they are
    /// part of the kinds' `lost`.
    ///
    /// [`CollectMode::After`]: super::CollectMode::After
    pub rows_over_budget: u64,
    /// Rows that a producer offered with an empty or absurdly wide list; a fault of the producer. They are not
    /// part of `recorded`.
    pub rows_refused: u64,
}

impl Totals {
    /// Totals of 0 for each kind.
    pub fn new(kinds: &KindTable) -> Self {
        let kinds = kinds.iter().map(|kind| KindTotals {
            kind: kind.name.to_string(),
            ..KindTotals::default()
        });
        Self {
            kinds: kinds.collect(),
            ..Self::default()
        }
    }

    /// The totals of a kind.
    pub fn kind(&self, name: &str) -> Option<&KindTotals> {
        self.kinds.iter().find(|totals| totals.kind == name)
    }

    /// Rows lost over all kinds.
    pub fn lost(&self) -> u64 {
        self.kinds.iter().map(|totals| totals.lost).sum()
    }
}

/// Bytes of the rows in a block.
pub(super) fn block_bytes(block: &Block) -> u64 {
    let columns = block.kind().columns.iter().enumerate();
    columns
        .map(|(at, def)| (block.column(at).data.len() * def.element.bytes()) as u64)
        .sum()
}
