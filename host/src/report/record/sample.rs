//! A record with invented numbers for the tests of this folder and of the renderers.

use std::collections::BTreeMap;

use lm_bench_plugin::manifest::MetricDecl;
use lm_bench_plugin::{Direction, Metric, MetricKind, Value};
use serde_json::json;

use super::*;
use crate::stats::Percent;

/// A run of a small mixture of experts with a faulty plugin and a few lost rows.
pub(crate) fn record() -> RunRecord {
    let iterations: Vec<Iteration> = (0..10)
        .map(|index| Iteration {
            prefill_ns: 12_000_000 + index * 100_000,
            decode_ns: 31 * (1_500_000 + index * 10_000),
            decode_steps: 31,
            prompt_tokens: 256,
            output_tokens: 64,
        })
        .collect();
    let mut record = RunRecord {
        schema_version: SCHEMA_VERSION.to_owned(),
        tool: Tool {
            name: "lm-bench".to_owned(),
            version: "0.1.0".to_owned(),
            commit: None,
        },
        verdict: Verdict::default(),
        warnings: Vec::new(),
        started_unix_ms: 1_790_000_000_000,
        duration_s: 2.5,
        headline: Headline::of(&iterations, None),
        token_source: TokenSource::Engine,
        warmup: Warmup {
            iterations: 2,
            prefill_latency_ms: Some(19.5),
            decode_latency_per_token_ms: Some(1.75),
        },
        observer_effect: Some(observer_effect()),
        counts: Counts {
            iterations: 10,
            iterations_planned: 10,
            decode_steps: 310,
            requests: 20,
            prompt_tokens: 2560,
            output_tokens: 640,
            errors: 0,
        },
        timings: Timings {
            load_s: Some(0.25),
            warmup_s: Some(0.5),
            measured_s: Some(1.5),
            bare_s: Some(1.25),
            collect_s: Some(0.125),
        },
        model: model(),
        engine: engine(),
        environment: environment(),
        plan: plan(),
        metrics: metrics(),
        plugins: plugins(),
        probes: Vec::new(),
        events: events(),
        event_losses: EventLosses::default(),
        output_sample: Some("The quick brown fox\njumps over".to_owned()),
    };
    record.judge(Vec::new());
    record
}

/// Ten pairs in which recording costs 2 %, and 10 % of the two prefills that are recorded in detail.
fn observer_effect() -> ObserverEffect {
    let pair = |index: u64| {
        let prefill_sampled = index.is_multiple_of(8);
        let bare = Iteration {
            prefill_ns: 12_000_000 + index * 100_000,
            decode_ns: 31 * (1_500_000 + index * 10_000),
            decode_steps: 31,
            prompt_tokens: 256,
            output_tokens: 64,
        };
        let more = |ns: u64, percent: u64| ns + ns * percent / 100 + index % 3 * 1_000;
        let instrumented = Iteration {
            prefill_ns: more(bare.prefill_ns, if prefill_sampled { 10 } else { 2 }),
            decode_ns: more(bare.decode_ns, 2),
            ..bare
        };
        IterationPair {
            bare,
            instrumented,
            bare_wall_ns: bare.prefill_ns + bare.decode_ns + 50_000,
            instrumented_wall_ns: instrumented.prefill_ns + instrumented.decode_ns + 60_000,
            prefill_sampled,
        }
    };
    let pairs: Vec<IterationPair> = (0..10).map(pair).collect();
    ObserverEffect {
        max_overhead_pct: Some(5.0),
        ..ObserverEffect::of(&pairs, Observed::Recording, Some(8))
    }
}

fn model() -> ModelFacts {
    ModelFacts {
        name: "tiny-moe".to_owned(),
        architecture: "mixtral".to_owned(),
        format: "dummy".to_owned(),
        weight_type: Some("f32".to_owned()),
        sha256: None,
        parameters: 12_345_678,
        active_parameters: Some(4_567_890),
        layers: 4,
        hidden: 256,
        heads: 8,
        kv_heads: 4,
        head_dim: 32,
        experts: 8,
        experts_per_token: 2,
        vocab: 4096,
        context_length: Some(2048),
        tokenizer: false,
    }
}

fn engine() -> EngineFacts {
    EngineFacts {
        name: "candle".to_owned(),
        version: Some("0.11.1".to_owned()),
        device: "cpu".to_owned(),
        dtype: "f32".to_owned(),
        threads: 2,
        kernels: vec!["matmul: gemm".to_owned()],
        quantization: "fp8".to_owned(),
        weight_bytes: 49_382_712,
        kv_bytes_per_token: 4096,
        graph: None,
    }
}

fn environment() -> Environment {
    Environment {
        os: Some("Debian GNU/Linux 13 (trixie)".to_owned()),
        kernel: Some("6.12.0".to_owned()),
        arch: "x86_64".to_owned(),
        cpu: Cpu {
            model: Some("Imaginary CPU 3000".to_owned()),
            physical_cores: Some(2),
            logical_cores: Some(4),
            usable_cores: Some(2),
            governor: None,
            features: vec!["avx2".to_owned(), "fma".to_owned()],
        },
        memory_total_bytes: Some(8 << 30),
        memory_available_bytes: Some(6 << 30),
        cgroup: Cgroup {
            cpu_cores: Some(2.0),
            memory_bytes: None,
        },
        load_1m: Some(0.25),
        gpus: Vec::new(),
        build: Build {
            profile: "release".to_owned(),
            target: "x86_64-linux".to_owned(),
        },
    }
}

fn plan() -> BTreeMap<String, serde_json::Value> {
    let pairs = [
        ("batch_size", json!(2)),
        ("model", json!("tiny-moe")),
        ("seq_len", json!(128)),
        ("num_iters", json!(10)),
    ];
    pairs
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

fn declaration(name: &str, unit: &str, kind: MetricKind, direction: Direction) -> MetricDecl {
    MetricDecl {
        name: name.to_owned(),
        unit: unit.to_owned(),
        kind,
        direction,
        formula: format!("formula of {name}"),
        about: String::new(),
        labels: Vec::new(),
    }
}

fn metric(name: &str, labels: &[(&str, &str)], value: Value) -> Metric {
    let samples = match &value {
        Value::Distribution(buckets) => buckets.iter().map(|(_, count)| count).sum(),
        Value::Unavailable(_) => 0,
        _ => 40,
    };
    let labels = labels
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    Metric {
        name: name.to_owned(),
        labels,
        value,
        samples,
    }
}

fn metrics() -> Vec<MetricRecord> {
    let mut all = metric_records(
        "attention-efficiency",
        &attention_declared(),
        &attention(),
        &Percent::DEFAULT,
    );
    all.iter_mut()
        .for_each(|metric| metric.partial = metric.value.is_some());
    all.extend(metric_records(
        "latency",
        &latency_declared(),
        &latency(),
        &Percent::DEFAULT,
    ));
    all.extend(metric_records(
        "moe-utilization",
        &moe_declared(),
        &moe(),
        &Percent::DEFAULT,
    ));
    all
}

fn attention_declared() -> Vec<MetricDecl> {
    vec![
        declaration("achieved_flops", "{flop}/s", MetricKind::Gauge, Direction::Higher),
        declaration("sm_efficiency_pct", "%", MetricKind::Gauge, Direction::Higher),
    ]
}

fn attention() -> Vec<Metric> {
    vec![
        metric(
            "achieved_flops",
            &[("phase", "prefill")],
            Value::Gauge(12_345_678_901.0),
        ),
        metric(
            "sm_efficiency_pct",
            &[],
            Value::Unavailable("no GPU counters on this machine".to_owned()),
        ),
    ]
}

fn latency_declared() -> Vec<MetricDecl> {
    vec![
        declaration("decode_step_ms", "ms", MetricKind::Distribution, Direction::Lower),
        declaration("prefill_ms", "ms", MetricKind::Distribution, Direction::Lower),
    ]
}

fn latency() -> Vec<Metric> {
    let decode = (0..310)
        .map(|index| (1.5 + f64::from(index) / 1000.0, 1))
        .collect();
    let prefill = (0..10).map(|index| (12.0 + f64::from(index) / 10.0, 1)).collect();
    vec![
        metric("decode_step_ms", &[], Value::Distribution(decode)),
        metric("prefill_ms", &[], Value::Distribution(prefill)),
    ]
}

fn moe_declared() -> Vec<MetricDecl> {
    vec![
        declaration("dead_experts", "1", MetricKind::Counter, Direction::Lower),
        declaration(
            "expert_utilization_ratio",
            "1",
            MetricKind::Gauge,
            Direction::Higher,
        ),
    ]
}

fn moe() -> Vec<Metric> {
    let name = "expert_utilization_ratio";
    let mut all = vec![
        metric("dead_experts", &[], Value::Counter(1)),
        metric(name, &[("phase", "decode")], Value::Gauge(0.71875)),
        metric(name, &[("phase", "prefill")], Value::Gauge(0.96875)),
    ];
    for (layer, value) in [("0", 0.5), ("1", 0.625), ("10", 1.0), ("2", 0.75)] {
        all.push(metric(
            name,
            &[("layer", layer), ("phase", "decode")],
            Value::Gauge(value),
        ));
    }
    all
}

fn plugins() -> Vec<PluginRecord> {
    let config = json!({});
    let of = |id: &str, door: PluginDoor, rows: u64, busy_ns: u64| PluginRecord {
        id: id.to_owned(),
        version: "1.0.0".to_owned(),
        door,
        isolated: None,
        path: None,
        sha256: None,
        config_sha256: config_sha256(&config),
        config: config.clone(),
        rows,
        lost: 0,
        calls: 12,
        busy_ns,
        ns_per_row: ns_per_row(busy_ns, rows),
        cpu_share: cpu_share(busy_ns, 2_500_000_000),
        peak_memory: None,
        fuel: None,
        faults: Vec::new(),
        partial: false,
        metrics: 2,
    };
    let mut wasm = of("moe-utilization", PluginDoor::Wasm, 160, 48_000);
    (wasm.path, wasm.sha256) = (Some("moe_utilization.wasm".to_owned()), Some("ab".repeat(32)));
    (wasm.peak_memory, wasm.metrics) = (Some(1 << 20), 7);
    let mut faulty = of("attention-efficiency", PluginDoor::Builtin, 0, 0);
    (faulty.faults, faulty.partial, faulty.lost) = (vec!["panic: index out of bounds".to_owned()], true, 64);
    vec![faulty, of("latency", PluginDoor::Builtin, 330, 6_600), wasm]
}

fn events() -> BTreeMap<String, EventTotals> {
    let of = |rows, lost, (least, weight)| EventTotals {
        rows,
        lost,
        weight,
        least_weight: Some(least),
    };
    [
        ("attention", of(192, 64, (8, 8))),
        ("moe_route", of(160, 0, (8, 8))),
        ("quant", of(220, 0, (1, 8))),
        ("step", of(330, 0, (1, 1))),
    ]
    .into_iter()
    .map(|(kind, totals)| (kind.to_owned(), totals))
    .collect()
}
