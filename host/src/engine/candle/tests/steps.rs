//! Steps against each other: batching, caching, call order, limits, FP8.

use super::{assert_close, engine, small};
use crate::engine::candle::{CandleEngine, LoadOptions};
use crate::engine::fp8::{Fp8Scales, Granularity};
use crate::engine::testing::{quiet, record};
use crate::engine::{Engine, EngineError};
use crate::model::{Architecture, Model, preset};
use crate::stop::Stop;

const LONG: [u32; 9] = [1, 7, 33, 80, 2, 2, 59, 12, 95];
const SHORT: [u32; 4] = [64, 9, 9, 31];

fn single(engine: &mut CandleEngine, prompt: &[u32], then: &[u32]) -> Vec<Vec<f32>> {
    let mut rec = quiet();
    engine.begin(1, prompt.len() + then.len()).expect("begin");
    engine.prefill(&[prompt.to_vec()], &mut rec).expect("prefill");
    let mut all = vec![engine.logits().expect("logits").to_vec()];
    for token in then {
        engine.decode(&[*token], &mut rec).expect("decode");
        all.push(engine.logits().expect("logits").to_vec());
    }
    all
}

#[test]
fn prefill_then_decode_equals_one_prefill() {
    for architecture in [Architecture::Qwen2, Architecture::Mixtral] {
        let mut e = engine(small(architecture), None);
        let stepwise = single(&mut e, &LONG[..4], &LONG[4..]);
        for (i, logits) in stepwise.iter().enumerate() {
            let whole = single(&mut e, &LONG[..4 + i], &[]);
            assert_close(logits, &whole[0], 1e-5);
        }
    }
}

#[test]
fn a_batch_of_two_lengths_equals_two_runs() {
    for architecture in [Architecture::Llama, Architecture::Qwen3Moe] {
        let mut e = engine(small(architecture), None);
        let (a, b) = (single(&mut e, &LONG, &[8, 4]), single(&mut e, &SHORT, &[40, 77]));
        let mut rec = quiet();
        e.begin(2, 11).expect("begin");
        e.prefill(&[LONG.to_vec(), SHORT.to_vec()], &mut rec)
            .expect("prefill");
        for step in 0..3 {
            let both = [a[step].clone(), b[step].clone()].concat();
            assert_close(e.logits().expect("logits"), &both, 1e-5);
            if step < 2 {
                e.decode(&[[8, 4][step], [40, 77][step]], &mut rec)
                    .expect("decode");
            }
        }
    }
}

#[test]
fn a_second_begin_forgets_the_first() {
    let mut e = engine(small(Architecture::Llama), None);
    let fresh = single(&mut e, &SHORT, &[3]);
    single(&mut e, &LONG, &[1, 2, 3]);
    assert_eq!(single(&mut e, &SHORT, &[3]), fresh);
}

#[test]
fn misuse_is_an_error_that_says_what_to_do() {
    let mut rec = quiet();
    let mut e = engine(small(Architecture::Llama), None);
    let text = |r: Result<Vec<u32>, EngineError>| r.expect_err("must fail").to_string();
    assert!(text(e.decode(&[1], &mut rec)).contains("`begin` must come before"));
    assert!(matches!(e.begin(0, 8), Err(EngineError::Zero("batch size"))));
    assert!(matches!(e.begin(1, 0), Err(EngineError::Zero("sequence length"))));
    assert!(matches!(
        e.begin(1, 65),
        Err(EngineError::Context {
            asked: 65,
            limit: 64,
            ..
        })
    ));
    e.begin(2, 5).expect("begin");
    assert!(text(e.decode(&[1, 2], &mut rec)).contains("`prefill` must come before"));
    assert!(text(e.prefill(&[vec![1]], &mut rec)).contains("1 sequences given, 2 prepared"));
    assert!(text(e.prefill(&[vec![1], vec![]], &mut rec)).contains("prompt length is 0"));
    let outside = text(e.prefill(&[vec![1], vec![96]], &mut rec));
    assert!(outside.contains("token 96 of sequence 1"), "{outside}");
    let long = text(e.prefill(&[vec![1], vec![1; 6]], &mut rec));
    assert!(
        long.contains("sequence 1 needs 6 tokens, 5 were prepared"),
        "{long}"
    );
    e.prefill(&[vec![1], vec![1; 5]], &mut rec).expect("prefill");
    assert!(text(e.prefill(&[vec![1], vec![1]], &mut rec)).contains("between two calls"));
    assert!(text(e.decode(&[1, 1], &mut rec)).contains("sequence 1 needs 6 tokens"));
}

#[test]
fn a_model_larger_than_the_machine_is_refused_before_loading() {
    let mut config = preset("mixtral-8x7b").expect("preset");
    config.layers = 4000;
    let options = LoadOptions {
        fp8: None,
        run: (1, 16),
        threads: None,
        stop: Stop::default(),
    };
    let result = CandleEngine::load(&Model::dummy(config, 0), options);
    let text = result.err().expect("must fail").to_string();
    assert!(text.starts_with("not enough memory: "), "{text}");
    assert!(text.contains("take a smaller or a quantised"), "{text}");
}

#[test]
fn fp8_changes_logits_a_little_and_the_same_way_each_time() {
    for architecture in [Architecture::Llama, Architecture::Mixtral] {
        let exact = single(&mut engine(small(architecture), None), &LONG, &[5]);
        for weights in [Granularity::Tensor, Granularity::Row, Granularity::TILE_128X128] {
            let scales = Fp8Scales {
                weights,
                activations: Granularity::TILE_1X128,
            };
            let fp8 = || single(&mut engine(small(architecture), Some(scales)), &LONG, &[5]);
            let first = fp8();
            assert_eq!(first, fp8(), "deterministic");
            let norm = |v: &[f32]| v.iter().map(|x| x * x).sum::<f32>().sqrt();
            for (a, b) in first.iter().zip(&exact) {
                let difference: Vec<f32> = a.iter().zip(b).map(|(a, b)| a - b).collect();
                let relative = norm(&difference) / norm(b);
                assert!(relative > 1e-3 && relative < 0.4, "{architecture:?}: {relative}");
            }
        }
    }
}

#[test]
fn a_wish_to_stop_ends_loading_and_steps() {
    let stop = Stop::default();
    let options = LoadOptions {
        fp8: None,
        run: (1, 8),
        threads: Some(1),
        stop: stop.clone(),
    };
    let model = Model::dummy(small(Architecture::Mixtral), 11);
    let mut e = CandleEngine::load(&model, options.clone()).expect("nobody wants it to stop");
    let mut rec = quiet();
    e.begin(1, 8).expect("begin");
    e.prefill(&[vec![1, 2]], &mut rec).expect("prefill");
    stop.request();
    let decode = e.decode(&[3], &mut rec);
    assert!(matches!(decode, Err(EngineError::Interrupted(_))), "{decode:?}");
    e.begin(1, 8).expect("begin");
    let prefill = e.prefill(&[vec![1, 2]], &mut rec);
    assert!(matches!(prefill, Err(EngineError::Interrupted(_))), "{prefill:?}");
    let load = CandleEngine::load(&model, options).err().expect("must end");
    assert!(matches!(load, EngineError::Interrupted(_)), "{load}");
}

/// What a prefill records when the wish to stop comes up at one of its looks: whether it ended early, and the layers of
/// the operators until then.
fn stopped_prefill(architecture: Architecture, look: u32) -> (bool, Vec<f64>) {
    let mut e = engine(small(architecture), None);
    e.begin(1, 8).expect("begin");
    e.stop = Stop::at_look(look);
    let mut ended_early = false;
    let recorded = record(|rec| match e.prefill(&[vec![1, 2]], rec) {
        Ok(_) => {}
        Err(EngineError::Interrupted(_)) => ended_early = true,
        Err(other) => panic!("{other}"),
    });
    (ended_early, recorded.column("op", "layer"))
}

#[test]
fn a_step_under_way_ends_between_two_operators() {
    let outside = f64::from(u16::MAX);
    // A dense layer of 6 operators looks before its attention and before its feed-forward part, which is the last of them.
    for (look, operators) in [(1, [0, 0]), (2, [5, 0]), (3, [6, 0]), (4, [6, 5])] {
        let (ended_early, layers) = stopped_prefill(Architecture::Llama, look);
        assert!(ended_early, "look {look}");
        let of = |layer: f64| layers.iter().filter(|of| **of == layer).count();
        assert_eq!((of(outside), [of(0.0), of(1.0)]), (1, operators), "look {look}");
    }
    let (ended_early, layers) = stopped_prefill(Architecture::Llama, 5);
    assert!(!ended_early && layers.len() == 2 * 6 + 4, "{layers:?}");
    // Each expert that gets tokens looks too: of the first layer there is the router, and not the experts.
    let (ended_early, layers) = stopped_prefill(Architecture::Mixtral, 3);
    assert!(
        ended_early && layers == [outside, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        "{layers:?}"
    );
}

#[test]
fn sampled_steps_compute_what_the_others_do() {
    for architecture in [Architecture::Llama, Architecture::Mixtral] {
        let mut e = engine(small(architecture), Some(Fp8Scales::default()));
        let plain = single(&mut e, &LONG, &[]);
        let mut sampled = Vec::new();
        record(|rec| {
            e.begin(1, LONG.len()).expect("begin");
            e.prefill(&[LONG.to_vec()], rec).expect("prefill");
            sampled = e.logits().expect("logits").to_vec();
        });
        assert_eq!(sampled, plain[0]);
    }
}
