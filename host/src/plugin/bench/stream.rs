//! The rows that a measurement feeds: of a recording, or made from a seed.

use std::path::Path;
use std::sync::Arc;

use lm_bench_plugin::{Block, ColumnBuf, ColumnDef, ElementType, RunInfo};

use super::BenchError;
use crate::events::{Delivery, EventSink, KindTable, Recording, SinkError, SymbolTable};

/// Experts of the seeded stream, the width of list columns.
pub const EXPERTS: u32 = 128;
/// Rows of a seeded block, as many as a collector takes at once by default.
const BLOCK_ROWS: u32 = lm_bench_plugin::DEFAULT_MAX_ROWS;
/// Layers of the model that the seeded stream is of.
const LAYERS: u64 = 48;

/// Rows to feed, in order.
pub(super) struct Stream {
    pub(super) kinds: KindTable,
    pub(super) run: RunInfo,
    pub(super) symbols: Arc<SymbolTable>,
    source: Source,
}

enum Source {
    Recorded(Vec<Delivery>),
    /// This many rows of each kind.
    Seeded(u32),
}

impl Stream {
    /// The rows of a recording; those of kinds that nobody takes are kept, too.
    pub(super) fn recorded(path: &Path) -> Result<Self, BenchError> {
        let recording = Recording::open(path)?;
        let mut keep = Keep(Vec::new());
        recording.replay(&mut keep)?;
        let run = match recording.run().get("run_info") {
            Some(run) => serde_json::from_value(run.clone()).map_err(|error| BenchError::RunFacts {
                path: path.to_owned(),
                error,
            })?,
            // It was not recorded by a run.
            None => RunInfo::default(),
        };
        Ok(Self {
            kinds: recording.kinds().clone(),
            run,
            symbols: Arc::clone(recording.symbols()),
            source: Source::Recorded(keep.0),
        })
    }

    /// Rows from a seed.
    pub(super) fn seeded(rows: u32) -> Self {
        Self {
            kinds: KindTable::builtin(),
            run: RunInfo::default(),
            symbols: Arc::new(SymbolTable::new()),
            source: Source::Seeded(rows),
        }
    }

    /// The rows of some kinds.
    pub(super) fn of(&self, kinds: &[usize]) -> Result<Vec<Delivery>, BenchError> {
        let rows = match &self.source {
            Source::Recorded(all) => {
                let taken = all.iter().filter(|delivery| kinds.contains(&delivery.kind));
                return Ok(taken.cloned().collect());
            }
            Source::Seeded(rows) => *rows,
        };
        let mut deliveries = Vec::new();
        for &kind in kinds {
            for (seq, from) in (0..rows).step_by(BLOCK_ROWS as usize).enumerate() {
                let count = BLOCK_ROWS.min(rows - from);
                deliveries.push(Delivery {
                    kind,
                    block: self.block(kind, (from, count))?,
                    seq: seq as u64,
                    lost_before: 0,
                });
            }
        }
        Ok(deliveries)
    }

    /// Rows of a kind, `count` from the number `from` on.
    fn block(&self, kind: usize, (from, count): (u32, u32)) -> Result<Block, BenchError> {
        let Some(def) = self.kinds.get(kind) else {
            return Err(BenchError::Stream(format!("there is no kind {kind}")));
        };
        let name = self.symbols.intern("seeded");
        let columns = def.columns.iter().enumerate().map(|(at, column)| {
            let width = if column.list { EXPERTS } else { 1 };
            let mut values = ColumnBuf::with_capacity(column.element, (count * width) as usize);
            for row in u64::from(from)..u64::from(from + count) {
                for element in 0..u64::from(width) {
                    let noise = mix((at as u64) << 48 ^ row << 8 ^ element);
                    let value = if column.element == ElementType::Sym {
                        u64::from(name)
                    } else {
                        value(column, row, noise)
                    };
                    push(&mut values, value);
                }
            }
            (width, values)
        });
        let columns = columns.collect();
        Block::from_columns(Arc::clone(def), count, columns).map_err(BenchError::Stream)
    }
}

/// A plausible value: positions go on from row to row, facts of the model are those of one model, the rest is small.
fn value(column: &ColumnDef, row: u64, noise: u64) -> u64 {
    match column.name.as_ref() {
        "t_ns" | "start_ns" => row * 1_700,
        "step" | "id" | "request" | "index" | "chunk" => row / LAYERS,
        "layer" => row % LAYERS,
        "phase" | "causal" => 1,
        "experts" => u64::from(EXPERTS),
        "top_k" | "kv_heads" => 8,
        "tokens" => LAYERS,
        "heads" => 32,
        "head_dim" => 128,
        "n" | "sum_sq_ref" | "blocks_total" | "device_reserved" => 4_096,
        "tokens_stored" => 1,
        "dropped" | "attempt" | "hits" | "saturated" | "underflow" | "nonfinite" => 0,
        _ if column.unit == "{code}" => 0,
        _ if column.unit == "ns" => 1_000 + noise % 100_000,
        _ => 1 + noise % 7,
    }
}

/// The finaliser of `SplitMix64` (Steele, Lea and Flood 2014).
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Values are small enough for each type.
fn push(column: &mut ColumnBuf, value: u64) {
    match column {
        ColumnBuf::U8(values) => values.push(value as u8),
        ColumnBuf::U16(values) => values.push(value as u16),
        ColumnBuf::U32(values) => values.push(value as u32),
        ColumnBuf::U64(values) => values.push(value),
        ColumnBuf::I64(values) => values.push(value as i64),
        ColumnBuf::F32(values) => values.push(value as f32),
        ColumnBuf::F64(values) => values.push(value as f64),
    }
}

struct Keep(Vec<Delivery>);

impl EventSink for Keep {
    fn accept(&mut self, delivery: &Delivery, _: &SymbolTable) -> Result<(), SinkError> {
        self.0.push(delivery.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use lm_bench_plugin::kinds::moe_route;

    use super::*;

    #[test]
    fn a_seeded_stream_has_the_rows_asked_for_and_is_the_same_each_time() {
        let rows = |stream: &Stream| stream.of(&[moe_route::INDEX]).expect("a stream");
        let (one, other) = (Stream::seeded(5_000), Stream::seeded(5_000));
        let counts: Vec<u32> = rows(&one).iter().map(|delivery| delivery.block.rows()).collect();
        assert_eq!(counts, [4_096, 904]);
        let last = |stream: &Stream| format!("{:?}", rows(stream)[1].block);
        assert_eq!(last(&one), last(&other));
        assert!(last(&one).contains("128"));
    }
}
