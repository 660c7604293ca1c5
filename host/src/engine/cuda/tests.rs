//! The GPU engine against the CPU engine. These need a GPU; without one they say that they did not run.

use super::*;
use crate::engine::candle::{CandleEngine, LoadOptions};
use crate::engine::testing::{quiet, record};
use crate::model::{RopeLayout, StorageType, preset};

const RUN: (usize, usize) = (3, 200);

/// A small dense model with heads of this shape and bf16 weights, which both engines then have alike.
fn small((head_dim, heads, kv_heads): (usize, usize, usize), qwen: bool) -> Model {
    let mut config = preset("tiny-llama").expect("preset");
    (config.head_dim, config.heads, config.kv_heads) = (head_dim, heads, kv_heads);
    (config.layers, config.storage) = (2, StorageType::Bf16);
    (config.qkv_bias, config.qk_norm) = (qwen, qwen);
    if qwen {
        config.rope_layout = RopeLayout::Interleaved;
    }
    Model::dummy(config, 11)
}

fn gpu_or_skip(test: &str) -> bool {
    let there = driver_present();
    if !there {
        eprintln!("NOT RUN: {test} needs an NVIDIA GPU and its driver");
    }
    there
}

fn prompts(lengths: &[usize]) -> Vec<Vec<u32>> {
    let token = |s: usize, i: usize| ((s * 7919 + i * 104_729 + 13) % 2048) as u32;
    lengths
        .iter()
        .enumerate()
        .map(|(s, &n)| (0..n).map(|i| token(s, i)).collect())
        .collect()
}

/// Root mean square of the difference over that of the reference.
fn relative_error(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let square = |v: f32| f64::from(v) * f64::from(v);
    let error: f64 = found.iter().zip(expected).map(|(a, b)| square(a - b)).sum();
    let size: f64 = expected.iter().map(|&b| square(b)).sum();
    (error / size).sqrt() as f32
}

fn cuda(model: &Model) -> CudaEngine {
    let options = CudaOptions {
        ordinal: 0,
        run: RUN,
        stop: Stop::default(),
    };
    CudaEngine::load(model, options).expect("the GPU engine loads")
}

fn compare(model: &Model, lengths: &[usize]) {
    let options = LoadOptions {
        fp8: None,
        run: RUN,
        threads: None,
        stop: Stop::default(),
    };
    let mut cpu = CandleEngine::load(model, options).expect("the CPU engine loads");
    let mut gpu = cuda(model);
    let mut rec = quiet();
    let prompts = prompts(lengths);
    cpu.begin(lengths.len(), RUN.1).expect("begin");
    gpu.begin(lengths.len(), RUN.1).expect("begin");
    let mut tokens = cpu.prefill(&prompts, &mut rec).expect("prefill");
    gpu.prefill(&prompts, &mut rec).expect("prefill");
    for step in 0..6 {
        let expected = cpu.logits().expect("logits");
        let error = relative_error(&gpu.read_logits().expect("logits"), expected);
        eprintln!("step {step}: relative error {error:.5}");
        // bf16 keeps 8 bits: 2^-9 per rounding, some ten of them in a row and the softmax's amplification.
        assert!(error < 0.03, "step {step}: relative error {error}");
        let given = tokens;
        tokens = cpu.decode(&given, &mut rec).expect("decode");
        gpu.decode(&given, &mut rec).expect("decode");
    }
}

#[test]
fn logits_agree_with_the_cpu_for_each_width_of_head() {
    if !gpu_or_skip("logits_agree_with_the_cpu_for_each_width_of_head") {
        return;
    }
    for heads in [(32, 8, 2), (64, 6, 2), (96, 4, 4), (128, 8, 1)] {
        compare(&small(heads, false), &[1, 100, 193]);
    }
    compare(&small((64, 4, 2), true), &[65, 64, 3]);
}

#[test]
fn logits_agree_where_cublaslt_decodes() {
    if gpu_or_skip("logits_agree_where_cublaslt_decodes") {
        compare(&small((64, 4, 2), false), &[5, 17, 33, 64, 90, 2]);
    }
}

#[test]
fn a_graph_and_single_launches_give_the_same_bits() {
    if !gpu_or_skip("a_graph_and_single_launches_give_the_same_bits") {
        return;
    }
    let model = small((64, 4, 2), false);
    let prompts = prompts(&[9, 40]);
    let mut run = |ops: bool| {
        let mut engine = cuda(&model);
        let mut logits = Vec::new();
        let mut work = |rec: &mut Recorder| {
            engine.begin(2, 100).expect("begin");
            let mut tokens = engine.prefill(&prompts, rec).expect("prefill");
            for _ in 0..5 {
                tokens = engine.decode(&tokens, rec).expect("decode");
                logits.extend(
                    engine
                        .read_logits()
                        .expect("logits")
                        .into_iter()
                        .map(f32::to_bits),
                );
            }
        };
        if ops {
            let recorded = record(&mut work);
            assert!(recorded.column("op", "device_ns").len() > 5 * 2);
            assert!(recorded.column("step", "graph").iter().all(|&g| g == 0.0));
        } else {
            work(&mut quiet());
        }
        logits
    };
    assert_eq!(run(true), run(false));
}
#[test]
fn long_prompts_are_cut_and_only_the_last_part_wants_a_token() {
    let cut = segments_of(&[vec![0; PASS_ROWS + 3], vec![0; 2]]);
    let facts: Vec<_> = cut.iter().map(|s| (s.sequence, s.start, s.len, s.last)).collect();
    assert_eq!(
        facts,
        [(0, 0, PASS_ROWS, false), (0, PASS_ROWS, 3, true), (1, 0, 2, true)]
    );
}

#[test]
fn shapes_without_kernels_are_refused_by_name() {
    let refused = |name: &str| {
        check_shape(&preset(name).expect("preset"))
            .expect_err("refused")
            .to_string()
    };
    assert!(
        refused("tiny-moe").contains("mixture-of-experts"),
        "{}",
        refused("tiny-moe")
    );
    let mut config = preset("tiny-llama").expect("preset");
    config.head_dim = 48;
    let error = check_shape(&config).expect_err("refused").to_string();
    assert!(error.contains("width 48"), "{error}");
    check_shape(&preset("llama-3-8b").expect("preset")).expect("supported");
}
