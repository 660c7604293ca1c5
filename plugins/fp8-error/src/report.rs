//! From sums to metrics.

use lm_bench_plugin::kinds::phase;
use lm_bench_plugin::{Labels, MAX_METRICS, MetricDef, Sink, layer_label};

use crate::metrics as m;
use crate::range::Ranges;
use crate::totals::{Figure, Totals};
use crate::{Class, Detail, Fp8Error, Group};

pub(crate) fn report(collector: &Fp8Error, sink: &mut Sink<'_>) {
    if collector.groups.is_empty() {
        for metric in m::ALL {
            sink.unavailable(metric, &[], "no quantised tensor was recorded");
        }
        return;
    }
    for (class, group) in &collector.groups {
        let ranges = Ranges::of(group.tensors.values().map(|tensor| &tensor.range));
        let figures = Figures {
            totals: &group.totals,
            ranges: &ranges,
            weights: class.2 == phase::LOAD,
        };
        figures.all(&labels(collector, *class), sink);
    }
    let (parts, count) = match collector.config.detail {
        Detail::Overall => return,
        Detail::Layer => ("layers", count(collector, |group| group.layers.len(), (8, 12))),
        Detail::Tensor => ("tensors", count(collector, |group| group.tensors.len(), (5, 6))),
    };
    if count > MAX_METRICS {
        let reason = format!(
            "all {parts} would make {count} metrics, more than {MAX_METRICS}: set detail to {}",
            if parts == "tensors" { "layer" } else { "overall" }
        );
        for metric in m::ALL {
            sink.unavailable(metric, &[("layer", "each")], &reason);
        }
        return;
    }
    for (class, group) in &collector.groups {
        match collector.config.detail {
            Detail::Overall => {}
            Detail::Layer => layers(group, (*class, &labels(collector, *class)), sink),
            Detail::Tensor => tensors(collector, (*class, group), sink),
        }
    }
}

/// Metrics of all parts, those of the whole included. `each` is how many a part of weights and one of activations has.
fn count(collector: &Fp8Error, parts: impl Fn(&Group) -> usize, each: (usize, usize)) -> usize {
    let of = |(class, group): (&Class, &Group)| {
        parts(group) * if class.2 == phase::LOAD { each.0 } else { each.1 } + m::ALL.len()
    };
    collector.groups.iter().map(of).sum()
}

fn labels(collector: &Fp8Error, (format, granularity, phase): Class) -> [(&str, &str); 3] {
    let texts = &collector.texts.0;
    [
        ("format", &texts[format]),
        ("granularity", &texts[granularity]),
        ("phase", phase::name(phase)),
    ]
}

fn layers(group: &Group, (class, labels): (Class, Labels<'_>), sink: &mut Sink<'_>) {
    for (&layer, totals) in &group.layers {
        let tensors = group.tensors.range((layer, 0)..=(layer, usize::MAX));
        let ranges = Ranges::of(tensors.map(|(_, tensor)| &tensor.range));
        let name = layer_label(layer);
        let labels = [labels, &[("layer", name.as_str())]].concat();
        Figures {
            totals,
            ranges: &ranges,
            weights: class.2 == phase::LOAD,
        }
        .all(&labels, sink);
    }
}

fn tensors(collector: &Fp8Error, (class, group): (Class, &Group), sink: &mut Sink<'_>) {
    for (&(layer, tensor), kept) in &group.tensors {
        let ranges = Ranges::of(std::iter::once(&kept.range));
        let name = layer_label(layer);
        let place = [("layer", name.as_str()), ("tensor", &collector.texts.0[tensor])];
        let labels = [&labels(collector, class)[..], &place].concat();
        let figures = Figures {
            totals: &kept.totals,
            ranges: &ranges,
            weights: class.2 == phase::LOAD,
        };
        figures.of_a_tensor(&labels, sink);
    }
}

struct Figures<'a> {
    totals: &'a Totals,
    ranges: &'a Ranges,
    /// Weights are quantised once, so that nothing about successive steps can be said.
    weights: bool,
}

impl Figures<'_> {
    fn all(&self, labels: Labels<'_>, sink: &mut Sink<'_>) {
        let (totals, ranges) = (self.totals, self.ranges);
        self.of_a_tensor(labels, sink);
        for (metric, value) in [
            (&m::MAX_ABS, totals.max_abs_error()),
            (&m::NONFINITE, totals.nonfinite()),
            (&m::HEADROOM, ranges.headroom()),
        ] {
            sink.value(metric, labels, totals.rows, value);
        }
        if !self.weights {
            let pairs: [(&MetricDef, Figure); 3] = [
                (&m::GROWTH, ranges.growth()),
                (&m::STALE, ranges.stale_overflow()),
                (&m::SPREAD, ranges.spread()),
            ];
            for (metric, value) in pairs {
                sink.value(metric, labels, ranges.pairs, value);
            }
        }
    }

    fn of_a_tensor(&self, labels: Labels<'_>, sink: &mut Sink<'_>) {
        let totals = self.totals;
        for (metric, value) in [
            (&m::L2, totals.l2()),
            (&m::SQNR, totals.sqnr_db()),
            (&m::SQNR_CHANNEL, totals.sqnr_channel_p50_db()),
            (&m::SATURATION, totals.saturation()),
            (&m::UNDERFLOW, totals.underflow()),
        ] {
            sink.value(metric, labels, totals.rows, value);
        }
        if !self.weights {
            sink.value(&m::STABILITY, labels, self.ranges.pairs, self.ranges.stability());
        }
    }
}
