//! Layers and tensors are listed as long as all metrics have room.

use super::*;
use lm_bench_plugin::kinds::phase::{DECODE, LOAD};
use lm_bench_plugin::testing::{CollectorTest, Metrics};

/// One tensor in each of so many layers.
fn layers(count: u16, phase: u8, detail: &str) -> Metrics {
    let mut test = CollectorTest::<Fp8Error>::new().config(&format!(r#"{{"detail": "{detail}"}}"#));
    let (tensor, format, granularity) = (test.symbol("ffn_up"), test.symbol("e4m3"), test.symbol("row"));
    for layer in 0..count {
        test.row(&quant::Row {
            phase,
            layer,
            tensor,
            format,
            granularity,
            n: 100,
            amax: 8.0,
            scale: 8.0 / 448.0,
            sum_sq_ref: 400.0,
            sum_sq_err: 4.0,
            sqnr_channel_p50: 20.0,
            max_abs_err: 0.5,
            ..Default::default()
        });
    }
    test.metrics()
}

#[test]
fn as_many_parts_as_there_is_room_for() {
    // Metrics of a part, and of the whole: 12 and 12 of activations, 8 and 8 of weights; of a tensor 6 and 5. The guard
    // leaves room for 12 of the whole in either case.
    for (detail, phase, each, whole) in [
        ("layer", DECODE, 12, 12),
        ("layer", LOAD, 8, 8),
        ("tensor", DECODE, 6, 12),
        ("tensor", LOAD, 5, 8),
    ] {
        let most = (4_096 - 12) / each;
        let fits = layers(most, phase, detail);
        assert_eq!(fits.all().len(), usize::from(most * each) + whole, "{detail}");
        let refused = layers(most + 1, phase, detail);
        let reason = refused.unavailable("sqnr_db", &[("layer", "each")]);
        assert!(reason.contains("set detail to"), "{reason}");
    }
}
