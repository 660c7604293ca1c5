//! The consumers' side: a thread that brings blocks from the producers to the sinks.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use lm_bench_plugin::erased::panic_text;
use thiserror::Error;

use crate::clock::Clock;

use super::delivery::{Delivery, EventSink, Guarded, SinkError, Totals, block_bytes};
use super::exchange::{Command, Exchange, Handed};
use super::kind_table::KindTable;
use super::recorder::{Recorder, RecorderConfig, RecorderParts};
use super::recording::RecordingWriter;
use super::symbols::SymbolTable;

/// Longest time between two looks at the queue and between two ticks.
const PUMP_INTERVAL: Duration = Duration::from_millis(50);
/// Memory that [`CollectMode::After`] may keep events in, unless told otherwise.
pub const DEFAULT_BUDGET_BYTES: u64 = 1 << 30;

/// Stack of the thread that calls the sinks. A collector in a sandbox has its own limit well below it; a native one
/// takes what it likes.
pub const SINK_STACK_BYTES: usize = 4 << 20;

/// When the collectors get the events (`--collect`). A recording is written as events arrive, in both modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectMode {
    /// As they arrive.
    Live,
    /// When the timed part is over, from memory.
    After {
        /// Most bytes of rows that are kept. Once it is reached, arriving rows are dropped and counted as lost.
        budget_bytes: u64,
    },
}

impl Default for CollectMode {
    fn default() -> Self {
        Self::After {
            budget_bytes: DEFAULT_BUDGET_BYTES,
        }
    }
}

/// What a collection is started with.
#[derive(Clone, Debug)]
pub struct CollectionSetup {
    /// What is recorded.
    pub config: RecorderConfig,
    /// The run's kinds.
    pub kinds: KindTable,
    /// The run's symbols.
    pub symbols: Arc<SymbolTable>,
    /// The run's clock.
    pub clock: Clock,
    /// When the collectors run.
    pub mode: CollectMode,
}

/// Why events cannot be collected.
#[derive(Debug, Error)]
pub enum CollectionError {
    /// A setting is out of range.
    #[error("{name} is {value}, must be {low} to {high}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: u64,
        /// Least value.
        low: u64,
        /// Greatest value.
        high: u64,
    },
    /// The system refuses a thread.
    #[error("cannot start the thread that collects events: {0}")]
    Thread(#[source] std::io::Error),
    /// The pump itself panicked; this is a fault of lm-bench.
    #[error("the thread that collects events panicked: {0}")]
    Pump(String),
}

/// What is there when a collection is over.
#[derive(Debug)]
pub struct Finished<S> {
    /// The account of all rows.
    pub totals: Totals,
    /// The collectors.
    pub collectors: S,
    /// Why the collectors did not get all delivered rows.
    pub collectors_fault: Option<SinkError>,
    /// The recording, ready to be finished, or why it failed.
    pub recording: Option<Result<RecordingWriter, SinkError>>,
}

/// Brings events from recorders to the sinks until it is finished. Dropping it instead ends the thread and
/// discards the sinks.
#[derive(Debug)]
pub struct Collection<S> {
    parts: RecorderParts,
    pump: Option<JoinHandle<Pump<S>>>,
}

impl<S: EventSink + 'static> Collection<S> {
    /// Starts to collect and gives the recorder of the first producer.
    ///
    /// # Errors
    /// When a setting is out of range or no thread can be started.
    pub fn start(
        setup: CollectionSetup,
        recording: Option<RecordingWriter>,
        collectors: S,
    ) -> Result<(Recorder, Self), CollectionError> {
        let CollectionSetup {
            config,
            kinds,
            symbols,
            clock,
            mode,
        } = setup;
        check(
            "the sampling interval",
            u64::from(config.sample_every),
            u64::from(u32::MAX),
        )?;
        check("rows per block", u64::from(config.block_rows), 1 << 20)?;
        check("blocks in the queue", config.queue_blocks as u64, 1 << 16)?;
        let exchange = Arc::new(Exchange::new(kinds, config.block_rows, config.queue_blocks));
        let live = mode == CollectMode::Live;
        let pump = Pump {
            exchange: Arc::clone(&exchange),
            symbols: Arc::clone(&symbols),
            mode,
            recording: recording.map(Guarded::new),
            collectors: Guarded::new(collectors),
            ledger: Ledger::new(exchange.kinds()),
            kept: Vec::new(),
            kept_bytes: 0,
            rows_over_budget: 0,
        };
        let pump = std::thread::Builder::new()
            .name("lm-bench-events".to_owned())
            .stack_size(SINK_STACK_BYTES)
            .spawn(move || pump.run())
            .map_err(CollectionError::Thread)?;
        exchange.set_pump(pump.thread().clone());
        let parts = RecorderParts {
            config,
            clock,
            exchange,
            symbols,
            live,
        };
        Ok((
            Recorder::new(&parts),
            Self {
                parts,
                pump: Some(pump),
            },
        ))
    }

    /// The recorder of a further producer, to be dropped before the collection is finished.
    pub fn recorder(&self) -> Recorder {
        Recorder::new(&self.parts)
    }

    /// Ends the collection: takes the first producer's last rows, runs the collectors if they have waited, and
    /// gives everything back. Rows that another recorder, still alive, has not handed over are not in the totals.
    ///
    /// # Errors
    /// When the collecting thread died. A sink's failure is not an error here but part of the result.
    pub fn finish(mut self, recorder: Recorder) -> Result<Finished<S>, CollectionError> {
        drop(recorder);
        self.parts.exchange.tell(Command::Finish);
        let pump = self
            .pump
            .take()
            .expect("only finish, which consumes the collection, takes the thread");
        let pump = pump
            .join()
            .map_err(|panic| CollectionError::Pump(panic_text(&*panic).to_owned()))?;
        Ok(pump.into_finished())
    }
}

impl<S> Drop for Collection<S> {
    fn drop(&mut self) {
        if self.pump.is_some() {
            self.parts.exchange.tell(Command::Abandon);
        }
    }
}

fn check(name: &'static str, value: u64, high: u64) -> Result<(), CollectionError> {
    if (1..=high).contains(&value) {
        return Ok(());
    }
    Err(CollectionError::Setting {
        name,
        value,
        low: 1,
        high,
    })
}

/// The state of the collecting thread.
#[derive(Debug)]
struct Pump<S> {
    exchange: Arc<Exchange>,
    symbols: Arc<SymbolTable>,
    mode: CollectMode,
    recording: Option<Guarded<RecordingWriter>>,
    collectors: Guarded<S>,
    ledger: Ledger,
    kept: Vec<Delivery>,
    kept_bytes: u64,
    rows_over_budget: u64,
}

impl<S: EventSink> Pump<S> {
    fn run(mut self) -> Self {
        loop {
            // Read before the queue is drained: blocks handed over before the command are in the queue now.
            let command = self.exchange.command();
            if command == Command::Abandon {
                return self;
            }
            while let Some(handed) = self.exchange.take_full() {
                self.take(handed);
            }
            self.tick();
            if command == Command::Finish {
                break;
            }
            std::thread::park_timeout(PUMP_INTERVAL);
        }
        for delivery in std::mem::take(&mut self.kept) {
            self.collectors.accept(&delivery, &self.symbols);
            self.collectors.tick();
        }
        self.settle();
        self
    }

    /// Completes the account, and tells the collectors of the losses that no batch has told.
    fn settle(&mut self) {
        let totals = &mut self.ledger.totals;
        for producer in self.exchange.producers() {
            totals.rows_refused += producer.refused();
            for (kind, totals) in totals.kinds.iter_mut().enumerate() {
                totals.recorded += producer.recorded(kind);
            }
        }
        totals.blocks_dropped = self.exchange.dropped();
        totals.blocks_allocated = self.exchange.allocated();
        totals.rows_over_budget = self.rows_over_budget;
        for (kind, totals) in totals.kinds.iter_mut().enumerate() {
            // A recorder that outlives the collection may have handed over more since; it cannot have less.
            totals.lost = totals.recorded.saturating_sub(totals.delivered);
            let untold = totals.lost.saturating_sub(self.ledger.told[kind]);
            if untold > 0 {
                self.collectors.lost(kind, untold);
            }
        }
    }

    fn take(&mut self, handed: Handed) {
        let Handed {
            producer,
            kind,
            block,
        } = handed;
        let CollectMode::After { budget_bytes } = self.mode else {
            // New empty blocks before the sinks take their time.
            self.exchange.stock(kind);
            let delivery = self.ledger.admit(
                producer,
                Delivery {
                    kind,
                    block,
                    seq: 0,
                    lost_before: 0,
                },
            );
            self.write(&delivery);
            self.collectors.accept(&delivery, &self.symbols);
            return self.exchange.give_back(kind, delivery.block);
        };
        let bytes = block_bytes(&block);
        if self.kept_bytes.saturating_add(bytes) > budget_bytes {
            // Before recording too: a recording holds what the collectors got.
            self.rows_over_budget += u64::from(block.rows());
            return self.exchange.give_back(kind, block);
        }
        self.kept_bytes += bytes;
        // The copy has memory for its rows only, and the block goes back to its producer at once.
        let copy = block.clone();
        self.exchange.give_back(kind, block);
        let delivery = self.ledger.admit(
            producer,
            Delivery {
                kind,
                block: copy,
                seq: 0,
                lost_before: 0,
            },
        );
        self.write(&delivery);
        self.kept.push(delivery);
    }

    fn write(&mut self, delivery: &Delivery) {
        if let Some(recording) = &mut self.recording {
            recording.accept(delivery, &self.symbols);
        }
    }

    fn tick(&mut self) {
        if let Some(recording) = &mut self.recording {
            recording.tick();
        }
        if self.mode == CollectMode::Live {
            self.collectors.tick();
        }
    }

    fn into_finished(self) -> Finished<S> {
        Finished {
            totals: self.ledger.totals,
            collectors: self.collectors.sink,
            collectors_fault: self.collectors.fault,
            recording: self.recording.map(|guarded| match guarded.fault {
                None => Ok(guarded.sink),
                Some(fault) => Err(fault),
            }),
        }
    }
}

/// Numbers batches and finds gaps.
#[derive(Debug)]
struct Ledger {
    totals: Totals,
    seq: Vec<u64>,
    /// Lost rows that batches have told of, by kind.
    told: Vec<u64>,
    /// The row that must come next, by producer and kind.
    next_row: HashMap<(usize, usize), u64>,
}

impl Ledger {
    fn new(kinds: &KindTable) -> Self {
        Self {
            totals: Totals::new(kinds),
            seq: vec![0; kinds.len()],
            told: vec![0; kinds.len()],
            next_row: HashMap::new(),
        }
    }

    fn admit(&mut self, producer: usize, mut delivery: Delivery) -> Delivery {
        let (kind, rows) = (delivery.kind, u64::from(delivery.block.rows()));
        let next = self.next_row.entry((producer, kind)).or_default();
        delivery.lost_before = delivery.block.first_row - *next;
        *next = delivery.block.first_row + rows;
        self.told[kind] += delivery.lost_before;
        delivery.seq = self.seq[kind];
        self.seq[kind] += 1;
        self.totals.kinds[kind].delivered += rows;
        delivery
    }
}
