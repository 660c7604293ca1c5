//! From sums to metrics.

use std::iter::once;

use lm_bench_plugin::kinds::phase;
use lm_bench_plugin::{Labels, MAX_METRICS, MetricDef, Sink, layer_label};

use crate::layer::LayerLoad;
use crate::metrics as m;
use crate::overall::Overall;
use crate::{Detail, MoeUtilization};

/// Most experts that are listed one by one.
const MAX_LISTED: usize = 256;
/// Metrics of one layer and phase.
const PER_LAYER: usize = 16;

const NO_PROBABILITIES: &str = "no router probabilities were recorded";
const NO_DROPS: &str = "the engine does not tell dropped assignments";
const ONE_EXPERT: &str = "a single expert has no distribution";
const NO_COMPLETE_STEP: &str = "each step lies next to lost rows";

/// Mean and maximum over steps of the largest violation.
struct BatchVio {
    steps: u64,
    mean: Option<f64>,
    max: f64,
}

pub(crate) fn report(collector: &MoeUtilization, sink: &mut Sink<'_>) {
    let phases: Vec<u8> = collector
        .layers
        .phases()
        .filter(|&p| routed(collector, p).next().is_some())
        .collect();
    if phases.is_empty() {
        return nothing(collector, sink);
    }
    for &phase in &phases {
        overall(collector, phase, sink);
    }
    if collector.config.detail == Detail::Layer {
        layers(collector, &phases, sink);
    }
}

/// Layers of a phase that routed anything.
fn routed(collector: &MoeUtilization, phase: u8) -> impl Iterator<Item = (u16, &LayerLoad)> {
    collector.layers.layers(phase).filter(|(_, load)| load.rows > 0)
}

fn nothing(collector: &MoeUtilization, sink: &mut Sink<'_>) {
    let reason = if collector.model_experts == 0 {
        "no router decision was recorded: the model has no experts"
    } else {
        "no router decision was recorded"
    };
    for metric in m::ALL {
        sink.unavailable(metric, &[], reason);
    }
}

fn overall(collector: &MoeUtilization, phase: u8, sink: &mut Sink<'_>) {
    let labels = [("phase", phase::name(phase))];
    let all = Overall::of(routed(collector, phase).map(|(_, load)| load));
    let maxima = collector.steps.phase(phase);
    let vio = BatchVio {
        steps: maxima.steps,
        mean: maxima.mean(),
        max: maxima.max,
    };
    figures(&all, &vio, &labels, sink);
    if !collector.config.per_expert {
        return;
    }
    if all.loads.len() > MAX_LISTED {
        let reason = format!(
            "{} experts: at most {MAX_LISTED} are listed one by one",
            all.loads.len()
        );
        return sink.unavailable(&m::LOAD_SHARE, &labels, &reason);
    }
    for (expert, load) in all.loads.iter().enumerate() {
        let expert = expert.to_string();
        let labels = [labels[0], ("expert", expert.as_str())];
        sink.gauge(&m::LOAD_SHARE, &labels, all.rows, load / all.assigned);
    }
}

fn layers(collector: &MoeUtilization, phases: &[u8], sink: &mut Sink<'_>) {
    let count: usize = phases.iter().map(|&phase| routed(collector, phase).count()).sum();
    let room = MAX_METRICS - phases.len() * (MAX_LISTED + PER_LAYER + 1);
    if count * PER_LAYER > room {
        let reason = format!(
            "{count} layers and phases with {PER_LAYER} metrics each exceed the limit of {MAX_METRICS}; \
             set detail to overall"
        );
        for metric in m::ALL.iter().filter(|metric| metric.labels.contains(&"layer")) {
            sink.unavailable(metric, &[("layer", "each")], &reason);
        }
        return;
    }
    for &phase in phases {
        for (layer, load) in routed(collector, phase) {
            let layer = layer_label(layer);
            let labels = [("phase", phase::name(phase)), ("layer", layer.as_str())];
            let vio = BatchVio {
                steps: load.rows,
                mean: Some(load.max_vio_sum / load.weight),
                max: load.max_vio_max,
            };
            figures(&Overall::of(once(load)), &vio, &labels, sink);
        }
    }
}

fn figures(of: &Overall, vio: &BatchVio, labels: Labels<'_>, sink: &mut Sink<'_>) {
    let dropped = of.dropped.unwrap_or(0.0);
    let certain: [(&MetricDef, f64); 11] = [
        (&m::UTILIZATION, of.active / of.experts),
        (&m::BALANCEDNESS, of.mean_loads / of.largest_loads),
        (&m::ACTIVE_PER_TOKEN, (of.assigned - dropped) / of.tokens),
        (&m::LOAD_SHARE_MAX, of.share_max),
        (&m::MAX_VIO_GLOBAL, of.max_vio),
        (&m::LOAD_CV, of.cv()),
        (&m::LOAD_CV_FLOOR, of.cv_noise_floor()),
        (&m::UNIQUE, of.unique / of.weight),
        (&m::UNIQUE_UNIFORM, of.unique_uniform / of.weight),
        (&m::DEAD, of.experts - of.active),
        (&m::DEAD_UNIFORM, of.dead_uniform),
    ];
    for (metric, value) in certain {
        sink.gauge(metric, labels, of.rows, value);
    }
    sink.value(&m::ENTROPY, labels, of.rows, of.entropy().ok_or(ONE_EXPERT));
    sink.value(
        &m::BALANCE_LOSS,
        labels,
        of.rows,
        of.balance_loss().ok_or(NO_PROBABILITIES),
    );
    let dropped = of.dropped.map(|dropped| dropped / of.slots);
    sink.value(&m::DROPPED, labels, of.rows, dropped.ok_or(NO_DROPS));
    for (stat, value) in [("mean", vio.mean), ("max", vio.mean.map(|_| vio.max))] {
        let labels = [labels, &[("stat", stat)]].concat();
        sink.value(
            &m::MAX_VIO_BATCH,
            &labels,
            vio.steps,
            value.ok_or(NO_COMPLETE_STEP),
        );
    }
}
