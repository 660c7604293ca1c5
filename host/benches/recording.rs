//! Cost of recording one row on the engine's thread, beside sending the same values through a bounded channel of
//! the standard library.
//!
//! `cargo bench -p lm-bench --bench recording`

use std::hint::black_box;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use lm_bench::clock::Clock;
use lm_bench::events::{
    CollectMode, Collection, CollectionSetup, KindTable, Recorder, RecorderConfig, SymbolTable,
};
use lm_bench_plugin::Level;
use lm_bench_plugin::kinds::{moe_route, phase, step};

/// Experts of Qwen3-30B-A3B.
const EXPERTS: usize = 128;

/// Values of a `moe_route` row, for the channel; the lists are inline, so that sending does not allocate.
#[derive(Clone, Copy)]
#[expect(
    dead_code,
    reason = "what the channel brings is thrown away, as by the recorder's pump"
)]
struct RouteMessage {
    t_ns: u64,
    step: u64,
    phase: u8,
    layer: u16,
    tokens: u32,
    top_k: u32,
    counts: [u32; EXPERTS],
    prob_sum: [f32; EXPERTS],
}

fn recorder() -> (Recorder, Collection<()>) {
    let setup = CollectionSetup {
        config: RecorderConfig {
            level: Level::Ops,
            sample_every: 1,
            ..RecorderConfig::default()
        },
        kinds: KindTable::builtin(),
        symbols: Arc::new(SymbolTable::new()),
        clock: Clock::start(),
        mode: CollectMode::Live,
    };
    Collection::start(setup, None, ()).expect("the default settings are in range")
}

/// Measures what the engine's thread spends per row; the rows are taken by the pump, which throws them away.
fn with_recorder(group: &mut BenchmarkGroup<'_, WallTime>, mut record: impl FnMut(&mut Recorder, u64)) {
    let (mut recorder, collection) = recorder();
    recorder.begin_step(0, phase::DECODE);
    let mut number = 0;
    group.bench_function("recorder", |bencher| {
        bencher.iter(|| {
            number += 1;
            record(&mut recorder, black_box(number));
        });
    });
    let finished = collection.finish(recorder).expect("the pump ends");
    let lost = finished.totals.lost();
    assert_eq!(
        finished
            .totals
            .kinds
            .iter()
            .map(|kind| kind.recorded)
            .sum::<u64>(),
        number
    );
    assert!(lost < number, "all rows were lost");
}

/// Measures the same with a channel of as many messages as a recorder's queue holds rows.
fn with_channel<M: Send + 'static>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    (capacity, mut message): (usize, impl FnMut(u64) -> M),
) {
    let (sender, receiver) = sync_channel::<M>(capacity);
    let drain = std::thread::spawn(move || receiver.iter().for_each(|message| drop(black_box(message))));
    let mut number = 0;
    group.bench_function("sync_channel", |bencher| {
        bencher.iter(|| {
            number += 1;
            sender
                .send(message(black_box(number)))
                .expect("the receiver lives");
        });
    });
    drop(sender);
    drain.join().expect("the receiver ends");
}

fn step_rows(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("step");
    group.throughput(Throughput::Elements(1));
    let row = |number| step::Row {
        t_ns: number,
        step: number,
        phase: phase::DECODE,
        batch: 32,
        tokens: 32,
        context_tokens: 4096,
        host_ns: 1_000,
        measuring_ns: 0,
        device_ns: 900,
        graph: 0,
    };
    with_recorder(&mut group, |recorder, number| recorder.record(&row(number)));
    with_channel(&mut group, (4096, row));
    group.finish();
}

fn route_rows(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("moe_route_128");
    group.throughput(Throughput::Elements(1));
    let counts: [u32; EXPERTS] = std::array::from_fn(|expert| expert as u32);
    let prob_sum: [f32; EXPERTS] = std::array::from_fn(|expert| expert as f32);
    with_recorder(&mut group, |recorder, number| {
        recorder.record(&moe_route::Row {
            t_ns: number,
            step: number,
            phase: phase::DECODE,
            layer: 7,
            tokens: 32,
            top_k: 8,
            experts: EXPERTS as u32,
            counts: &counts,
            prob_sum: &prob_sum,
            dropped: 0,
        });
    });
    let message = move |number| RouteMessage {
        t_ns: number,
        step: number,
        phase: phase::DECODE,
        layer: 7,
        tokens: 32,
        top_k: 8,
        counts,
        prob_sum,
    };
    with_channel(&mut group, (1024, message));
    group.finish();
}

criterion_group!(benches, step_rows, route_rows);
criterion_main!(benches);
