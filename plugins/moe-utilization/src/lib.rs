//! How evenly a mixture of experts uses its experts, from the router's decisions (`moe_route`).
//!
//! Prefill and decode are kept apart, and a maximum is taken within a layer before anything is combined over layers:
//! an average over layers would hide the one layer whose hot expert stalls the others.

mod counts;
mod layer;
mod metrics;
mod overall;
mod report;
mod steps;

use lm_bench_plugin::kinds::moe_route;
use lm_bench_plugin::{
    Batch, Collector, Cx, Fault, Info, List, MetricDef, PhaseLayers, Resolved, RunInfo, Sink, Subscription,
    columns,
};

use layer::{LayerLoad, Routed};
use steps::StepMaxima;

/// How finely results are reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Detail {
    /// Only figures over all layers.
    Overall,
    /// Each layer too.
    #[default]
    Layer,
}

/// Configuration.
#[derive(Clone, Copy, Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How finely results are reported.
    pub detail: Detail,
    /// Whether the load share of each expert is listed.
    pub per_expert: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            detail: Detail::default(),
            per_expert: true,
        }
    }
}

columns! {
    struct Columns of moe_route {
        step: u64,
        phase: u8,
        layer: u16,
        tokens: u32,
        top_k: u32,
        counts: List<u32>,
    } optional {
        prob_sum: List<f32>,
        dropped: u32,
    }
}

/// The collector.
pub struct MoeUtilization {
    config: Config,
    model_experts: u32,
    columns: Columns,
    layers: PhaseLayers<LayerLoad>,
    steps: StepMaxima,
}

impl Collector for MoeUtilization {
    const INFO: Info = Info {
        id: "moe-utilization",
        version: env!("CARGO_PKG_VERSION"),
        about: "How evenly a mixture of experts uses its experts, per layer and phase",
        license: "MIT OR Apache-2.0",
    };
    const METRICS: &'static [MetricDef] = metrics::ALL;
    type Config = Config;

    fn subscribe(_: &Config, _: &RunInfo) -> Result<Subscription, Fault> {
        Ok(Subscription::new([Columns::want()]))
    }

    fn new(config: Config, run: &RunInfo, resolved: &Resolved) -> Result<Self, Fault> {
        Ok(Self {
            config,
            model_experts: run.model.experts,
            columns: Columns::resolve(resolved)?,
            layers: PhaseLayers::default(),
            steps: StepMaxima::default(),
        })
    }

    fn on_batch(&mut self, batch: &Batch<'_>, _: &mut Cx<'_>) -> Result<(), Fault> {
        if batch.kind != self.columns.kind {
            return Ok(());
        }
        let (step, phase) = (batch.get(self.columns.step), batch.get(self.columns.phase));
        let (layer, tokens) = (batch.get(self.columns.layer), batch.get(self.columns.tokens));
        let (top_k, counts) = (batch.get(self.columns.top_k), batch.get(self.columns.counts));
        let prob_sum = self.columns.prob_sum.map(|column| batch.get(column));
        let dropped = self.columns.dropped.map(|column| batch.get(column));
        for row in 0..batch.len() {
            let routed = Routed {
                weight: batch.weight,
                tokens: tokens[row],
                top_k: top_k[row],
                counts: counts.row(row),
                prob_sum: prob_sum.map(|lists| lists.row(row)),
                dropped: dropped.map(|column| column[row]),
            };
            let load = self
                .layers
                .entry(phase[row], layer[row], || LayerLoad::new(counts.width()));
            let max_vio = load
                .add(&routed)
                .map_err(|fault| place(&fault, step[row], layer[row]))?;
            if let Some(max_vio) = max_vio {
                self.steps.add((step[row], phase[row]), batch.weight, max_vio);
            }
        }
        Ok(())
    }

    fn on_loss(&mut self, _: u16, _: u64) {
        self.steps.rows_were_lost();
    }

    fn checkpoint(&mut self, sink: &mut Sink<'_>) -> Result<(), Fault> {
        report::report(self, sink);
        Ok(())
    }
}

/// Says in which row a contradiction stands.
fn place(fault: &Fault, step: u64, layer: u16) -> Fault {
    Fault::data(format!(
        "moe_route row of step {step}, layer {layer}: {}",
        fault.message
    ))
}

lm_bench_plugin::export!(MoeUtilization);

#[cfg(test)]
mod tests;
