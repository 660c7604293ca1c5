//! The consumers' side: a thread that brings blocks from the producers to the sinks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::collection::{CollectMode, Collected};
use super::delivery::{Delivery, EventSink, Guarded, Totals, block_bytes};
use super::exchange::{Command, Exchange, Handed};
use super::kind_table::KindTable;
use super::recording::RecordingWriter;
use super::symbols::SymbolTable;

/// Longest time between two looks at the queue and between two ticks.
const PUMP_INTERVAL: Duration = Duration::from_millis(50);

/// The state of the collecting thread.
#[derive(Debug)]
pub(super) struct Pump<S> {
    exchange: Arc<Exchange>,
    symbols: Arc<SymbolTable>,
    mode: CollectMode,
    recording: Option<Guarded<RecordingWriter>>,
    collectors: Guarded<S>,
    ledger: Ledger,
    kept: Vec<Delivery>,
    kept_bytes: u64,
    rows_over_budget: u64,
    rows_cut: u64,
}

impl<S: EventSink> Pump<S> {
    pub(super) fn new(
        (exchange, symbols): (Arc<Exchange>, Arc<SymbolTable>),
        mode: CollectMode,
        recording: Option<RecordingWriter>,
        collectors: S,
    ) -> Self {
        Self {
            ledger: Ledger::new(exchange.kinds()),
            exchange,
            symbols,
            mode,
            recording: recording.map(Guarded::new),
            collectors: Guarded::new(collectors),
            kept: Vec::new(),
            kept_bytes: 0,
            rows_over_budget: 0,
            rows_cut: 0,
        }
    }

    pub(super) fn run(mut self) -> Self {
        loop {
            // Read before the queue is drained: blocks handed over before the command are in the queue now.
            let command = self.exchange.command();
            if command == Command::Abandon {
                return self;
            }
            while let Some(handed) = self.exchange.take_full() {
                self.take(handed);
                self.exchange.taken();
            }
            self.tick();
            if matches!(command, Command::Finish | Command::Cut) {
                break;
            }
            std::thread::park_timeout(PUMP_INTERVAL);
        }
        let kept = std::mem::take(&mut self.kept);
        let all = kept.len() as u64;
        for (delivery, done) in kept.into_iter().zip(0..) {
            self.exchange.tell_collected(done, all);
            self.collect(&delivery);
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
        let cut = self.rows_cut > 0;
        for (kind, totals) in totals.kinds.iter_mut().enumerate() {
            // A recorder that outlives the collection may have handed over more since; it cannot have less.
            totals.lost = totals.recorded.saturating_sub(totals.delivered);
            let untold = totals.lost.saturating_sub(self.ledger.told[kind]);
            if untold > 0 && !cut {
                self.collectors.lost(kind, untold);
            }
        }
    }

    /// Gives the collectors a batch, unless they are to get no more.
    fn collect(&mut self, delivery: &Delivery) {
        if self.exchange.command() == Command::Cut {
            self.rows_cut += u64::from(delivery.block.rows());
        } else {
            self.collectors.accept(delivery, &self.symbols);
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
            self.collect(&delivery);
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

    pub(super) fn into_collected(self) -> Collected<S> {
        Collected {
            totals: self.ledger.totals,
            collectors: self.collectors.sink,
            collectors_fault: self.collectors.fault,
            rows_cut: self.rows_cut,
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
