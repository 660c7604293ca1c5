//! What happens to rows that do not get through, and to sinks that fail.

use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

/// Waits for permission before each batch.
pub(super) struct Gate {
    pub(super) arrived: Sender<()>,
    pub(super) proceed: Receiver<()>,
    pub(super) got: Vec<Delivery>,
}

impl EventSink for Gate {
    fn accept(&mut self, delivery: &Delivery, _: &SymbolTable) -> Result<(), SinkError> {
        self.got.push(delivery.clone());
        let _ = self.arrived.send(());
        // The other end hangs up to open the gate for good.
        let _ = self.proceed.recv();
        Ok(())
    }
}

#[test]
fn a_stuck_sink_costs_the_oldest_rows_and_each_is_counted() {
    let (arrived, arrival) = channel();
    let (permit, proceed) = channel();
    let gate = Gate {
        arrived,
        proceed,
        got: Vec::new(),
    };
    let mut setup = setup(CollectMode::Live);
    setup.config.queue_blocks = 3;
    let (mut recorder, collection) = Collection::start(setup, None, gate).unwrap();
    (0..4).for_each(|t| recorder.record(&step_row(t)));
    arrival.recv().unwrap();
    // The sink holds rows 0..4. Of the 100 blocks that follow the queue keeps the last 3.
    (4..404).for_each(|t| recorder.record(&step_row(t)));
    drop(permit);
    let finished = collection.finish(recorder).unwrap();
    let got: Vec<_> = finished
        .collectors
        .got
        .iter()
        .map(|d| (d.seq, d.lost_before, times(d)[0]))
        .collect();
    assert_eq!(got, [(0, 0, 0), (1, 388, 392), (2, 0, 396), (3, 0, 400)]);
    let totals = finished.totals.kind("step").unwrap();
    assert_eq!((totals.recorded, totals.delivered, totals.lost), (404, 16, 388));
    assert_eq!(finished.totals.blocks_dropped, 97);
    // Displaced blocks are used again: beyond the spare ones, no more than the queue and the sink hold.
    assert!(
        finished.totals.blocks_allocated <= 4,
        "{}",
        finished.totals.blocks_allocated
    );
}

/// Keeps what it is told.
#[derive(Default)]
pub(in crate::events) struct Book {
    rows: u64,
    pub(in crate::events) told: Vec<(usize, u64)>,
}

impl EventSink for Book {
    fn accept(&mut self, delivery: &Delivery, _: &SymbolTable) -> Result<(), SinkError> {
        self.rows += u64::from(delivery.block.rows());
        if delivery.lost_before > 0 {
            self.told.push((delivery.kind, delivery.lost_before));
        }
        Ok(())
    }

    fn lost(&mut self, kind: usize, rows: u64) -> Result<(), SinkError> {
        self.told.push((kind, rows));
        Ok(())
    }
}

#[test]
fn rows_dropped_after_the_last_batch_are_told_and_in_the_totals() {
    // 4 step rows take 4 * (8+8+1+4+4+8+8+8+1+8) = 232 bytes.
    let setup = setup(CollectMode::After { budget_bytes: 500 });
    let (mut recorder, collection) = Collection::start(setup, None, Book::default()).unwrap();
    (0..18).for_each(|t| recorder.record(&step_row(t)));
    let finished = collection.finish(recorder).unwrap();
    // Two whole blocks fit; the last two rows take 116 bytes and do not.
    assert_eq!(finished.collectors.rows, 8);
    assert_eq!(finished.collectors.told, [(step::INDEX, 10)]);
    let totals = finished.totals.kind("step").unwrap();
    assert_eq!((totals.recorded, totals.delivered, totals.lost), (18, 8, 10));
    assert_eq!(finished.totals.lost(), 10);
    assert_eq!(
        (finished.totals.rows_over_budget, finished.totals.blocks_dropped),
        (10, 0)
    );
}

#[test]
fn a_kind_of_which_nothing_is_delivered_is_told_and_no_loss_is_told_twice() {
    // The first block of four steps fits, a block of two does not; the mark of 8+4+8 bytes fits after it.
    let setup = setup(CollectMode::After { budget_bytes: 255 });
    let (mut recorder, collection) = Collection::start(setup, None, Book::default()).unwrap();
    (0..6).for_each(|t| recorder.record(&step_row(t)));
    recorder.flush();
    let name = recorder.symbol("tick");
    let mark = mark::Row {
        t_ns: 9,
        name,
        value: 1.0,
    };
    recorder.record(&mark);
    recorder.flush();
    recorder.record(&mark);
    recorder.record(&kinds::token::Row::default());
    let finished = collection.finish(recorder).unwrap();
    assert_eq!(finished.collectors.rows, 5);
    let mut told = finished.collectors.told;
    told.sort_unstable();
    assert_eq!(
        told,
        [(kinds::token::INDEX, 1), (step::INDEX, 2), (mark::INDEX, 1)]
    );
    assert_eq!(finished.totals.lost(), 4);
}

struct Panics(u32);

impl EventSink for Panics {
    fn accept(&mut self, _: &Delivery, _: &SymbolTable) -> Result<(), SinkError> {
        self.0 += 1;
        panic!("divided by {}", 0);
    }
}

#[test]
fn a_panic_in_a_sink_is_reported_and_stops_nothing() {
    for mode in [AFTER, CollectMode::Live] {
        let (mut recorder, collection) = Collection::start(setup(mode), None, Panics(0)).unwrap();
        (0..40).for_each(|t| recorder.record(&step_row(t)));
        let finished = collection.finish(recorder).unwrap();
        assert_eq!(finished.collectors.0, 1);
        assert_eq!(
            finished.collectors_fault,
            Some(SinkError::Panicked("divided by 0".to_owned()))
        );
        assert_eq!(finished.totals.kind("step").unwrap().recorded, 40);
    }
}
