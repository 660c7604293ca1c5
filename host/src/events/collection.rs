//! A collection from its start to its end, as its owner sees it.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use lm_bench_plugin::erased::panic_text;
use thiserror::Error;

use crate::clock::Clock;

use super::delivery::{EventSink, SinkError, Totals};
use super::exchange::{Command, Exchange};
use super::kind_table::KindTable;
use super::pump::Pump;
use super::recorder::{Recorder, RecorderConfig, RecorderParts};
use super::recording::RecordingWriter;
use super::row_recorder::RowRecorder;
use super::symbols::SymbolTable;

/// Time between two looks at whether the collectors should still be waited for.
const WATCH_INTERVAL: Duration = Duration::from_millis(5);
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

/// Whether a collection that is ending should give the collectors what is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// It should.
    GoOn,
    /// It should end before the next batch.
    Cut,
}

/// What is there when a collection is over.
#[derive(Debug)]
pub struct Collected<S> {
    /// The account of all rows.
    pub totals: Totals,
    /// The collectors.
    pub collectors: S,
    /// Why the collectors did not get all delivered rows.
    pub collectors_fault: Option<SinkError>,
    /// Rows that the collectors were not given because the collection was [cut short](Collection::finish_watched).
    pub rows_cut: u64,
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
        let pump = Pump::new(
            (Arc::clone(&exchange), Arc::clone(&symbols)),
            mode,
            recording,
            collectors,
        );
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

    /// The recorder of a producer of kinds that are not built in, to be dropped before the collection is finished.
    pub fn row_recorder(&self) -> RowRecorder {
        RowRecorder::new(&self.parts)
    }

    /// Waits until everything that was handed over has been taken: by the collectors in live collection, else by the
    /// memory that keeps it. `give_up` ends the wait.
    pub fn wait_until_taken(&self, give_up: impl Fn() -> bool) {
        let alive = || self.pump.as_ref().is_some_and(|pump| !pump.is_finished());
        while !self.parts.exchange.is_all_taken() && alive() && !give_up() {
            std::thread::yield_now();
        }
    }

    /// Whether the collectors get the events as they arrive.
    pub fn is_live(&self) -> bool {
        self.parts.live
    }

    /// Ends the collection: takes the first producer's last rows, runs the collectors if they have waited, and
    /// gives everything back. Rows that another recorder, still alive, has not handed over are not in the totals.
    ///
    /// # Errors
    /// When the collecting thread died. A sink's failure is not an error here but part of the result.
    pub fn finish(self, recorder: Recorder) -> Result<Collected<S>, CollectionError> {
        self.finish_watched(recorder, |_, _| Watch::GoOn)
    }

    /// As [`finish`](Collection::finish), and asks `watch` every few milliseconds whether to go on. It is told how many
    /// batches the collectors have had, of how many. A recording is complete in either case.
    ///
    /// # Errors
    /// As [`finish`](Collection::finish).
    pub fn finish_watched(
        mut self,
        recorder: Recorder,
        mut watch: impl FnMut(u64, u64) -> Watch,
    ) -> Result<Collected<S>, CollectionError> {
        drop(recorder);
        let exchange = &self.parts.exchange;
        exchange.tell(Command::Finish);
        let pump = self
            .pump
            .take()
            .expect("only finish, which consumes the collection, takes the thread");
        while !pump.is_finished() {
            let (done, all) = exchange.collected();
            if watch(done, all) == Watch::Cut {
                exchange.tell(Command::Cut);
                break;
            }
            std::thread::park_timeout(WATCH_INTERVAL);
        }
        drop(watch);
        let pump = pump
            .join()
            .map_err(|panic| CollectionError::Pump(panic_text(&*panic).to_owned()))?;
        let mut collected = pump.into_collected();
        for (kind, totals) in collected.totals.kinds.iter_mut().enumerate() {
            totals.weights = self.parts.exchange.weights(kind);
        }
        Ok(collected)
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
