//! Declarations. Sums run over the delivered rows of `quant` of one format, granularity and phase.

use lm_bench_plugin::{Direction, MetricDef};

const KEYS: &[&str] = &["format", "granularity", "phase", "layer", "tensor"];
const LAYER_KEYS: &[&str] = &["format", "granularity", "phase", "layer"];

const fn gauge(name: &'static str, unit: &'static str) -> MetricDef {
    MetricDef::gauge(name, unit).better(Direction::Lower).labels(KEYS)
}

/// Not reported for single tensors.
const fn per_layer(name: &'static str) -> MetricDef {
    gauge(name, "1").labels(LAYER_KEYS)
}

pub(crate) const L2: MetricDef = gauge("quantization_error_l2", "1")
    .formula("sqrt(sum of weight * sum_sq_err / sum of weight * sum_sq_ref)")
    .about("Relative error |x' - x| / |x| of the values after the round trip. E4M3 gives about 0.026 while nothing saturates or underflows, whatever the scale.");

pub(crate) const SQNR: MetricDef = gauge("sqnr_db", "dB")
    .better(Direction::Higher)
    .formula("10 * log10(sum of weight * sum_sq_ref / sum of weight * sum_sq_err)")
    .about("Signal-to-quantisation-noise ratio. Loud channels dominate it: read it beside sqnr_channel_p50_db and underflow_ratio.");

pub(crate) const SQNR_CHANNEL: MetricDef = gauge("sqnr_channel_p50_db", "dB")
    .better(Direction::Higher)
    .formula("median over rows of sqnr_channel_p50 (each row's median over channels), in steps of 0.01 dB between -1000 and 1000")
    .about("Signal-to-quantisation-noise ratio of a typical channel.");

pub(crate) const MAX_ABS: MetricDef = per_layer("max_abs_error")
    .formula("max of max_abs_err")
    .about("Largest difference of a value after the round trip, in the tensor's own unit.");

pub(crate) const SATURATION: MetricDef = gauge("saturation_ratio", "1")
    .formula("sum of weight * saturated / sum of weight * n")
    .about("Share of values beyond the format's largest one before the cast.");

pub(crate) const UNDERFLOW: MetricDef = gauge("underflow_ratio", "1")
    .formula("sum of weight * underflow / sum of weight * n")
    .about("Share of values that were not 0 and became 0.");

pub(crate) const NONFINITE: MetricDef = per_layer("nonfinite_ratio")
    .formula("sum of weight * nonfinite / sum of weight * n")
    .about("Share of values that were NaN or infinite; they are in no other sum.");

pub(crate) const STABILITY: MetricDef = gauge("dynamic_range_stability", "1")
    .better(Direction::Higher)
    .formula("2^-(mean of |log2(amax(t) / amax(t-1))|) over the pairs of successive delivered steps of a tensor in a phase, over tensors all pairs together; a step's amax is the largest of its rows, amax = 0 is passed over, no pair spans lost rows")
    .about("Geometric mean of the smaller over the larger of two successive ranges: 1 when the range never moves, 0.5 when it typically doubles or halves.");

pub(crate) const GROWTH: MetricDef = per_layer("amax_growth_max")
    .formula("largest amax(t) / amax(t-1) over the pairs of dynamic_range_stability")
    .about("By how much a tensor's range outgrew that of the step before at worst: the margin that delayed scaling needs.");

pub(crate) const STALE: MetricDef = per_layer("stale_scale_overflow_ratio")
    .formula("share of the pairs of dynamic_range_stability with amax(t) > M * scale(t-1), M the largest value of the format (448 for e4m3)")
    .about("Share of steps that would saturate under the previous step's scale, as delayed scaling with a history of one would.");

pub(crate) const SPREAD: MetricDef = per_layer("amax_log2_spread")
    .formula("max - min of log2(amax) over the last `window` steps of a tensor; over tensors the largest")
    .about("Octaves that a tensor's range covers within the window.");

pub(crate) const HEADROOM: MetricDef = per_layer("scale_headroom_log2_min")
    .better(Direction::Neither)
    .formula("min of log2(M * scale / amax) over the last `window` steps, M the largest value of the format (448 for e4m3); over tensors the smallest")
    .about("Octaves between a tensor's largest magnitude and the largest value its scale can hold: 0 uses the whole range, below 0 saturates.");

pub(crate) const ALL: &[MetricDef] = &[
    L2,
    SQNR,
    SQNR_CHANNEL,
    MAX_ABS,
    SATURATION,
    UNDERFLOW,
    NONFINITE,
    STABILITY,
    GROWTH,
    STALE,
    SPREAD,
    HEADROOM,
];
