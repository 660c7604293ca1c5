//! Rows of the event stream: how many, and what they add up to.

use super::{engine, small};
use crate::engine::Engine;
use crate::engine::candle::attention::{RowPlace, account};
use crate::engine::fp8::Fp8Scales;
use crate::engine::testing::{Recorded, record};
use crate::model::Architecture;

const PROMPTS: [&[u32]; 2] = [&[1, 7, 33, 80, 2], &[64, 9]];

/// Two layers, two prompts of 5 and 2 tokens, then two decode steps.
fn run(architecture: Architecture, fp8: bool) -> Recorded {
    let mut engine = engine(small(architecture), fp8.then(Fp8Scales::default));
    record(|rec| {
        engine.record_load(rec);
        engine.begin(2, 20).expect("begin");
        let mut next = engine
            .prefill(&PROMPTS.map(<[u32]>::to_vec), rec)
            .expect("prefill");
        for _ in 0..2 {
            next = engine.decode(&next, rec).expect("decode");
        }
    })
}

#[test]
fn steps_and_cache_are_accounted() {
    let r = run(Architecture::Llama, false);
    assert_eq!(r.column("step", "step"), [0.0, 1.0, 2.0]);
    assert_eq!(r.column("step", "phase"), [0.0, 1.0, 1.0]);
    assert_eq!(r.column("step", "batch"), [2.0; 3]);
    assert_eq!(r.column("step", "tokens"), [7.0, 2.0, 2.0]);
    assert_eq!(r.column("step", "context_tokens"), [7.0, 9.0, 11.0]);
    assert_eq!(r.column("step", "host_ns"), r.column("step", "device_ns"));
    // Two sequences, each with room for 20 tokens in one piece.
    assert_eq!(r.column("kv_cache", "block_tokens"), [20.0; 3]);
    assert_eq!(r.column("kv_cache", "blocks_total"), [2.0; 3]);
    assert_eq!(r.column("kv_cache", "blocks_used"), [2.0; 3]);
    assert_eq!(r.column("kv_cache", "tokens_stored"), [7.0, 9.0, 11.0]);
}

#[test]
fn every_operator_of_every_layer_is_timed_and_fits_into_its_step() {
    for (architecture, per_layer) in [(Architecture::Llama, 6), (Architecture::Mixtral, 7)] {
        let r = run(architecture, true);
        let (layers, steps) = (r.column("op", "layer"), r.column("op", "step"));
        // Outside the layers: embedding, last norm, LM head, sampling.
        assert_eq!(layers.len(), 3 * (2 * per_layer + 4), "{architecture:?}");
        assert_eq!(layers.iter().filter(|l| **l == 65_535.0).count(), 3 * 4);
        let times = r.column("op", "device_ns");
        let (ended, measuring) = (r.column("step", "t_ns"), r.column("step", "measuring_ns"));
        let mut last_end = 0.0;
        for (step, total) in r.column("step", "host_ns").iter().enumerate() {
            let inside = steps.iter().zip(&times).filter(|(s, _)| **s == step as f64);
            let sum: f64 = inside.map(|(_, t)| t).sum();
            assert!(
                sum > 0.0 && sum <= *total,
                "step {step}: operators {sum}, step {total}"
            );
            // Work and measuring together are the step's wall time, so it begins after the step before.
            assert!(
                measuring[step] > 0.0 && ended[step] - total - measuring[step] >= last_end,
                "step {step}: {total} and {} up to {}, the one before up to {last_end}",
                measuring[step],
                ended[step]
            );
            last_end = ended[step];
        }
    }
}

#[test]
fn errors_of_an_operators_input_are_measured_after_it_ended() {
    let r = run(Architecture::Mixtral, true);
    let op = |code: f64| {
        let codes = r.column("op", "op");
        let rows = r.column("op", "t_ns").into_iter().zip(codes);
        rows.filter(move |(_, c)| *c == code)
            .map(|(t, _)| t)
            .collect::<Vec<_>>()
    };
    let (tensors, times) = (r.texts("quant", "tensor"), r.column("quant", "t_ns"));
    // qkv, o_proj and experts in the codes of `op`.
    for (tensor, code) in [
        ("attn_input", 2.0),
        ("attn_output_input", 4.0),
        ("ffn_input", 6.0),
        ("ffn_down_input", 6.0),
    ] {
        let measured = tensors.iter().zip(&times).filter(|(t, _)| *t == tensor);
        let ended = op(code);
        assert_eq!(ended.len(), 6, "two layers of three steps");
        for ((_, measured), ended) in measured.zip(&ended) {
            assert!(measured > ended, "{tensor}: {measured} against {ended}");
        }
    }
}

#[test]
fn attention_rows_carry_exact_work() {
    let r = run(Architecture::Llama, false);
    let places = |lengths: [usize; 2], from: [usize; 2]| -> Vec<RowPlace> {
        let rows = |s: usize| {
            (from[s]..lengths[s]).map(move |position| RowPlace {
                sequence: s,
                position,
            })
        };
        rows(0).chain(rows(1)).collect()
    };
    let expected = [
        places([5, 2], [0, 0]),
        places([6, 3], [5, 2]),
        places([7, 4], [6, 3]),
    ]
    .map(|p| account(&small(Architecture::Llama), &p));
    let flops = expected.map(|e| [e.flops; 2]).concat();
    assert_eq!(r.column("attention", "flops"), flops);
    // 15 + 3 visible pairs in the prefill, 4 heads of 16, 4 operations each.
    assert_eq!(flops[0], 18.0 * 4.0 * 16.0 * 4.0);
    assert_eq!(r.column("attention", "q_len"), [7.0, 7.0, 2.0, 2.0, 2.0, 2.0]);
    assert_eq!(r.column("attention", "kv_len"), [7.0, 7.0, 9.0, 9.0, 11.0, 11.0]);
}

#[test]
fn routing_adds_up() {
    let r = run(Architecture::Mixtral, false);
    let tokens = r.column("moe_route", "tokens");
    assert_eq!(tokens, [7.0, 7.0, 2.0, 2.0, 2.0, 2.0]);
    let counts = r.column("moe_route", "counts");
    let probabilities = r.column("moe_route", "prob_sum");
    for (row, tokens) in tokens.iter().enumerate() {
        let of_row = row * 6..(row + 1) * 6;
        assert_eq!(counts[of_row.clone()].iter().sum::<f64>(), tokens * 2.0);
        let total: f64 = probabilities[of_row].iter().sum();
        assert!((total - tokens).abs() < 1e-5, "{total}");
    }
    // One row per routed token, two experts and gates each; renormalised gates add up to one.
    let (experts, gates) = (r.column("moe_assign", "expert"), r.column("moe_assign", "gate"));
    assert_eq!((experts.len(), gates.len()), (44, 44));
    for (pair, gate) in experts.chunks(2).zip(gates.chunks(2)) {
        assert!(pair[0] != pair[1] && (gate[0] + gate[1] - 1.0).abs() < 1e-6 && gate[0] >= gate[1]);
    }
    let first_layer_first_step: f64 = counts[..6].iter().sum();
    assert_eq!(first_layer_first_step, 14.0);
    assert!(
        counts[..6].iter().filter(|c| **c > 0.0).count() > 2,
        "routing spreads: {counts:?}"
    );
}

#[test]
fn weights_are_reported_once_and_activations_per_step() {
    let r = run(Architecture::Mixtral, true);
    let (phases, tensors) = (r.column("quant", "phase"), r.texts("quant", "tensor"));
    let loaded: Vec<&str> = tensors
        .iter()
        .zip(&phases)
        .filter(|(_, p)| **p == 3.0)
        .map(|(t, _)| t.as_str())
        .collect();
    let per_layer = [
        "attn_q",
        "attn_k",
        "attn_v",
        "attn_output",
        "ffn_gate",
        "ffn_up",
        "ffn_down",
    ];
    assert_eq!(loaded.len(), 2 * per_layer.len());
    assert!(
        per_layer
            .iter()
            .all(|t| loaded.iter().filter(|l| *l == t).count() == 2),
        "{loaded:?}"
    );
    // Four activations per layer and step.
    assert_eq!(tensors.len() - loaded.len(), 3 * 2 * 4);
    assert!(r.texts("quant", "format").iter().all(|f| f == "e4m3"));
    assert!(r.texts("quant", "granularity").iter().all(|g| g == "row"));
    let (reference, error) = (r.column("quant", "sum_sq_ref"), r.column("quant", "sum_sq_err"));
    for ((signal, noise), tensor) in reference.iter().zip(&error).zip(&tensors) {
        let decibels = 10.0 * (signal / noise).log10();
        assert!((28.0..36.0).contains(&decibels), "{tensor}: {decibels} dB");
    }
    // All experts of a layer together: 6 experts of 40 × 64.
    let sizes = r.column("quant", "n");
    assert_eq!(
        sizes[tensors.iter().position(|t| t == "ffn_gate").expect("there")],
        6.0 * 40.0 * 64.0
    );
    assert_eq!(r.column("quant", "saturated").iter().sum::<f64>(), 0.0);
}
