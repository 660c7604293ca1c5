//! The side of producers whose kinds this program learns at run time.

use std::collections::BTreeMap;
use std::sync::Arc;

use lm_bench_plugin::{Block, ColumnData, Data};

use super::exchange::{Exchange, Handed, ProducerTotals};
use super::recorder::{LIVE_FLUSH_NS, RecorderParts};
use super::symbols::SymbolTable;
use crate::clock::Clock;

/// Records whole columns of kinds from the run's [`KindTable`](super::KindTable), whatever the instrumentation level. Like a
/// [`Recorder`](super::Recorder) it belongs to one thread, never waits, and hands over what is left when it is dropped.
#[derive(Debug)]
pub struct RowRecorder {
    clock: Clock,
    exchange: Arc<Exchange>,
    producer: usize,
    totals: Arc<ProducerTotals>,
    symbols: Arc<SymbolTable>,
    slots: BTreeMap<usize, Slot>,
    live: bool,
    flushed_ns: u64,
}

/// The current block of a kind and its rows so far.
#[derive(Debug)]
struct Slot {
    block: Block,
    recorded: u64,
}

impl RowRecorder {
    pub(super) fn new(parts: &RecorderParts) -> Self {
        let (producer, totals) = parts.exchange.join();
        Self {
            clock: parts.clock.clone(),
            exchange: Arc::clone(&parts.exchange),
            producer,
            totals,
            symbols: Arc::clone(&parts.symbols),
            slots: BTreeMap::new(),
            live: parts.live,
            flushed_ns: parts.clock.now_ns(),
        }
    }

    /// Nanoseconds since the run started: what goes into `t_ns`.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// The id of a text for `sym` columns.
    pub fn symbol(&self, text: &str) -> u32 {
        self.symbols.intern(text)
    }

    /// Records rows of a kind, by its index, that all happened at `t_ns`; `columns` are those after `t_ns`.
    ///
    /// # Errors
    /// Naming what does not fit the kind; nothing is recorded then.
    pub fn record(
        &mut self,
        kind: usize,
        (t_ns, rows): (u64, u32),
        columns: &[ColumnData<'_>],
    ) -> Result<(), String> {
        let times = vec![t_ns; rows as usize];
        let mut all = vec![ColumnData {
            width: 1,
            data: Data::U64(&times),
        }];
        all.extend_from_slice(columns);
        let mut slot = match self.slots.remove(&kind) {
            Some(slot) => slot,
            None => Slot {
                block: self.empty(kind)?,
                recorded: 0,
            },
        };
        if slot.block.rows() > 0 && (!slot.block.has_widths(&all) || !slot.block.has_room(rows)) {
            slot = self.hand_over(kind, slot)?;
        }
        let extended = slot.block.extend(rows, &all);
        if extended.is_ok() {
            slot.recorded += u64::from(rows);
        }
        if slot.block.is_full() {
            slot = self.hand_over(kind, slot)?;
        }
        self.slots.insert(kind, slot);
        extended
    }

    /// Hands all partial blocks over.
    pub fn flush(&mut self) {
        for (kind, slot) in std::mem::take(&mut self.slots) {
            if slot.block.rows() == 0 {
                self.slots.insert(kind, slot);
            } else if let Ok(slot) = self.hand_over(kind, slot) {
                self.slots.insert(kind, slot);
            }
        }
        self.flushed_ns = self.clock.now_ns();
    }

    /// Hands all partial blocks over in live collection, if the last time is 50 ms ago.
    pub fn flush_if_due(&mut self) {
        if self.live && self.clock.now_ns().saturating_sub(self.flushed_ns) >= LIVE_FLUSH_NS {
            self.flush();
        }
    }

    fn empty(&self, kind: usize) -> Result<Block, String> {
        if kind >= self.exchange.kinds().len() {
            return Err(format!("there is no kind number {kind}"));
        }
        self.exchange
            .take_empty(kind)
            .ok_or_else(|| format!("there is no kind number {kind}"))
    }

    fn hand_over(&self, kind: usize, slot: Slot) -> Result<Slot, String> {
        let Slot { mut block, recorded } = slot;
        block.first_row = recorded - u64::from(block.rows());
        block.weight = 1.0;
        self.totals.set_recorded(kind, recorded);
        self.totals.note_weight(kind, 1);
        self.exchange.hand_over(Handed {
            producer: self.producer,
            kind,
            block,
        });
        Ok(Slot {
            block: self.empty(kind)?,
            recorded,
        })
    }
}

impl Drop for RowRecorder {
    fn drop(&mut self) {
        self.flush();
    }
}
