//! One source, three doors, the same metrics to the bit.

use lm_bench::events::{Delivery, SymbolTable};
use lm_bench::plugin::Policy;
use lm_bench_plugin::kinds::{attention, kernel, moe_route, op, phase, quant, step};
use serde_json::json;

use crate::support::{delivery, deterministic, policy, request, run, three_doors, tokens};

/// A small generator of numbers, so that the events are the same on each machine.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        // Knuth's MMIX constants; the high bits are the good ones.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn share(&mut self) -> f64 {
        self.next() as f64 / (1_u64 << 31) as f64
    }
}

const EXPERTS: usize = 8;
const LAYERS: u16 = 3;
const STEPS: u64 = 40;

/// Events of all kinds that the operator collectors take.
fn events(symbols: &SymbolTable) -> Vec<Delivery> {
    let mut numbers = Numbers(42);
    let mut deliveries = tokens(5, 300);
    for step in 0..STEPS {
        let phase = if step % 8 == 0 {
            phase::PREFILL
        } else {
            phase::DECODE
        };
        deliveries.push(steps(step, phase, &mut numbers));
        deliveries.push(routes(step, phase, &mut numbers));
        deliveries.push(attentions(step, phase, &mut numbers));
        deliveries.push(quants(step, phase, &mut numbers, symbols));
        deliveries.push(ops(step, phase, &mut numbers));
        deliveries.push(kernels(step, &mut numbers, symbols));
    }
    deliveries
}

fn steps(step: u64, phase: u8, numbers: &mut Numbers) -> Delivery {
    let tokens = if phase == phase::PREFILL { 128 } else { 4 };
    let ns = 1_000_000 + numbers.below(500_000);
    let context_tokens = 128 + 4 * step;
    let row = step::Row {
        t_ns: step * 2_000_000,
        step,
        phase,
        batch: 4,
        tokens,
        context_tokens,
        host_ns: ns,
        measuring_ns: 0,
        device_ns: ns,
        graph: 0,
    };
    delivery(&[row], step, 0)
}

fn routes(step: u64, phase: u8, numbers: &mut Numbers) -> Delivery {
    let tokens: u64 = if phase == phase::PREFILL { 128 } else { 4 };
    let mut lists = Vec::new();
    for _ in 0..LAYERS {
        let mut counts = [0_u32; EXPERTS];
        for _ in 0..tokens {
            // Two different experts per token, some of them more often.
            let first = numbers.below(11) % EXPERTS as u64;
            let second = (first + 1 + numbers.below(EXPERTS as u64 - 1)) % EXPERTS as u64;
            counts[first as usize] += 1;
            counts[second as usize] += 1;
        }
        let sums: Vec<f32> = (0..EXPERTS)
            .map(|_| (numbers.share() * tokens as f64 / 4.0) as f32)
            .collect();
        lists.push((counts, sums));
    }
    let rows: Vec<moe_route::Row<'_>> = (0..LAYERS)
        .zip(&lists)
        .map(|(layer, (counts, prob_sum))| moe_route::Row {
            t_ns: step * 2_000_000 + 10,
            step,
            phase,
            layer,
            tokens: tokens as u32,
            top_k: 2,
            experts: EXPERTS as u32,
            counts,
            prob_sum,
            dropped: 0,
        })
        .collect();
    delivery(&rows, step, step % 3)
}

fn attentions(step: u64, phase: u8, numbers: &mut Numbers) -> Delivery {
    let rows: Vec<attention::Row> = (0..LAYERS)
        .map(|layer| attention::Row {
            t_ns: step * 2_000_000 + 20,
            step,
            phase,
            layer,
            heads: 8,
            kv_heads: 2,
            head_dim: 64,
            q_len: 4,
            kv_len: 512 + 4 * step,
            causal: 1,
            flops: 4.0 * 4.0 * 512.0 * 64.0 * 8.0 + numbers.below(1000) as f64,
            bytes: 1e6 + numbers.share(),
            device_ns: 10_000 + numbers.below(5_000),
            sm_count: 0,
            smem_bytes: 0,
            dram_bytes: 0,
        })
        .collect();
    delivery(&rows, step, 0)
}

fn quants(step: u64, phase: u8, numbers: &mut Numbers, symbols: &SymbolTable) -> Delivery {
    let tensors = ["attn_q", "ffn_down_input"].map(|name| symbols.intern(name));
    let (format, granularity) = (symbols.intern("e4m3"), symbols.intern("row"));
    let rows: Vec<quant::Row> = (0..LAYERS)
        .map(|layer| {
            let reference = 1e3 * (0.5 + numbers.share());
            quant::Row {
                t_ns: step * 2_000_000 + 30,
                step,
                phase: if step == 0 { phase::LOAD } else { phase },
                layer,
                tensor: tensors[usize::from(layer) % 2],
                format,
                granularity,
                n: 4096,
                amax: 3.0 + numbers.share() as f32,
                scale: 0.007,
                sum_sq_ref: reference,
                sum_sq_err: reference * 7e-4 * (0.5 + numbers.share()),
                sqnr_channel_p50: 31.0 + numbers.share() as f32,
                max_abs_err: 0.1,
                saturated: numbers.below(2),
                underflow: numbers.below(5),
                nonfinite: 0,
            }
        })
        .collect();
    delivery(&rows, step, 0)
}

fn ops(step: u64, phase: u8, numbers: &mut Numbers) -> Delivery {
    let rows: Vec<op::Row> = (0..10)
        .map(|op| op::Row {
            t_ns: step * 2_000_000 + 40,
            step,
            phase,
            layer: 0,
            op,
            device_ns: 1_000 + numbers.below(900),
        })
        .collect();
    delivery(&rows, step, 0)
}

fn kernels(step: u64, numbers: &mut Numbers, symbols: &SymbolTable) -> Delivery {
    let row = kernel::Row {
        t_ns: step * 2_000_000 + 50,
        name: symbols.intern("flash_attention_kernel"),
        step,
        start_ns: step * 2_000_000 + 50,
        dur_ns: 5_000 + numbers.below(100),
        grid: 64,
        block: 128,
        regs: 96,
        occupancy: 0.5,
        ..kernel::Row::default()
    };
    delivery(&[row], step, 0)
}

fn metrics(target: &str, id: &str, policy: &Policy) -> String {
    let symbols = SymbolTable::new();
    let deliveries = events(&symbols);
    let outcomes = run(&request(target, id, &json!({})), policy, &deliveries, &symbols)
        .unwrap_or_else(|error| panic!("{target}: {error}"));
    let outcome = &outcomes[0];
    assert_eq!(outcome.faults, Vec::<String>::new(), "{target}");
    assert_eq!(outcome.manifest.id, id);
    assert!(outcome.rows > 0, "{target} took no rows");
    serde_json::to_string_pretty(&outcome.metrics).expect("metrics are JSON")
}

fn assert_equal_through_all_doors(id: &str) {
    let [builtin, dylib, wasm] = three_doors(id).map(|target| metrics(&target, id, &policy()));
    assert!(
        builtin.contains("\"gauge\""),
        "{id} has no number to compare:\n{builtin}"
    );
    assert_eq!(builtin, dylib, "{id}: built-in (left) and dylib differ");
    assert_eq!(builtin, wasm, "{id}: built-in (left) and WASM differ");
    let [again, _, component] = three_doors(id);
    let fuelled = [again, component].map(|target| metrics(&target, id, &deterministic()));
    assert_eq!(
        fuelled,
        [builtin, wasm],
        "{id}: a deterministic run (left) differs"
    );
}

#[test]
fn moe_utilization_is_equal_through_all_doors() {
    assert_equal_through_all_doors("moe-utilization");
}

#[test]
fn fp8_error_is_equal_through_all_doors() {
    assert_equal_through_all_doors("fp8-error");
}

#[test]
fn attention_efficiency_is_equal_through_all_doors() {
    assert_equal_through_all_doors("attention-efficiency");
}

#[test]
fn the_probe_collector_is_equal_through_all_doors() {
    assert_equal_through_all_doors("probe-collector");
}

#[test]
fn the_account_is_equal_through_all_doors() {
    let accounts = three_doors("hostile").map(|target| {
        let outcome =
            crate::support::hostile(&target, &json!({"mode": "every-second"}), &policy()).expect("loaded");
        (
            outcome.rows,
            outcome.lost,
            outcome.faults,
            outcome.partial,
            outcome.absent_kinds,
        )
    });
    // 70 rows, every second one: 35; each odd one of ten deliveries tells one lost row, and three follow.
    let expected = (35, 8, Vec::new(), false, Vec::new());
    assert_eq!(accounts, [expected.clone(), expected.clone(), expected]);
}

#[test]
fn every_lost_row_is_told_through_all_doors() {
    for target in three_doors("hostile") {
        let losses = |config: serde_json::Value, deliveries: &[Delivery]| {
            let requests = request(&target, "hostile", &config);
            let outcomes = run(&requests, &policy(), deliveries, &SymbolTable::new()).expect("loaded");
            let batches = outcomes[0].metrics.iter().find(|metric| metric.name == "batches");
            let Some(lm_bench_plugin::Value::Distribution(values)) = batches.map(|metric| &metric.value)
            else {
                panic!("{target}: {batches:?}")
            };
            (values[0], outcomes[0].lost)
        };
        // The count is one more than the rows lost: one before each odd one of ten deliveries, three after the last.
        assert_eq!(losses(json!({}), &tokens(10, 7)), ((10.0, 9), 8), "{target}");
        assert_eq!(losses(json!({}), &[]), ((0.0, 4), 3), "{target}");
        // Of two deliveries of one row each the second, before which a row was lost, has no sampled row.
        let sampled = losses(json!({"mode": "every-second"}), &tokens(2, 1));
        assert_eq!(sampled, ((1.0, 5), 4), "{target}");
    }
}

#[test]
fn two_plugins_of_each_door_work_side_by_side() {
    let symbols = SymbolTable::new();
    let deliveries = events(&symbols);
    for door in 0..3 {
        let [hostile, probe] = ["hostile", "probe-collector"].map(|id| three_doors(id)[door].clone());
        let mut requests = request(&hostile, "hostile", &json!({}));
        requests.plugins.push(probe);
        let outcomes = run(&requests, &policy(), &deliveries, &symbols).expect("loaded");
        let ids: Vec<&str> = outcomes
            .iter()
            .map(|outcome| outcome.manifest.id.as_str())
            .collect();
        assert_eq!(ids, ["hostile", "probe-collector"]);
        for outcome in &outcomes {
            assert_eq!(outcome.faults, Vec::<String>::new(), "{}", outcome.manifest.id);
        }
        // Both saw the same token rows; the probe also the routed layers.
        assert_eq!(outcomes[0].rows, 1500);
        assert_eq!(outcomes[1].rows, 1500 + STEPS * u64::from(LAYERS));
        let tokens = outcomes[1]
            .metrics
            .iter()
            .find(|metric| metric.name == "tokens")
            .expect("reported");
        assert_eq!(tokens.value, lm_bench_plugin::Value::Counter(1500));
    }
}
