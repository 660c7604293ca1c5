//! Recording a row does not allocate, even while the sinks are stuck and blocks are dropped.
//!
//! A program of its own without a test harness, because the allocator counts all threads.

use std::alloc::System;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use lm_bench::clock::Clock;
use lm_bench::events::{
    CollectMode, Collection, CollectionSetup, Delivery, EventSink, KindTable, Recorder, RecorderConfig,
    SinkError, SymbolTable,
};
use lm_bench_plugin::Level;
use lm_bench_plugin::kinds::{mark, moe_route, phase, step};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Stops in its first batch until the other end of the channel hangs up.
struct Stuck {
    arrived: Sender<()>,
    proceed: Receiver<()>,
}

impl EventSink for Stuck {
    fn accept(&mut self, _: &Delivery, _: &SymbolTable) -> Result<(), SinkError> {
        // Neither end is gone before the test is over, or both are.
        let _ = self.arrived.send(());
        let _ = self.proceed.recv();
        Ok(())
    }
}

/// Records `rows` steps: two scalar kinds, lists of 128 values and a known symbol.
fn record(recorder: &mut Recorder, rows: u64) {
    let (counts, prob_sum) = ([2_u32; 128], [0.5_f32; 128]);
    for number in 0..rows {
        recorder.begin_step(number, phase::DECODE);
        let t_ns = recorder.now_ns();
        recorder.record(&step::Row {
            t_ns,
            step: number,
            batch: 1,
            tokens: 1,
            ..Default::default()
        });
        let route = moe_route::Row {
            t_ns,
            step: number,
            experts: 128,
            ..Default::default()
        };
        recorder.record(&moe_route::Row {
            counts: &counts,
            prob_sum: &prob_sum,
            ..route
        });
        let name = recorder.symbol("known");
        recorder.record(&mark::Row {
            t_ns,
            name,
            value: 1.0,
        });
    }
}

fn main() {
    let (arrived, arrival) = channel();
    let (permit, proceed) = channel::<()>();
    let setup = CollectionSetup {
        config: RecorderConfig {
            level: Level::Ops,
            sample_every: 1,
            block_rows: 64,
            queue_blocks: 8,
            ..RecorderConfig::default()
        },
        kinds: KindTable::builtin(),
        symbols: Arc::new(SymbolTable::new()),
        // The fake clock stands still, so that no partial block is due.
        clock: Clock::fake(),
        mode: CollectMode::Live,
    };
    let (mut recorder, collection) =
        Collection::start(setup, None, Stuck { arrived, proceed }).expect("settings in range");
    // Until the collecting thread sits in the sink and as many blocks exist as the queue can hold.
    record(&mut recorder, 64);
    arrival.recv().expect("the sink gets a batch");
    record(&mut recorder, 64 * 32);

    let region = Region::new(ALLOCATOR);
    record(&mut recorder, 64 * 32);
    let change = region.change();
    assert_eq!((change.allocations, change.reallocations), (0, 0), "{change:?}");

    drop(permit);
    let finished = collection.finish(recorder).expect("the collecting thread ends");
    let rows = 64 + 2 * 64 * 32;
    for kind in ["step", "moe_route", "mark"] {
        let totals = finished.totals.kind(kind).expect("a built-in kind");
        assert_eq!(
            (totals.recorded, totals.delivered + totals.lost),
            (rows, rows),
            "{kind}"
        );
        assert!(totals.lost > 0, "{kind}");
    }
}
