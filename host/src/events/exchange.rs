//! The bounded hand-over between producers and the pump.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;

use crossbeam_queue::ArrayQueue;
use lm_bench_plugin::{Block, EventRow};

use super::delivery::Weights;
use super::kind_table::KindTable;

/// Empty blocks kept ready for each recorded kind, besides the one a producer fills.
pub(super) const SPARE_BLOCKS: usize = 2;

/// Most rows in a block of a kind with lists: with 128 experts 512 rows of `moe_route` take 0.5 MiB, so that the
/// blocks in turn stay in the cache, and a full queue stays below 100 MiB.
const MAX_LIST_ROWS: u32 = 512;

/// A full block and where it comes from.
#[derive(Debug)]
pub(super) struct Handed {
    pub(super) producer: usize,
    pub(super) kind: usize,
    pub(super) block: Block,
}

/// What the owner of the collection wants of the pump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Run,
    Finish,
    /// Finish, but with no further batch for the collectors.
    Cut,
    Abandon,
}

/// Rows that one producer recorded, by kind; written by the producer alone, before it hands a block over.
#[derive(Debug)]
pub(super) struct ProducerTotals {
    recorded: Vec<AtomicU64>,
    /// Least and greatest weight of these rows; 0 while there are none.
    weights: Vec<[AtomicU32; 2]>,
    refused: AtomicU64,
}

impl ProducerTotals {
    fn new(kinds: usize) -> Self {
        Self {
            recorded: (0..kinds).map(|_| AtomicU64::new(0)).collect(),
            weights: (0..kinds)
                .map(|_| [AtomicU32::new(0), AtomicU32::new(0)])
                .collect(),
            refused: AtomicU64::new(0),
        }
    }

    pub(super) fn set_recorded(&self, kind: usize, rows: u64) {
        self.recorded[kind].store(rows, Ordering::Release);
    }

    /// Says that rows of this weight, at least 1, are among the recorded ones.
    pub(super) fn note_weight(&self, kind: usize, weight: u32) {
        let noted = Weights::all(weight);
        let Weights { least, greatest } = self.weights(kind).map_or(noted, |before| before.and(noted));
        self.weights[kind][0].store(least, Ordering::Release);
        self.weights[kind][1].store(greatest, Ordering::Release);
    }

    pub(super) fn weights(&self, kind: usize) -> Option<Weights> {
        let [least, greatest] = &self.weights[kind];
        let (least, greatest) = (least.load(Ordering::Acquire), greatest.load(Ordering::Acquire));
        (least > 0).then_some(Weights { least, greatest })
    }

    pub(super) fn recorded(&self, kind: usize) -> u64 {
        self.recorded[kind].load(Ordering::Acquire)
    }

    pub(super) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// Shared by the producers and the pump. Nothing here blocks a producer: both queues are lock-free, the mutex is
/// taken once when a producer starts.
#[derive(Debug)]
pub(super) struct Exchange {
    kinds: KindTable,
    block_rows: u32,
    full: ArrayQueue<Handed>,
    empty: Vec<ArrayQueue<Block>>,
    producers: Mutex<Vec<Arc<ProducerTotals>>>,
    handed: AtomicU64,
    taken: AtomicU64,
    /// Kept batches that the collectors have had, and all of them.
    collected: [AtomicU64; 2],
    dropped: AtomicU64,
    allocated: AtomicU64,
    command: AtomicU8,
    pump: OnceLock<Thread>,
}

impl Exchange {
    /// `block_rows` and `queue_blocks` are at least 1.
    pub(super) fn new(kinds: KindTable, block_rows: u32, queue_blocks: usize) -> Self {
        let empty = kinds
            .iter()
            .map(|_| ArrayQueue::new(queue_blocks.max(SPARE_BLOCKS)))
            .collect();
        Self {
            kinds,
            block_rows,
            full: ArrayQueue::new(queue_blocks),
            empty,
            producers: Mutex::default(),
            handed: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            collected: [AtomicU64::new(0), AtomicU64::new(0)],
            dropped: AtomicU64::new(0),
            allocated: AtomicU64::new(0),
            command: AtomicU8::new(Command::Run as u8),
            pump: OnceLock::new(),
        }
    }

    pub(super) fn kinds(&self) -> &KindTable {
        &self.kinds
    }

    /// Registers a producer and gives it its number.
    pub(super) fn join(&self) -> (usize, Arc<ProducerTotals>) {
        let mut producers = self.producers.lock().unwrap_or_else(PoisonError::into_inner);
        let totals = Arc::new(ProducerTotals::new(self.kinds.len()));
        producers.push(Arc::clone(&totals));
        (producers.len() - 1, totals)
    }

    pub(super) fn producers(&self) -> Vec<Arc<ProducerTotals>> {
        self.producers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Weights of the rows of a kind that all producers recorded.
    pub(super) fn weights(&self, kind: usize) -> Option<Weights> {
        let producers = self.producers();
        let each = producers.iter().filter_map(|producer| producer.weights(kind));
        each.reduce(Weights::and)
    }

    /// A new block; `None` for an index outside the table.
    pub(super) fn new_block(&self, kind: usize) -> Option<Block> {
        let def = self.kinds.get(kind)?;
        let has_lists = def.columns.iter().any(|column| column.list);
        let most = if has_lists { MAX_LIST_ROWS } else { u32::MAX };
        Some(Block::new(Arc::clone(def), self.block_rows.min(most)))
    }

    /// Makes sure that spare blocks of a kind exist.
    pub(super) fn stock(&self, kind: usize) {
        while self.empty[kind].len() < SPARE_BLOCKS {
            let Some(block) = self.new_block(kind) else { return };
            if self.empty[kind].push(block).is_err() {
                return;
            }
        }
    }

    /// Gives the spare blocks of a kind the list memory that such a row needs.
    pub(super) fn shape<R: EventRow>(&self, kind: usize, row: &R) {
        for _ in 0..self.empty[kind].len() {
            let Some(mut block) = self.empty[kind].pop() else {
                return;
            };
            block.push(row);
            self.give_back(kind, block);
        }
    }

    /// An empty block, allocated and counted when none has come back.
    pub(super) fn take_empty(&self, kind: usize) -> Option<Block> {
        self.empty[kind].pop().or_else(|| {
            self.allocated.fetch_add(1, Ordering::Relaxed);
            self.new_block(kind)
        })
    }

    /// Makes a used block available again; a surplus one is freed.
    pub(super) fn give_back(&self, kind: usize, mut block: Block) {
        block.clear();
        // An error means that enough empty blocks wait already.
        drop(self.empty[kind].push(block));
    }

    /// Hands a block to the pump. When the queue is full the oldest block makes room; its rows show as a gap
    /// between the `first_row` of its neighbours.
    pub(super) fn hand_over(&self, handed: Handed) {
        self.handed.fetch_add(1, Ordering::Relaxed);
        if let Some(oldest) = self.full.force_push(handed) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            self.give_back(oldest.kind, oldest.block);
        }
        self.wake();
    }

    pub(super) fn take_full(&self) -> Option<Handed> {
        self.full.pop()
    }

    /// Says that a block from [`Exchange::take_full`] has been dealt with.
    pub(super) fn taken(&self) {
        self.taken.fetch_add(1, Ordering::Release);
    }

    /// Whether all blocks that were handed over have been dealt with.
    pub(super) fn is_all_taken(&self) -> bool {
        let done = self.taken.load(Ordering::Acquire) + self.dropped();
        done >= self.handed.load(Ordering::Relaxed)
    }

    /// Says how many of all kept batches the collectors have had.
    pub(super) fn tell_collected(&self, done: u64, all: u64) {
        self.collected[0].store(done, Ordering::Relaxed);
        self.collected[1].store(all, Ordering::Relaxed);
    }

    pub(super) fn collected(&self) -> (u64, u64) {
        let [done, all] = &self.collected;
        (done.load(Ordering::Relaxed), all.load(Ordering::Relaxed))
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn allocated(&self) -> u64 {
        self.allocated.load(Ordering::Relaxed)
    }

    pub(super) fn command(&self) -> Command {
        match self.command.load(Ordering::Acquire) {
            command if command == Command::Run as u8 => Command::Run,
            command if command == Command::Finish as u8 => Command::Finish,
            command if command == Command::Cut as u8 => Command::Cut,
            _ => Command::Abandon,
        }
    }

    pub(super) fn tell(&self, command: Command) {
        self.command.store(command as u8, Ordering::Release);
        self.wake();
    }

    /// Names the thread that [`Exchange::hand_over`] wakes.
    pub(super) fn set_pump(&self, thread: Thread) {
        // There is one pump per exchange, so the cell is empty.
        drop(self.pump.set(thread));
    }

    fn wake(&self) {
        if let Some(pump) = self.pump.get() {
            pump.unpark();
        }
    }
}
