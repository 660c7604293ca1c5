use super::*;
use lm_bench_plugin::kinds::NO_LAYER;
use lm_bench_plugin::kinds::phase::{DECODE, LOAD, PREFILL};
use lm_bench_plugin::testing::CollectorTest;

type Test = CollectorTest<Fp8Error>;
type Pairs<'a> = Vec<(&'a str, &'a str)>;

struct Names {
    up: u32,
    down: u32,
    e4m3: u32,
    block: u32,
}

fn start(config: &str) -> (Test, Names) {
    let mut test = Test::new().config(config);
    let mut name = |text: &str| test.symbol(text);
    let names = Names {
        up: name("ffn_up"),
        down: name("ffn_down"),
        e4m3: name("e4m3"),
        block: name("1x128"),
    };
    (test, names)
}

/// A decode row of layer 0 whose scale is just amax / 448.
fn row(names: &Names, step: u64, amax: f32) -> quant::Row<'static> {
    quant::Row {
        step,
        phase: DECODE,
        tensor: names.up,
        format: names.e4m3,
        granularity: names.block,
        n: 100,
        amax,
        scale: amax / 448.0,
        sum_sq_ref: 400.0,
        sum_sq_err: 4.0,
        sqnr_channel_p50: 20.0,
        max_abs_err: 0.5,
        ..Default::default()
    }
}

fn labels<'a>(phase: &'a str, more: &[(&'a str, &'a str)]) -> Pairs<'a> {
    [
        &[("format", "e4m3"), ("granularity", "1x128"), ("phase", phase)],
        more,
    ]
    .concat()
}

#[test]
fn errors_of_two_tensors() {
    let (mut test, names) = start("{}");
    test.row(&quant::Row {
        saturated: 3,
        underflow: 1,
        ..row(&names, 1, 8.0)
    });
    test.row(&quant::Row {
        tensor: names.down,
        layer: 1,
        n: 300,
        sum_sq_ref: 600.0,
        sum_sq_err: 36.0,
        sqnr_channel_p50: 30.0,
        max_abs_err: 2.0,
        nonfinite: 4,
        ..row(&names, 1, 16.0)
    });
    let metrics = test.metrics();
    let all = labels("decode", &[]);
    // 40 / 1000
    metrics.assert("quantization_error_l2", &all, 0.2);
    metrics.assert_near("sqnr_db", &all, (13.9794, 1e-4));
    metrics.assert("sqnr_channel_p50_db", &all, 20.0);
    metrics.assert("max_abs_error", &all, 2.0);
    metrics.assert("saturation_ratio", &all, 3.0 / 400.0);
    metrics.assert("underflow_ratio", &all, 1.0 / 400.0);
    metrics.assert("nonfinite_ratio", &all, 4.0 / 400.0);
    let first = labels("decode", &[("layer", "0")]);
    metrics.assert("quantization_error_l2", &first, 0.1);
    metrics.assert("sqnr_db", &first, 20.0);
    metrics.assert("max_abs_error", &first, 0.5);
    assert_eq!(metrics.get("sqnr_db", &all).samples, 2);
}

#[test]
fn weights_and_activations_stay_apart() {
    let (mut test, names) = start("{}");
    test.row(&quant::Row {
        phase: LOAD,
        sum_sq_err: 16.0,
        ..row(&names, 0, 8.0)
    });
    test.row(&quant::Row {
        layer: NO_LAYER,
        ..row(&names, 1, 8.0)
    });
    let metrics = test.metrics();
    metrics.assert("quantization_error_l2", &labels("load", &[]), 0.2);
    metrics.assert("quantization_error_l2", &labels("decode", &[]), 0.1);
    metrics.assert("sqnr_db", &labels("decode", &[("layer", "outside")]), 20.0);
    // Weights have no steps.
    assert_eq!(
        metrics.find("dynamic_range_stability", &labels("load", &[])),
        None
    );
    metrics.assert_near("scale_headroom_log2_min", &labels("load", &[]), (0.0, 1e-6));
}

#[test]
fn weights_of_sampling_count_in_sums() {
    let (mut test, names) = start("{}");
    test.weight(8.0).row(&quant::Row {
        saturated: 10,
        ..row(&names, 1, 8.0)
    });
    test.weight(2.0).row(&quant::Row {
        sum_sq_err: 64.0,
        ..row(&names, 9, 8.0)
    });
    let metrics = test.metrics();
    let all = labels("decode", &[]);
    // (8*4 + 2*64) / (10*400), 8*10 / (10*100)
    metrics.assert("quantization_error_l2", &all, 0.2);
    metrics.assert("saturation_ratio", &all, 0.08);
    assert_eq!(metrics.get("saturation_ratio", &all).samples, 2);
}

#[test]
fn ranges_of_successive_steps() {
    let (mut test, names) = start("{}");
    for (step, amax) in [(1, 8.0), (2, 16.0), (3, 4.0), (4, 4.0)] {
        test.row(&row(&names, step, amax));
    }
    let metrics = test.metrics();
    let all = labels("decode", &[]);
    // log2 ratios 1, -2, 0: the mean of the magnitudes is 1.
    metrics.assert("dynamic_range_stability", &all, 0.5);
    metrics.assert("amax_growth_max", &all, 2.0);
    // Only step 2 exceeds the scale of the step before.
    metrics.assert("stale_scale_overflow_ratio", &all, 1.0 / 3.0);
    metrics.assert("amax_log2_spread", &all, 2.0);
    metrics.assert_near("scale_headroom_log2_min", &all, (0.0, 1e-6));
    assert_eq!(metrics.get("dynamic_range_stability", &all).samples, 3);
}

#[test]
fn tensors_and_phases_have_their_own_ranges() {
    let (mut test, names) = start("{}");
    for (step, amax) in [(1, 8.0), (2, 8.0)] {
        test.row(&row(&names, step, amax));
        test.row(&quant::Row {
            tensor: names.down,
            ..row(&names, step, amax * 1024.0)
        });
        test.row(&quant::Row {
            phase: PREFILL,
            ..row(&names, step, amax * step as f32)
        });
    }
    let metrics = test.metrics();
    metrics.assert("dynamic_range_stability", &labels("decode", &[]), 1.0);
    metrics.assert("amax_log2_spread", &labels("decode", &[("layer", "0")]), 0.0);
    metrics.assert("dynamic_range_stability", &labels("prefill", &[]), 0.5);
}

#[test]
fn parts_of_a_tensor_in_one_step_are_one_observation() {
    let (mut test, names) = start("{}");
    for (step, amax) in [(1, 8.0), (1, 2.0), (2, 1.0), (2, 8.0)] {
        test.row(&row(&names, step, amax));
    }
    let metrics = test.metrics();
    metrics.assert("dynamic_range_stability", &labels("decode", &[]), 1.0);
    metrics.assert("amax_log2_spread", &labels("decode", &[]), 0.0);
}

#[test]
fn no_pair_spans_lost_rows_and_zero_is_passed_over() {
    let (mut test, names) = start("{}");
    test.row(&row(&names, 1, 8.0));
    test.lose(1).row(&row(&names, 3, 64.0));
    test.row(&row(&names, 4, 0.0)).row(&row(&names, 5, 32.0));
    let metrics = test.metrics();
    let all = labels("decode", &[]);
    metrics.assert("dynamic_range_stability", &all, 0.5);
    assert_eq!(metrics.get("dynamic_range_stability", &all).samples, 1);
    metrics.assert("amax_log2_spread", &all, 3.0);
}

#[test]
fn the_window_forgets() {
    let (mut test, names) = start(r#"{"window":2}"#);
    for (step, amax) in [(1, 1024.0), (2, 8.0), (3, 16.0)] {
        test.row(&quant::Row {
            scale: 1.0,
            ..row(&names, step, amax)
        });
    }
    let metrics = test.metrics();
    metrics.assert("amax_log2_spread", &labels("decode", &[]), 1.0);
    // log2(448 / 16)
    metrics.assert("scale_headroom_log2_min", &labels("decode", &[]), 28.0_f64.log2());
    let refused = start(r#"{"window":0}"#).0.fault();
    assert_eq!(refused.message, "window is 0, must be 1 to 65536");
}

#[test]
fn values_without_error_signal_or_number() {
    let (mut test, names) = start("{}");
    let exact = f32::INFINITY;
    test.row(&quant::Row {
        sum_sq_err: 0.0,
        sqnr_channel_p50: exact,
        ..row(&names, 1, 8.0)
    });
    test.row(&quant::Row {
        sum_sq_ref: 0.0,
        phase: PREFILL,
        sqnr_channel_p50: f32::NAN,
        ..row(&names, 1, 0.0)
    });
    let metrics = test.metrics();
    let (decode, prefill) = (labels("decode", &[]), labels("prefill", &[]));
    metrics.assert("quantization_error_l2", &decode, 0.0);
    assert_eq!(
        metrics.unavailable("sqnr_db", &decode),
        "quantisation changed no value"
    );
    assert_eq!(
        metrics.unavailable("sqnr_channel_p50_db", &decode),
        "quantisation changed no value"
    );
    assert_eq!(
        metrics.unavailable("quantization_error_l2", &prefill),
        "all values are 0"
    );
    assert!(
        metrics
            .unavailable("sqnr_channel_p50_db", &prefill)
            .starts_with("no median")
    );
    assert!(
        metrics
            .unavailable("dynamic_range_stability", &decode)
            .contains("two successive steps")
    );
    assert!(
        metrics
            .unavailable("scale_headroom_log2_min", &prefill)
            .contains("other than 0")
    );
    let (mut empty, names) = start("{}");
    empty.row(&quant::Row {
        n: 0,
        sum_sq_ref: 0.0,
        sum_sq_err: 0.0,
        ..row(&names, 1, 0.0)
    });
    assert_eq!(
        empty.metrics().unavailable("saturation_ratio", &decode),
        "the tensors have no values"
    );
}

#[test]
fn an_unknown_format_has_no_headroom() {
    let (mut test, names) = start("{}");
    let format = test.symbol("nvfp4");
    test.row(&quant::Row {
        format,
        ..row(&names, 1, 8.0)
    })
    .row(&quant::Row {
        format,
        ..row(&names, 2, 8.0)
    });
    let metrics = test.metrics();
    let all = [("format", "nvfp4"), ("granularity", "1x128"), ("phase", "decode")];
    assert!(
        metrics
            .unavailable("scale_headroom_log2_min", &all)
            .contains("not known")
    );
    assert!(
        metrics
            .unavailable("stale_scale_overflow_ratio", &all)
            .contains("not known")
    );
    metrics.assert("dynamic_range_stability", &all, 1.0);
}

#[test]
fn contradictions_and_unknown_symbols_are_refused() {
    let (mut test, names) = start("{}");
    test.row(&quant::Row {
        saturated: 101,
        ..row(&names, 6, 8.0)
    });
    assert_eq!(
        test.fault().message,
        "quant row of step 6, layer 0, ffn_up: saturated is 101 of 100 values"
    );
    let (mut test, names) = start("{}");
    test.row(&quant::Row {
        tensor: 99,
        ..row(&names, 6, 8.0)
    });
    assert_eq!(test.fault().message, "no text for symbol 99");
}

#[test]
fn without_rows_everything_says_so() {
    let metrics = Test::new().metrics();
    for def in metrics::ALL {
        assert_eq!(
            metrics.unavailable(def.name, &[]),
            "no quantised tensor was recorded"
        );
    }
}

/// 32 layers of 7 tensors and the output layer, as weights and in both phases.
fn model(detail: &str, phases: &[u8]) -> Test {
    let (mut test, names) = start(&format!(r#"{{"detail":"{detail}"}}"#));
    let tensors: Vec<u32> = (0..7).map(|n| test.symbol(&format!("tensor {n}"))).collect();
    for &phase in phases {
        for layer in 0..32 {
            for &tensor in &tensors {
                test.row(&quant::Row {
                    phase,
                    layer,
                    tensor,
                    ..row(&names, 1, 8.0)
                });
            }
        }
        test.row(&quant::Row {
            phase,
            layer: NO_LAYER,
            ..row(&names, 1, 8.0)
        });
    }
    test
}

#[test]
fn a_model_of_32_layers_fits_at_each_detail() {
    let phases = [LOAD, PREFILL, DECODE];
    // Per class 8 metrics of weights or 12 of activations.
    assert_eq!(model("overall", &phases).metrics().all().len(), 8 + 12 + 12);
    assert_eq!(model("layer", &phases).metrics().all().len(), 34 * (8 + 12 + 12));
    // 225 tensors with 5 or 6 metrics each.
    let tensors = model("tensor", &phases).metrics();
    assert_eq!(tensors.all().len(), 32 + 225 * (5 + 6 + 6));
    let place = labels("decode", &[("layer", "31"), ("tensor", "tensor 6")]);
    tensors.assert("quantization_error_l2", &place, 0.1);
    // One phase more does not fit: the whole is still there, and the parts say what to do.
    let mixed = lm_bench_plugin::kinds::phase::MIXED;
    let many = model("tensor", &[LOAD, PREFILL, DECODE, mixed]).metrics();
    assert!(
        many.unavailable("sqnr_db", &[("layer", "each")])
            .ends_with("set detail to layer")
    );
    many.assert("sqnr_db", &labels("mixed", &[]), 20.0);
}
