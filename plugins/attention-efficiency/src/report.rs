//! From sums to metrics.

use lm_bench_plugin::kinds::phase;
use lm_bench_plugin::{Labels, MAX_METRICS, MetricDef, Peak, Sink, layer_label};

use crate::calls::Calls;
use crate::metrics as m;
use crate::{AttentionEfficiency, Detail};

/// Most metrics of one layer and phase, and of the whole apart from phases.
const PER_LAYER: usize = 12;
const ONCE: usize = 7;

const NO_CALL: &str = "no attention call was recorded";
const NO_TIME: &str = "the attention calls took no time";
const NO_PEAK: &str = "no peak of the device is known";
const NO_BYTES: &str = "the attention calls moved no bytes";

pub(crate) fn report(collector: &AttentionEfficiency, sink: &mut Sink<'_>) {
    peak(sink, &m::PEAK_FLOPS, collector.peak_flops.as_ref());
    peak(sink, &m::PEAK_BYTES, collector.peak_bytes.as_ref());
    let phases: Vec<u8> = collector.calls.phases().collect();
    if phases.is_empty() {
        for metric in m::ALL.iter().take(9) {
            sink.unavailable(metric, &[], NO_CALL);
        }
    }
    for &phase in &phases {
        let all = Calls::of(collector.calls.layers(phase).map(|(_, calls)| calls));
        figures(collector, &all, &[("phase", phase::name(phase))], sink);
    }
    if collector.config.detail == Detail::Layer {
        layers(collector, &phases, sink);
    }
    counters(collector, &phases, sink);
}

fn layers(collector: &AttentionEfficiency, phases: &[u8], sink: &mut Sink<'_>) {
    let parts: usize = phases
        .iter()
        .map(|&phase| collector.calls.layers(phase).count() + 1)
        .sum();
    let count = parts * PER_LAYER + ONCE;
    if count > MAX_METRICS {
        let reason =
            format!("all layers would make {count} metrics, more than {MAX_METRICS}: set detail to overall");
        for metric in m::ALL.iter().filter(|metric| metric.labels.contains(&"layer")) {
            sink.unavailable(metric, &[("layer", "each")], &reason);
        }
        return;
    }
    for &phase in phases {
        for (layer, calls) in collector.calls.layers(phase) {
            let layer = layer_label(layer);
            figures(
                collector,
                calls,
                &[("phase", phase::name(phase)), ("layer", &layer)],
                sink,
            );
        }
    }
}

/// The peak itself, with its source.
fn peak(sink: &mut Sink<'_>, metric: &MetricDef, peak: Option<&Peak>) {
    match peak {
        Some(peak) => {
            // A label has at most 128 bytes.
            let end = peak.source.floor_char_boundary(128);
            let labels = [("source", &peak.source[..end]), ("peak", origin(peak))];
            sink.gauge(metric, &labels, 1, peak.per_second);
        }
        None => sink.unavailable(metric, &[], NO_PEAK),
    }
}

fn origin(peak: &Peak) -> &'static str {
    if peak.measured { "measured" } else { "stated" }
}

fn figures(collector: &AttentionEfficiency, calls: &Calls, labels: Labels<'_>, sink: &mut Sink<'_>) {
    let timed = (calls.seconds > 0.0).then_some(calls.seconds).ok_or(NO_TIME);
    let rate = |amount: f64| timed.map(|seconds| amount / seconds);
    let moved = if calls.bytes > 0.0 {
        Ok(calls.flops / calls.bytes)
    } else {
        Err(NO_BYTES)
    };
    for (metric, value) in [
        (&m::FLOPS, rate(calls.flops)),
        (&m::BYTES, rate(calls.bytes)),
        (&m::INTENSITY, moved),
        (&m::TIME, Ok(calls.seconds * 1e6 / calls.weight)),
        (&m::FLOPS_CALL, Ok(calls.flops / calls.weight)),
        (&m::BYTES_CALL, Ok(calls.bytes / calls.weight)),
    ] {
        sink.value(metric, labels, calls.rows, value);
    }
    let (flops, bytes) = (collector.peak_flops.as_ref(), collector.peak_bytes.as_ref());
    for (metric, amount, peak) in [
        (&m::UTILIZATION, calls.flops, flops),
        (&m::BANDWIDTH, calls.bytes, bytes),
    ] {
        let value = peak
            .ok_or(NO_PEAK)
            .and_then(|peak| rate(amount).map(|rate| rate / peak.per_second));
        relative(sink, (metric, labels, calls.rows), peak.map(origin), value);
    }
    let both = flops.zip(bytes).map(|(a, b)| {
        if a.measured && b.measured {
            "measured"
        } else {
            "stated"
        }
    });
    let value = both.ok_or(NO_PEAK).and_then(|_| rate(calls.least_seconds));
    relative(sink, (&m::ROOFLINE, labels, calls.rows), both, value);
    if calls.counted > 0 {
        moved_bytes(sink, labels, calls.counted, (calls.smem_bytes, calls.dram_bytes));
    }
}

/// Reports a share of a peak, labelled with the peak's origin.
fn relative(
    sink: &mut Sink<'_>,
    (metric, labels, samples): (&MetricDef, Labels<'_>, u64),
    origin: Option<&str>,
    value: Result<f64, &str>,
) {
    match origin {
        Some(origin) => sink.value(metric, &[labels, &[("peak", origin)]].concat(), samples, value),
        None => sink.value(metric, labels, samples, value),
    }
}

fn moved_bytes(sink: &mut Sink<'_>, labels: Labels<'_>, samples: u64, (shared, dram): (f64, f64)) {
    sink.ratio(&m::REUSE, labels, samples, (shared, dram));
    sink.gauge(&m::SHARED_BYTES, labels, samples, shared);
    sink.gauge(&m::DRAM_BYTES, labels, samples, dram);
}

/// What hardware counters of kernels say, or why nothing does.
fn counters(collector: &AttentionEfficiency, phases: &[u8], sink: &mut Sink<'_>) {
    let reason = if collector.on_cpu {
        "no hardware counters on cpu"
    } else if collector.config.counters {
        "no hardware counter of an attention kernel was recorded: run with --instrument kernels or import them from ncu"
    } else {
        "the configuration switches hardware counters off"
    };
    let counters = collector.counters.closed();
    let (active, warps) = (&counters.sm_active, &counters.warps_active);
    sink.value(
        &m::SM_EFFICIENCY,
        &[],
        active.launches,
        active.get().ok_or(reason),
    );
    let occupancy = warps.get().map(|percent| percent / 100.0);
    sink.value(&m::OCCUPANCY, &[], warps.launches, occupancy.ok_or(reason));
    let by_call = |&phase: &u8| collector.calls.layers(phase).any(|(_, calls)| calls.counted > 0);
    if counters.moved > 0 {
        moved_bytes(
            sink,
            &[],
            counters.moved,
            (counters.shared_bytes, counters.dram_bytes),
        );
    } else if !phases.iter().any(by_call) {
        for metric in [&m::REUSE, &m::SHARED_BYTES, &m::DRAM_BYTES] {
            sink.unavailable(metric, &[], reason);
        }
    }
}
