//! Recorder, hand-over and pump together.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use lm_bench_plugin::kinds::{self, mark, moe_assign, moe_route, phase, step};
use lm_bench_plugin::{Data, Level};

use super::*;
use crate::clock::Clock;

pub(super) mod losses;

use losses::Gate;

/// A fake clock, everything in small.
pub(super) fn setup(mode: CollectMode) -> CollectionSetup {
    CollectionSetup {
        config: RecorderConfig {
            block_rows: 4,
            ..RecorderConfig::default()
        },
        kinds: KindTable::builtin(),
        symbols: Arc::new(SymbolTable::new()),
        clock: Clock::fake(),
        mode,
    }
}

const AFTER: CollectMode = CollectMode::After {
    budget_bytes: DEFAULT_BUDGET_BYTES,
};

fn run<T>(setup: CollectionSetup, work: impl FnOnce(&mut Recorder) -> T) -> Collected<Vec<Delivery>> {
    let (mut recorder, collection) = Collection::start(setup, None, Vec::new()).unwrap();
    work(&mut recorder);
    collection.finish(recorder).unwrap()
}

fn step_row(t_ns: u64) -> step::Row<'static> {
    step::Row {
        t_ns,
        step: t_ns,
        phase: phase::DECODE,
        batch: 1,
        tokens: 1,
        ..Default::default()
    }
}

fn route<'a>(counts: &'a [u32], prob_sum: &'a [f32]) -> moe_route::Row<'a> {
    moe_route::Row {
        tokens: 2,
        top_k: 2,
        experts: counts.len() as u32,
        counts,
        prob_sum,
        ..Default::default()
    }
}

fn times(delivery: &Delivery) -> Vec<u64> {
    match delivery.block.column(0).data {
        Data::U64(values) => values.to_vec(),
        ref other => panic!("{other:?}"),
    }
}

/// Numbers of the steps, of 32, in which ops are wanted.
fn sampled_steps(recorder: &mut Recorder) -> Vec<u64> {
    let wanted = |step: &u64| {
        recorder.begin_step(*step, phase::DECODE);
        recorder.wants(kinds::op::INDEX)
    };
    (0..32).filter(wanted).collect()
}

#[test]
fn rows_arrive_in_order_in_both_modes() {
    for mode in [AFTER, CollectMode::Live] {
        let finished = run(setup(mode), |recorder| {
            (0..10).for_each(|t| recorder.record(&step_row(t)))
        });
        let got = finished.collectors;
        assert_eq!(
            got.iter().flat_map(times).collect::<Vec<_>>(),
            (0..10).collect::<Vec<_>>()
        );
        assert_eq!(
            got.iter()
                .map(|d| (d.kind, d.seq, d.lost_before, d.block.rows()))
                .collect::<Vec<_>>(),
            [
                (step::INDEX, 0, 0, 4),
                (step::INDEX, 1, 0, 4),
                (step::INDEX, 2, 0, 2)
            ]
        );
        let totals = finished.totals.kind("step").unwrap();
        assert_eq!((totals.recorded, totals.delivered, totals.lost), (10, 10, 0));
        assert_eq!(finished.collectors_fault, None);
    }
}

#[test]
fn lists_of_another_length_start_a_new_block() {
    let finished = run(setup(AFTER), |recorder| {
        recorder.record(&route(&[1, 3], &[0.5, 1.5]));
        recorder.record(&route(&[4, 0], &[1.0, 1.0]));
        recorder.record(&route(&[1, 1, 2], &[0.5, 0.5, 1.0]));
    });
    let got: Vec<_> = finished
        .collectors
        .iter()
        .map(|d| (d.block.rows(), d.block.column(7).width))
        .collect();
    assert!(got.is_empty(), "ops are above the level of this run");

    let mut setup = setup(AFTER);
    setup.config.level = Level::Ops;
    let finished = run(setup, |recorder| {
        recorder.record(&route(&[1, 3], &[0.5, 1.5]));
        recorder.record(&route(&[4, 0], &[1.0, 1.0]));
        recorder.record(&route(&[1, 1, 2], &[0.5, 0.5, 1.0]));
        recorder.record(&route(&[], &[]));
        recorder.record(&route(&[5, 6, 7], &[]));
    });
    let counts: Vec<_> = finished.collectors.iter().map(|d| d.block.column(7)).collect();
    assert_eq!(counts.len(), 2);
    assert_eq!((counts[0].width, counts[0].data), (2, Data::U32(&[1, 3, 4, 0])));
    assert_eq!((counts[1].width, counts[1].data), (3, Data::U32(&[1, 1, 2])));
    assert_eq!(finished.totals.rows_refused, 2);
    assert_eq!(finished.totals.kind("moe_route").unwrap().recorded, 3);
}

#[test]
fn rows_of_sampled_kinds_carry_their_weight() {
    let mut setup = setup(AFTER);
    setup.config.level = Level::Ops;
    let finished = run(setup, |recorder| {
        let row = kinds::quant::Row {
            n: 1,
            phase: phase::LOAD,
            ..Default::default()
        };
        recorder.record(&row);
        for step in 0..16 {
            recorder.begin_step(step, phase::DECODE);
            recorder.record(&kinds::quant::Row {
                n: 2,
                phase: phase::DECODE,
                ..row
            });
            recorder.record(&step_row(step));
        }
    });
    let of = |kind: usize| finished.collectors.iter().filter(move |d| d.kind == kind);
    let got: Vec<_> = of(kinds::quant::INDEX)
        .map(|d| (d.block.weight, d.block.rows()))
        .collect();
    assert_eq!(got, [(1.0, 1), (8.0, 2)]);
    assert!(of(step::INDEX).all(|d| d.block.weight == 1.0));
    assert_eq!(finished.totals.kind("step").unwrap().delivered, 16);
    let weights = |kind: &str| finished.totals.kind(kind).expect("listed").weights;
    let (least, greatest) = (1, 8);
    assert_eq!(weights("quant"), Some(Weights { least, greatest }));
    assert_eq!((weights("step"), weights("op")), (Some(Weights::all(1)), None));
}

#[test]
fn warm_up_is_not_recorded_and_does_not_move_the_sampling() {
    let level_ops = || {
        let mut setup = setup(AFTER);
        setup.config.level = Level::Ops;
        setup
    };
    let mut without = Vec::new();
    run(level_ops(), |recorder| without = sampled_steps(recorder));
    assert_eq!((without.len(), without[0]), (4, 0));

    let mut with = Vec::new();
    let finished = run(level_ops(), |recorder| {
        recorder.set_enabled(false);
        for step in 0..5 {
            recorder.begin_step(step, phase::DECODE);
            recorder.record(&step_row(step));
            recorder.record(&route(&[1, 1], &[1.0, 1.0]));
        }
        recorder.set_enabled(true);
        with = sampled_steps(recorder);
        recorder.record(&step_row(77));
    });
    assert_eq!(with, without);
    assert_eq!(
        finished.collectors.iter().flat_map(times).collect::<Vec<_>>(),
        [77]
    );
}

#[test]
fn level_and_subscriptions_decide_what_is_wanted() {
    let wanted = |level, raised: &[usize]| {
        let mut setup = setup(AFTER);
        setup.config.level = level;
        setup.config.raised = raised.iter().copied().collect::<BTreeSet<_>>();
        let mut wanted = Vec::new();
        run(setup, |recorder| {
            wanted = (0..kinds::KINDS.len()).map(|kind| recorder.wants(kind)).collect()
        });
        wanted
    };
    let names = |wanted: Vec<bool>| -> Vec<&str> {
        kinds::KINDS
            .iter()
            .zip(wanted)
            .filter(|(_, wanted)| *wanted)
            .map(|(kind, _)| kind.name.as_ref())
            .collect()
    };
    assert_eq!(
        names(wanted(Level::Off, &[])),
        ["request", "token", "span", "mark"]
    );
    let raised = names(wanted(Level::Off, &[moe_route::INDEX, moe_assign::INDEX]));
    assert_eq!(
        raised,
        ["request", "token", "span", "moe_route", "moe_assign", "mark"]
    );
    assert!(!wanted(Level::Kernels, &[])[moe_assign::INDEX]);
    assert_eq!(
        wanted(Level::Kernels, &[])
            .iter()
            .filter(|&&wanted| !wanted)
            .count(),
        1
    );
}

#[test]
fn live_collection_hands_partial_blocks_over_every_50_ms() {
    let (arrived, arrival) = channel();
    let (permit, proceed) = channel();
    drop(permit);
    let setup = setup(CollectMode::Live);
    let clock = setup.clock.clone();
    let gate = Gate {
        arrived,
        proceed,
        got: Vec::new(),
    };
    let (mut recorder, collection) = Collection::start(setup, None, gate).unwrap();
    recorder.begin_step(0, phase::DECODE);
    recorder.record(&step_row(0));
    clock.advance(Duration::from_millis(49));
    recorder.begin_step(1, phase::DECODE);
    recorder.record(&step_row(1));
    clock.advance(Duration::from_millis(1));
    recorder.begin_step(2, phase::DECODE);
    // The pump has both rows although the block is half full and nothing was flushed.
    arrival.recv().unwrap();
    recorder.record(&step_row(2));
    let finished = collection.finish(recorder).unwrap();
    let got: Vec<_> = finished.collectors.got.iter().map(times).collect();
    assert_eq!(got, [vec![0, 1], vec![2]]);
}

#[test]
fn two_producers_share_the_numbering_and_count_apart() {
    let (mut first, collection) = Collection::start(setup(AFTER), None, Vec::new()).unwrap();
    let mut second = collection.recorder();
    std::thread::spawn(move || {
        let name = second.symbol("tick");
        (0..6).for_each(|t| {
            second.record(&mark::Row {
                t_ns: t,
                name,
                value: 1.0,
            })
        });
    })
    .join()
    .unwrap();
    let name = first.symbol("tick");
    (100..103).for_each(|t| {
        first.record(&mark::Row {
            t_ns: t,
            name,
            value: 2.0,
        })
    });
    let finished = collection.finish(first).unwrap();
    let got: Vec<_> = finished
        .collectors
        .iter()
        .map(|d: &Delivery| (d.seq, d.lost_before, times(d)))
        .collect();
    assert_eq!(
        got,
        [
            (0, 0, vec![0, 1, 2, 3]),
            (1, 0, vec![4, 5]),
            (2, 0, vec![100, 101, 102])
        ]
    );
    assert_eq!(finished.totals.kind("mark").unwrap().delivered, 9);
}

#[test]
fn impossible_settings_are_refused() {
    let refused = |change: fn(&mut RecorderConfig)| {
        let mut setup = setup(AFTER);
        change(&mut setup.config);
        Collection::start(setup, None, ())
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused(|c| c.sample_every = 0),
        "the sampling interval is 0, must be 1 to 4294967295"
    );
    assert_eq!(
        refused(|c| c.block_rows = 0),
        "rows per block is 0, must be 1 to 1048576"
    );
    assert_eq!(
        refused(|c| c.queue_blocks = 1 << 20),
        "blocks in the queue is 1048576, must be 1 to 65536"
    );
}

#[test]
fn a_collection_that_is_given_up_ends_its_thread() {
    let symbols = Arc::new(SymbolTable::new());
    let setup = CollectionSetup {
        symbols: Arc::clone(&symbols),
        ..setup(AFTER)
    };
    let (recorder, collection) = Collection::start(setup, None, ()).unwrap();
    drop(collection);
    drop(recorder);
    // The thread lets go of the symbols when it ends.
    let ended = (0..2_000).any(|_| {
        std::thread::sleep(Duration::from_millis(1));
        Arc::strong_count(&symbols) == 1
    });
    assert!(ended);
}
