//! The producers' side: rows into preallocated blocks.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use lm_bench_plugin::kinds::{self, moe_assign};
use lm_bench_plugin::{Block, EventRow, Level};

use crate::clock::Clock;

use super::exchange::{Exchange, Handed, ProducerTotals};
use super::sampling::Sampler;
use super::symbols::SymbolTable;

/// Age at which live collection hands a partial block over.
pub const LIVE_FLUSH_NS: u64 = 50_000_000;
/// Widest list that a row may hold.
pub(super) const MAX_LIST_WIDTH: usize = 65_536;

/// What is recorded, and how much of it is buffered.
#[derive(Clone, Debug)]
pub struct RecorderConfig {
    /// Instrumentation level: kinds of this and cheaper levels are recorded.
    pub level: Level,
    /// One of this many forward passes is recorded for kinds of level `ops` and above; at least 1.
    pub sample_every: u32,
    /// Rows per block, 1 to 2²⁰; blocks of kinds with lists have 512 at most.
    pub block_rows: u32,
    /// Full blocks that wait for the sinks before the oldest is dropped, 1 to 2¹⁶.
    pub queue_blocks: usize,
    /// Indices of kinds that a subscription asks for; they are recorded whatever the level.
    pub raised: BTreeSet<usize>,
    /// Indices of kinds that are recorded only when they are in `raised`, because they are costly.
    pub wanted_only: BTreeSet<usize>,
}

impl Default for RecorderConfig {
    fn default() -> Self {
        Self {
            level: Level::Steps,
            sample_every: 8,
            block_rows: 4096,
            queue_blocks: 64,
            raised: BTreeSet::new(),
            wanted_only: BTreeSet::from([moe_assign::INDEX]),
        }
    }
}

impl RecorderConfig {
    /// Whether a built-in kind is recorded at all.
    pub fn records(&self, kind_index: usize) -> bool {
        let Some(kind) = kinds::KINDS.get(kind_index) else {
            return false;
        };
        let by_level = kind.level <= self.level && !self.wanted_only.contains(&kind_index);
        by_level || self.raised.contains(&kind_index)
    }
}

/// Records the rows of one thread: no lock, and no allocation while empty blocks come back in time.
///
/// Rows go into the current block of their kind. A block leaves when it is full, when a row has other list widths
/// than the rows before it, when the weight changes, on [`flush`](Recorder::flush), and when the recorder is
/// dropped; in live collection also at the next step once 50 ms have passed. A full queue drops its oldest block,
/// so that recording never waits.
#[derive(Debug)]
pub struct Recorder {
    clock: Clock,
    exchange: Arc<Exchange>,
    producer: usize,
    totals: Arc<ProducerTotals>,
    slots: Vec<Slot>,
    sampled: Vec<usize>,
    sample_every: u32,
    measured: Sampler,
    warm_up: Sampler,
    enabled: bool,
    /// Whether the current step is one of those in which sampled kinds are recorded.
    chosen: bool,
    /// When recording was suspended, on the clock.
    suspended_at: Option<u64>,
    /// Time for which recording was suspended so far.
    absent_ns: u64,
    step: u64,
    live: bool,
    flushed_ns: u64,
    symbols: Arc<SymbolTable>,
    known: HashMap<Box<str>, u32>,
}

/// The current block of a kind.
#[derive(Debug)]
struct Slot {
    /// `None` for a kind that is not recorded.
    block: Option<Block>,
    /// Whether rows are taken now: the kind is recorded, and the step is sampled if it must be.
    open: bool,
    /// Whether spare blocks have memory for this kind's lists.
    shaped: bool,
    /// Rows so far.
    recorded: u64,
    /// Events that each row stands for.
    weight: u32,
}

/// Parts of a recorder that its collection owns.
#[derive(Clone, Debug)]
pub(super) struct RecorderParts {
    pub(super) config: RecorderConfig,
    pub(super) clock: Clock,
    pub(super) exchange: Arc<Exchange>,
    pub(super) symbols: Arc<SymbolTable>,
    pub(super) live: bool,
}

impl Recorder {
    pub(super) fn new(parts: &RecorderParts) -> Self {
        let RecorderParts { config, exchange, .. } = parts;
        let (producer, totals) = exchange.join();
        let slots = (0..kinds::KINDS.len())
            .map(|kind| Slot::new(kind, config, exchange))
            .collect();
        let is_sampled = |kind: &usize| kinds::KINDS[*kind].level >= Level::Ops && config.records(*kind);
        Self {
            clock: parts.clock.clone(),
            exchange: Arc::clone(exchange),
            producer,
            totals,
            slots,
            sampled: (0..kinds::KINDS.len()).filter(is_sampled).collect(),
            sample_every: config.sample_every,
            measured: Sampler::new(config.sample_every),
            warm_up: Sampler::new(config.sample_every),
            enabled: true,
            chosen: false,
            suspended_at: None,
            absent_ns: 0,
            step: 0,
            live: parts.live,
            flushed_ns: parts.clock.now_ns(),
            symbols: Arc::clone(&parts.symbols),
            known: HashMap::new(),
        }
    }

    /// Nanoseconds since the run started, without the time for which recording [was suspended](Recorder::suspend): what
    /// goes into `t_ns`.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns() - self.absent_ns
    }

    /// Starts a forward pass of the given [phase](kinds::phase) and decides whether kinds of level `ops` and
    /// above are recorded in it: one pass in `sample_every` of each phase. Before the first step (while a model
    /// is loaded) they are all recorded, with weight 1. Steps of the warm-up do not count.
    pub fn begin_step(&mut self, step: u64, phase: u8) {
        self.step = step;
        if self.suspended_at.is_some() {
            return;
        }
        if self.live {
            self.flush_if_due();
        }
        let sampler = if self.enabled {
            &mut self.measured
        } else {
            &mut self.warm_up
        };
        let chosen = sampler.choose(phase);
        self.chosen = chosen;
        let weight = self.sample_every;
        for at in 0..self.sampled.len() {
            let kind = self.sampled[at];
            if self.slots[kind].weight != weight {
                self.hand_over(kind);
                self.slots[kind].weight = weight;
            }
            self.slots[kind].open = chosen;
        }
    }

    /// The number of the current forward pass.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Of how many steps one is recorded in detail; `None` where no kind is sampled.
    pub fn sampled_every(&self) -> Option<u32> {
        (!self.sampled.is_empty()).then_some(self.sample_every)
    }

    /// Whether the current step is one of those in which sampled kinds are recorded.
    pub fn is_sampled_step(&self) -> bool {
        self.chosen && !self.sampled.is_empty()
    }

    /// Whether rows of a kind are recorded now. Ask before doing work that only a row needs. The answer does not
    /// depend on [`set_enabled`](Recorder::set_enabled), so that warm-up does the work of the measured part.
    #[inline]
    pub fn wants(&self, kind_index: usize) -> bool {
        self.slots.get(kind_index).is_some_and(|slot| slot.open)
    }

    /// Records a row, if its kind [is wanted](Recorder::wants) and recording is enabled.
    #[inline]
    pub fn record<R: EventRow>(&mut self, row: &R) {
        let Some(slot) = self.slots.get_mut(R::INDEX) else {
            return;
        };
        if !slot.open {
            return;
        }
        if !self.enabled {
            return self.warm(row);
        }
        if R::HAS_LISTS && !self.make_room(row) {
            return;
        }
        let slot = &mut self.slots[R::INDEX];
        let Some(block) = &mut slot.block else { return };
        block.push(row);
        slot.recorded += 1;
        if block.is_full() {
            self.hand_over(R::INDEX);
        }
    }

    /// The id of a text for `sym` columns. The first time a text is asked for takes a lock and allocates.
    pub fn symbol(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.known.get(text) {
            return id;
        }
        let id = self.symbols.intern(text);
        self.known.insert(Box::from(text), id);
        id
    }

    /// Switches recording off for warm-up and on again. While it is off, rows are written and forgotten, which
    /// gives blocks their list memory before it counts.
    pub fn set_enabled(&mut self, enabled: bool) {
        self.enabled = enabled;
    }

    /// Leaves everything out until [`resume`](Recorder::resume): no kind is wanted, so that producers do no work for rows,
    /// and steps do not count for sampling. It is as if the time in between had not been.
    pub fn suspend(&mut self) {
        if self.suspended_at.is_none() {
            self.suspended_at = Some(self.clock.now_ns());
            self.slots.iter_mut().for_each(|slot| slot.open = false);
        }
    }

    /// Ends what [`suspend`](Recorder::suspend) began. Sampled kinds are wanted again from the next chosen step on.
    pub fn resume(&mut self) {
        let Some(since) = self.suspended_at.take() else {
            return;
        };
        self.absent_ns += self.clock.now_ns() - since;
        for (kind, slot) in self.slots.iter_mut().enumerate() {
            slot.open = slot.block.is_some() && !self.sampled.contains(&kind);
        }
    }

    /// Hands all partial blocks over.
    pub fn flush(&mut self) {
        for kind in 0..self.slots.len() {
            self.hand_over(kind);
        }
        self.flushed_ns = self.clock.now_ns();
    }

    /// Hands all partial blocks over if the last time is 50 ms ago. [`begin_step`](Recorder::begin_step) does so
    /// in live collection; a producer without steps calls it in its own loop.
    pub fn flush_if_due(&mut self) {
        if self.clock.now_ns().saturating_sub(self.flushed_ns) >= LIVE_FLUSH_NS {
            self.flush();
        }
    }

    /// Makes the current block ready for a row with lists; false for a row that no block can hold.
    #[inline]
    fn make_room<R: EventRow>(&mut self, row: &R) -> bool {
        let Some(block) = &self.slots[R::INDEX].block else {
            return false;
        };
        let fresh = block.rows() == 0;
        if !fresh && block.accepts(row) {
            return true;
        }
        if !has_usable_widths(row) {
            self.totals.refuse();
            return false;
        }
        if !fresh {
            self.hand_over(R::INDEX);
        }
        true
    }

    /// Sends the current block off if it has rows.
    #[cold]
    fn hand_over(&mut self, kind: usize) {
        let slot = &mut self.slots[kind];
        let Some(mut block) = slot.block.take_if(|block| block.rows() > 0) else {
            return;
        };
        block.first_row = slot.recorded - u64::from(block.rows());
        block.weight = f64::from(slot.weight);
        self.totals.set_recorded(kind, slot.recorded);
        self.totals.note_weight(kind, slot.weight);
        self.exchange.hand_over(Handed {
            producer: self.producer,
            kind,
            block,
        });
        slot.block = self.exchange.take_empty(kind);
    }

    /// Writes a row of the warm-up and forgets it.
    #[cold]
    fn warm<R: EventRow>(&mut self, row: &R) {
        if R::HAS_LISTS && !has_usable_widths(row) {
            return;
        }
        let slot = &mut self.slots[R::INDEX];
        let Some(block) = slot.block.as_mut().filter(|block| block.rows() == 0) else {
            return;
        };
        block.push(row);
        block.clear();
        if R::HAS_LISTS && !slot.shaped {
            slot.shaped = true;
            self.exchange.shape(R::INDEX, row);
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.flush();
    }
}

impl Slot {
    fn new(kind: usize, config: &RecorderConfig, exchange: &Exchange) -> Self {
        let open = config.records(kind);
        let mut block = None;
        if open {
            exchange.stock(kind);
            block = exchange.new_block(kind);
        }
        Self {
            block,
            open,
            shaped: false,
            recorded: 0,
            weight: 1,
        }
    }
}

/// Whether each list of a row has at least one value and none is absurdly long.
fn has_usable_widths<R: EventRow>(row: &R) -> bool {
    let mut usable = true;
    row.widths(&mut |_, width| usable &= (1..=MAX_LIST_WIDTH).contains(&width));
    usable
}
