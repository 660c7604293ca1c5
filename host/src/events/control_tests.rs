//! Suspending, settling and cutting short.

use std::cell::Cell;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use lm_bench_plugin::Data;
use lm_bench_plugin::kinds::{op, phase, step};

use super::tests::setup;
use super::*;

const AFTER: CollectMode = CollectMode::After {
    budget_bytes: DEFAULT_BUDGET_BYTES,
};

fn record_steps(recorder: &mut Recorder, times: std::ops::Range<u64>) {
    for t_ns in times {
        recorder.record(&step::Row {
            t_ns,
            ..step::Row::default()
        });
    }
}

fn ops_setup() -> CollectionSetup {
    let mut setup = setup(AFTER);
    setup.config.level = lm_bench_plugin::Level::Ops;
    setup.config.sample_every = 2;
    setup
}

#[test]
fn suspended_recording_leaves_no_trace() {
    let setup = ops_setup();
    let clock = setup.clock.clone();
    let (mut recorder, collection) = Collection::start(setup, None, Vec::new()).unwrap();
    clock.advance(Duration::from_nanos(1_000));
    recorder.begin_step(0, phase::DECODE);
    assert!(recorder.is_sampled_step() && recorder.wants(op::INDEX));
    record_steps(&mut recorder, 0..3);

    recorder.suspend();
    recorder.suspend();
    clock.advance(Duration::from_nanos(50_000));
    for number in 1..4 {
        recorder.begin_step(number, phase::DECODE);
        assert!(!recorder.wants(step::INDEX) && !recorder.wants(op::INDEX));
        record_steps(&mut recorder, 100..200);
    }
    assert_eq!(
        recorder.now_ns(),
        51_000,
        "time goes on for whoever measures meanwhile"
    );
    recorder.resume();
    assert_eq!(recorder.now_ns(), 1_000, "and was not once it is over");
    clock.advance(Duration::from_nanos(7));
    assert_eq!(recorder.now_ns(), 1_007);

    assert!(recorder.wants(step::INDEX));
    assert!(!recorder.wants(op::INDEX), "sampled kinds wait for their step");
    // The second step of the first window of two is not chosen; of the second window exactly one is.
    let chosen: Vec<bool> = (4..7)
        .map(|number| {
            recorder.begin_step(number, phase::DECODE);
            assert_eq!(recorder.wants(op::INDEX), recorder.is_sampled_step());
            recorder.is_sampled_step()
        })
        .collect();
    assert!(!chosen[0] && chosen[1] != chosen[2], "{chosen:?}");
    record_steps(&mut recorder, 3..5);

    let collected = collection.finish(recorder).unwrap();
    let times = collected.collectors.iter().flat_map(|delivery| {
        let Data::U64(times) = delivery.block.column(0).data else {
            panic!("t_ns is u64")
        };
        times.to_vec()
    });
    assert_eq!(times.collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(collected.totals.lost(), 0);
}

#[test]
fn nothing_is_sampled_where_no_kind_of_that_level_is_recorded() {
    let (mut recorder, collection) = Collection::start(setup(AFTER), None, ()).unwrap();
    recorder.begin_step(0, phase::PREFILL);
    assert_eq!(
        (recorder.sampled_every(), recorder.is_sampled_step()),
        (None, false)
    );
    drop(collection.finish(recorder).unwrap());
    let (recorder, collection) = Collection::start(ops_setup(), None, ()).unwrap();
    assert_eq!(recorder.sampled_every(), Some(2));
    drop(collection.finish(recorder).unwrap());
}

/// Says when a batch arrives, and holds it until the other end hangs up.
struct Gate {
    arrived: Sender<u32>,
    leave: Receiver<()>,
}

impl EventSink for Gate {
    fn accept(&mut self, delivery: &Delivery, _: &SymbolTable) -> Result<(), SinkError> {
        let _ = self.arrived.send(delivery.block.rows());
        let _ = self.leave.recv();
        Ok(())
    }
}

#[test]
fn taken_means_that_the_collectors_have_had_everything() {
    let (arrived, arrival) = channel();
    let (hold, leave) = channel::<()>();
    let gate = Gate { arrived, leave };
    let (mut recorder, collection) = Collection::start(setup(CollectMode::Live), None, gate).unwrap();
    record_steps(&mut recorder, 0..6);
    recorder.flush();
    assert_eq!(arrival.recv().unwrap(), 4);
    let asked = Cell::new(0);
    collection.wait_until_taken(|| {
        asked.set(asked.get() + 1);
        asked.get() > 3
    });
    assert_eq!(asked.get(), 4, "a batch that is being taken is not taken yet");
    drop(hold);
    collection.wait_until_taken(|| false);
    assert_eq!(arrival.try_recv(), Ok(2), "the last batch has arrived too");
    drop(collection.finish(recorder).unwrap());
}

#[test]
fn kept_events_are_taken_without_the_collectors() {
    let (arrived, arrival) = channel();
    let (hold, leave) = channel::<()>();
    let gate = Gate { arrived, leave };
    let (mut recorder, collection) = Collection::start(setup(AFTER), None, gate).unwrap();
    record_steps(&mut recorder, 0..4);
    collection.wait_until_taken(|| false);
    assert!(arrival.try_recv().is_err());
    drop(hold);
    drop(collection.finish(recorder).unwrap());
}

#[test]
fn a_cut_comes_between_two_batches_and_is_counted() {
    for mode in [AFTER, CollectMode::Live] {
        let (arrived, arrival) = channel();
        let (hold, leave) = channel::<()>();
        let gate = Gate { arrived, leave };
        let (mut recorder, collection) = Collection::start(setup(mode), None, gate).unwrap();
        record_steps(&mut recorder, 0..22);
        // The gate holds the first batch until the watch, which owns the other end, is gone: after the cut.
        let watch = move |_, _| {
            let _held = &hold;
            assert_eq!(arrival.recv().unwrap(), 4);
            Watch::Cut
        };
        let collected = collection.finish_watched(recorder, watch).unwrap();
        assert_eq!(collected.rows_cut, 18);
        let totals = collected.totals.kind("step").unwrap();
        assert_eq!((totals.recorded, totals.delivered, totals.lost), (22, 22, 0));
        assert_eq!(collected.collectors_fault, None);
    }
}
