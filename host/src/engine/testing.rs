//! Recorders for tests, and what they recorded.

use std::collections::BTreeSet;
use std::sync::Arc;

use lm_bench_plugin::kinds::{KINDS, moe_assign};
use lm_bench_plugin::{Data, Level};

use crate::clock::Clock;
use crate::events::{
    CollectMode, Collection, CollectionSetup, Delivery, KindTable, Recorder, RecorderConfig, SymbolTable,
};

fn setup(level: Level, clock: Clock) -> CollectionSetup {
    CollectionSetup {
        config: RecorderConfig {
            level,
            sample_every: 1,
            raised: if level == Level::Ops {
                BTreeSet::from([moe_assign::INDEX])
            } else {
                BTreeSet::new()
            },
            ..RecorderConfig::default()
        },
        kinds: KindTable::builtin(),
        symbols: Arc::new(SymbolTable::new()),
        clock,
        mode: CollectMode::After {
            budget_bytes: 64 << 20,
        },
    }
}

/// A recorder whose rows nobody sees.
pub(super) fn quiet() -> Recorder {
    let (recorder, _collection) =
        Collection::start(setup(Level::Off, Clock::start()), None, ()).expect("settings in range");
    recorder
}

/// Everything that `work` records, each step sampled and router assignments included.
pub(super) fn record(work: impl FnOnce(&mut Recorder)) -> Recorded {
    record_with(Clock::start(), work)
}

/// As [`record`], on a clock of the caller's.
pub(super) fn record_with(clock: Clock, work: impl FnOnce(&mut Recorder)) -> Recorded {
    let setup = setup(Level::Ops, clock);
    let symbols = Arc::clone(&setup.symbols);
    let (mut recorder, collection) =
        Collection::start(setup, None, Vec::<Delivery>::new()).expect("settings in range");
    work(&mut recorder);
    let finished = collection.finish(recorder).expect("the collection ends");
    Recorded {
        deliveries: finished.collectors,
        symbols,
    }
}

/// Rows by kind and column.
pub(super) struct Recorded {
    deliveries: Vec<Delivery>,
    symbols: Arc<SymbolTable>,
}

impl Recorded {
    /// All values of a column, in the order of recording, as f64 (lists flattened).
    pub(super) fn column(&self, kind: &str, column: &str) -> Vec<f64> {
        let index = KINDS.iter().position(|k| k.name == kind).expect("a kind");
        let at = KINDS[index]
            .columns
            .iter()
            .position(|c| c.name == column)
            .expect("a column");
        let blocks = self.deliveries.iter().filter(|d| d.kind == index);
        blocks.flat_map(|d| floats(d.block.column(at).data)).collect()
    }

    /// As [`Self::column`], for symbols.
    pub(super) fn texts(&self, kind: &str, column: &str) -> Vec<String> {
        let text = |id: f64| {
            self.symbols
                .text(id as u32)
                .expect("an interned symbol")
                .to_string()
        };
        self.column(kind, column).into_iter().map(text).collect()
    }
}

fn floats(data: Data<'_>) -> Vec<f64> {
    match data {
        Data::U8(v) => v.iter().map(|&x| x.into()).collect(),
        Data::U16(v) => v.iter().map(|&x| x.into()).collect(),
        Data::U32(v) => v.iter().map(|&x| x.into()).collect(),
        Data::U64(v) => v.iter().map(|&x| x as f64).collect(),
        Data::I64(v) => v.iter().map(|&x| x as f64).collect(),
        Data::F32(v) => v.iter().map(|&x| x.into()).collect(),
        Data::F64(v) => v.to_vec(),
    }
}
