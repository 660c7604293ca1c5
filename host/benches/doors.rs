//! What a row costs through each door, and what it takes to load a plugin.
//!
//! `cargo bench --profile dev -p lm-bench --bench doors` builds the plugins it needs. The last lines give each door's cost relative to
//! the built-in one, measured in turn in the same run.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput};
use lm_bench::clock::Clock;
use lm_bench::events::{Delivery, EventSink as _, KindTable, SymbolTable};
use lm_bench::plugin::build_plugin::{BuildDoor, BuildRequest, build};
use lm_bench::plugin::{Collectors, Policy, Requests};
use lm_bench_plugin::kinds::{KINDS, moe_route, token};
use lm_bench_plugin::{Block, EventRow, RunInfo};

// Built-in collectors register themselves only when their crates are linked.
use moe_utilization as _;
use probe_collector as _;

const ROWS: [u32; 3] = [1, 64, 4096];
const EXPERTS: usize = 128;
/// Rounds of the comparison: the doors take turns, so that a slow phase of the machine meets all of them.
const ROUNDS: usize = 31;
/// Rows per round and door.
const ROUND_ROWS: u64 = 200_000;

struct Subject {
    id: &'static str,
    folder: PathBuf,
    kinds: &'static [&'static str],
}

fn subjects() -> [Subject; 2] {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    [
        Subject {
            id: "probe-collector",
            folder: root.join("tests/plugins/probe-collector"),
            kinds: &["token", "moe_route"],
        },
        Subject {
            id: "moe-utilization",
            folder: root.join("plugins/moe-utilization"),
            kinds: &["moe_route"],
        },
    ]
}

/// A way to a plugin: its name, what is asked for, and whether native code shares this process.
#[derive(Clone, Debug)]
struct Way {
    name: &'static str,
    target: String,
    in_process: bool,
}

/// The ways to a subject, the built-in one first.
fn ways(subject: &Subject) -> [Way; 4] {
    let target_dir = match std::env::var_os("LM_BENCH_TEST_TARGET") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/plugins"),
    };
    let file = |door| {
        let out = target_dir.join("doors");
        let request = BuildRequest {
            dir: subject.folder.clone(),
            door,
            out,
            target_dir: Some(target_dir.clone()),
            program: Some(env!("CARGO_BIN_EXE_lm-bench").into()),
        };
        let built = build(&request).unwrap_or_else(|error| panic!("{}: {error}", subject.id));
        built.path.to_string_lossy().into_owned()
    };
    let way = |name, target, in_process| Way {
        name,
        target,
        in_process,
    };
    [
        way("built-in", subject.id.to_owned(), false),
        way("dylib-in-process", file(BuildDoor::Dylib), true),
        way("dylib", file(BuildDoor::Dylib), false),
        way("wasm", file(BuildDoor::Wasm), false),
    ]
}

fn load(way: &Way) -> Collectors {
    let target = &way.target;
    let requests = Requests {
        plugins: vec![target.clone()],
        ..Requests::default()
    };
    let policy = Policy {
        allow_native: true,
        in_process: way.in_process,
        program: Some(env!("CARGO_BIN_EXE_lm-bench").into()),
        ..Policy::default()
    };
    Collectors::load(&requests, &RunInfo::default(), &KindTable::builtin(), &policy)
        .unwrap_or_else(|error| panic!("{target}: {error}"))
}

fn block<R: EventRow>(rows: u32, row: impl Fn(u32) -> R) -> Delivery {
    let mut block = Block::new(Arc::new(KINDS[R::INDEX].clone()), rows);
    (0..rows).for_each(|at| block.push(&row(at)));
    Delivery {
        kind: R::INDEX,
        block,
        seq: 0,
        lost_before: 0,
    }
}

fn delivery(kind: &str, rows: u32) -> Delivery {
    let counts: Vec<u32> = (0..EXPERTS as u32).map(|expert| expert % 7).collect();
    let prob_sum: Vec<f32> = (0..EXPERTS).map(|expert| expert as f32 / 128.0).collect();
    match kind {
        "token" => block(rows, |at| token::Row {
            t_ns: u64::from(at) * 1_700,
            request: u64::from(at % 32),
            index: at,
            chunk: at,
            tokens_in_chunk: 1,
        }),
        _ => {
            let row = |at: u32| moe_route::Row {
                t_ns: u64::from(at) * 1_700,
                step: u64::from(at / 48),
                phase: 1,
                layer: (at % 48) as u16,
                tokens: 48,
                top_k: 8,
                experts: EXPERTS as u32,
                counts: &counts,
                prob_sum: &prob_sum,
                dropped: 0,
            };
            let mut block = Block::new(Arc::new(KINDS[moe_route::INDEX].clone()), rows);
            (0..rows).for_each(|at| block.push(&row(at)));
            Delivery {
                kind: moe_route::INDEX,
                block,
                seq: 0,
                lost_before: 0,
            }
        }
    }
}

fn rows(criterion: &mut Criterion) {
    let symbols = SymbolTable::new();
    for subject in subjects() {
        for way in ways(&subject) {
            let mut collectors = load(&way);
            for kind in subject.kinds {
                let mut group = criterion.benchmark_group(format!("{}/{kind}", subject.id));
                for count in ROWS {
                    let delivery = delivery(kind, count);
                    group.throughput(Throughput::Elements(u64::from(count)));
                    group.bench_function(BenchmarkId::new(way.name, count), |bencher| {
                        bencher.iter(|| collectors.accept(black_box(&delivery), &symbols));
                    });
                }
            }
            assert_healthy(way.name, collectors);
        }
    }
}

fn assert_healthy(target: &str, collectors: Collectors) {
    for outcome in collectors.finish() {
        assert!(outcome.faults.is_empty(), "{target}: {:?}", outcome.faults);
    }
}

/// Loading with a compiled component in the cache, and without.
fn loading(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("load/probe-collector");
    group.sample_size(10);
    let [probe, _] = subjects();
    for way in ways(&probe) {
        // The first load fills the cache.
        drop(load(&way));
        group.bench_function(BenchmarkId::new(way.name, "cached"), |bencher| {
            bencher.iter(|| load(&way))
        });
    }
    let [_, _, _, mut component] = ways(&probe);
    let bytes = std::fs::read(&component.target).expect("the component was built");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("probe_collector.wasm");
    component.target = path.to_string_lossy().into_owned();
    let mut nonce = 0_u64;
    group.bench_function(BenchmarkId::new("wasm", "cold"), |bencher| {
        bencher.iter_batched(
            || {
                nonce += 1;
                std::fs::write(&path, with_nonce(&bytes, nonce)).expect("a written file");
            },
            |()| load(&component),
            criterion::BatchSize::PerIteration,
        );
    });
}

/// The component with another digest: a custom section of 16 bytes at its end, which no cache has seen.
fn with_nonce(bytes: &[u8], nonce: u64) -> Vec<u8> {
    let unique = (u64::from(std::process::id()) << 32) | nonce;
    let mut bytes = bytes.to_vec();
    // Id 0, 16 bytes: a name of 7 bytes and 8 bytes of data.
    bytes.extend([0, 16, 7]);
    bytes.extend(b"bench-n");
    bytes.extend(unique.to_le_bytes());
    bytes
}

/// Each door's cost per row against the built-in one, the doors taking turns.
#[expect(clippy::print_stdout, reason = "a benchmark prints its result")]
fn ratios() {
    let (symbols, clock) = (SymbolTable::new(), Clock::start());
    println!("\ncollector/kind/rows: ns per row (median of {ROUNDS} rounds) and ratio to built-in");
    for subject in subjects() {
        let mut doors = ways(&subject).map(|way| (way.name, load(&way)));
        for kind in subject.kinds {
            for count in ROWS {
                let delivery = delivery(kind, count);
                let calls = (ROUND_ROWS / if *kind == "token" { 1 } else { 20 }).div_ceil(u64::from(count));
                let mut samples = [const { Vec::new() }; 4];
                for _ in 0..ROUNDS {
                    for ((_, collectors), samples) in doors.iter_mut().zip(&mut samples) {
                        let start = clock.now_ns();
                        for _ in 0..calls {
                            collectors
                                .accept(black_box(&delivery), &symbols)
                                .expect("collectors take everything");
                        }
                        samples.push((clock.now_ns() - start) as f64 / (calls * u64::from(count)) as f64);
                    }
                }
                let medians = samples.map(median);
                let shown = doors
                    .iter()
                    .zip(medians)
                    .map(|((door, _), ns)| format!("{door} {ns:.2} ns ({:.2}x)", ns / medians[0]));
                println!(
                    "{}/{kind}/{count}: {}",
                    subject.id,
                    shown.collect::<Vec<_>>().join(", ")
                );
            }
        }
        for (door, collectors) in doors {
            assert_healthy(door, collectors);
        }
    }
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    rows(&mut criterion);
    loading(&mut criterion);
    criterion.final_summary();
    if !std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        ratios();
    }
}
