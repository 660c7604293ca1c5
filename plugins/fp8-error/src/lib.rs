//! What FP8 quantisation does to weights and activations, from `quant` events.
//!
//! Weights (`phase=load`) and activations are never mixed, nor are formats or granularities.

mod metrics;
mod range;
mod report;
mod totals;

use std::collections::BTreeMap;

use lm_bench_plugin::kinds::quant;
use lm_bench_plugin::{
    Batch, Collector, Cx, Fault, Info, MetricDef, Resolved, RunInfo, Sink, Subscription, Sym, Symbols,
    columns,
};

use range::Range;
use totals::{Quantised, Totals};

/// How finely results are reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Detail {
    /// Only figures over all tensors.
    Overall,
    /// Each layer too.
    #[default]
    Layer,
    /// Each tensor instead of each layer, with fewer metrics.
    Tensor,
}

/// Configuration.
#[derive(Clone, Copy, Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How finely results are reported.
    pub detail: Detail,
    /// Steps of a tensor that the spread of its range and the least headroom look back on. 1024 is the default
    /// length of the history of delayed scaling in Transformer Engine.
    #[schemars(range(min = 1, max = 65536))]
    pub window: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            detail: Detail::default(),
            window: 1024,
        }
    }
}

columns! {
    struct Columns of quant {
        step: u64,
        phase: u8,
        layer: u16,
        tensor: Sym,
        format: Sym,
        granularity: Sym,
        n: u64,
        amax: f32,
        scale: f32,
        sum_sq_ref: f64,
        sum_sq_err: f64,
        sqnr_channel_p50: f32,
        max_abs_err: f32,
        saturated: u64,
        underflow: u64,
        nonfinite: u64,
    }
}

/// Numbers texts in the order of their first appearance, which is the same live and in a replay; symbol ids are not.
#[derive(Default)]
struct Texts(Vec<String>);

impl Texts {
    fn number(&mut self, text: &str) -> usize {
        let known = self.0.iter().position(|have| have == text);
        known.unwrap_or_else(|| {
            self.0.push(text.to_owned());
            self.0.len() - 1
        })
    }
}

/// What is never mixed: format, granularity and phase.
type Class = (usize, usize, u8);

/// A tensor of a class: layer and name.
type Place = (u16, usize);

/// What is kept for a tensor.
struct Tensor {
    range: Range,
    totals: Totals,
}

/// What is kept for a class.
#[derive(Default)]
struct Group {
    totals: Totals,
    layers: BTreeMap<u16, Totals>,
    tensors: BTreeMap<Place, Tensor>,
}

/// The collector.
pub struct Fp8Error {
    config: Config,
    columns: Columns,
    symbols: Symbols,
    texts: Texts,
    groups: BTreeMap<Class, Group>,
}

impl Collector for Fp8Error {
    const INFO: Info = Info {
        id: "fp8-error",
        version: env!("CARGO_PKG_VERSION"),
        about: "Error, saturation, underflow and range stability of FP8 quantisation",
        license: "MIT OR Apache-2.0",
    };
    const METRICS: &'static [MetricDef] = metrics::ALL;
    type Config = Config;

    fn subscribe(config: &Config, _: &RunInfo) -> Result<Subscription, Fault> {
        if !(1..=65536).contains(&config.window) {
            return Err(Fault::config(format!(
                "window is {}, must be 1 to 65536",
                config.window
            )));
        }
        Ok(Subscription::new([Columns::want()]))
    }

    fn new(config: Config, _: &RunInfo, resolved: &Resolved) -> Result<Self, Fault> {
        Ok(Self {
            config,
            columns: Columns::resolve(resolved)?,
            symbols: Symbols::default(),
            texts: Texts::default(),
            groups: BTreeMap::new(),
        })
    }

    fn on_batch(&mut self, batch: &Batch<'_>, cx: &mut Cx<'_>) -> Result<(), Fault> {
        if batch.kind != self.columns.kind {
            return Ok(());
        }
        for row in 0..batch.len() {
            self.row(batch, row, cx)?;
        }
        Ok(())
    }

    fn on_loss(&mut self, _: u16, _: u64) {
        let groups = self.groups.values_mut();
        let tensors = groups.flat_map(|group| group.tensors.values_mut());
        tensors.for_each(|tensor| tensor.range.rows_were_lost());
    }

    fn checkpoint(&mut self, sink: &mut Sink<'_>) -> Result<(), Fault> {
        report::report(self, sink);
        Ok(())
    }
}

impl Fp8Error {
    fn row(&mut self, batch: &Batch<'_>, row: usize, cx: &mut Cx<'_>) -> Result<(), Fault> {
        let c = &self.columns;
        let quantised = Quantised {
            weight: batch.weight,
            n: batch.get(c.n)[row],
            sum_sq_ref: batch.get(c.sum_sq_ref)[row],
            sum_sq_err: batch.get(c.sum_sq_err)[row],
            sqnr_channel_p50: batch.get(c.sqnr_channel_p50)[row],
            max_abs_err: batch.get(c.max_abs_err)[row],
            saturated: batch.get(c.saturated)[row],
            underflow: batch.get(c.underflow)[row],
            nonfinite: batch.get(c.nonfinite)[row],
        };
        let (step, layer) = (batch.get(c.step)[row], batch.get(c.layer)[row]);
        let tensor = self
            .texts
            .number(self.symbols.text(batch.get(c.tensor)[row], cx)?);
        quantised.check().map_err(|fault| {
            let name = &self.texts.0[tensor];
            Fault::data(format!(
                "quant row of step {step}, layer {layer}, {name}: {}",
                fault.message
            ))
        })?;
        let format = self
            .texts
            .number(self.symbols.text(batch.get(c.format)[row], cx)?);
        let granularity = self
            .texts
            .number(self.symbols.text(batch.get(c.granularity)[row], cx)?);
        let group = self
            .groups
            .entry((format, granularity, batch.get(c.phase)[row]))
            .or_default();
        group.totals.add(&quantised);
        let kept = group.tensors.entry((layer, tensor)).or_insert_with(|| Tensor {
            range: Range::new(range::largest(&self.texts.0[format]), self.config.window as usize),
            totals: Totals::default(),
        });
        kept.range
            .add(step, batch.get(c.amax)[row], batch.get(c.scale)[row]);
        match self.config.detail {
            Detail::Overall => {}
            Detail::Layer => group.layers.entry(layer).or_default().add(&quantised),
            Detail::Tensor => kept.totals.add(&quantised),
        }
        Ok(())
    }
}

lm_bench_plugin::export!(Fp8Error);

#[cfg(test)]
mod golden;
#[cfg(test)]
mod room_tests;
#[cfg(test)]
mod tests;
