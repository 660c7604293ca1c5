//! How well attention uses the device: achieved rates from shape and time, utilisation against named peaks, and what
//! hardware counters say where there are any.

mod calls;
mod counters;
mod metrics;
mod report;

use lm_bench_plugin::kinds::{attention, counter};
use lm_bench_plugin::{
    Batch, Collector, Cx, Fault, Info, MetricDef, Peak, PhaseLayers, Resolved, RunInfo, Sink, Subscription,
    Sym, Symbols, columns,
};

use calls::{Call, Calls, Roof};
use counters::Counters;

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
#[derive(Clone, Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How finely results are reported.
    pub detail: Detail,
    /// Whether hardware counters are asked for; there are none on a CPU.
    pub counters: bool,
    /// Parts of the names of attention kernels, in any case: counters of other kernels are passed over.
    pub kernels: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        let kernels = ["attention", "attn", "flash", "fmha"];
        Self {
            detail: Detail::default(),
            counters: true,
            kernels: kernels.map(str::to_owned).to_vec(),
        }
    }
}

columns! {
    struct CallColumns of attention {
        phase: u8,
        layer: u16,
        flops: f64,
        bytes: f64,
        device_ns: u64,
    } optional {
        smem_bytes: u64,
        dram_bytes: u64,
    }
}

columns! {
    struct CounterColumns of counter {
        kernel: Sym,
        launch: u64,
        metric: Sym,
        value: f64,
    }
}

/// The collector.
pub struct AttentionEfficiency {
    config: Config,
    on_cpu: bool,
    peak_flops: Option<Peak>,
    peak_bytes: Option<Peak>,
    roof: Option<Roof>,
    call_columns: CallColumns,
    counter_columns: Option<CounterColumns>,
    symbols: Symbols,
    calls: PhaseLayers<Calls>,
    counters: Counters,
}

fn on_cpu(run: &RunInfo) -> bool {
    run.device.starts_with("cpu")
}

impl Collector for AttentionEfficiency {
    const INFO: Info = Info {
        id: "attention-efficiency",
        version: env!("CARGO_PKG_VERSION"),
        about: "Achieved rates of attention, utilisation against the device's peaks, and hardware counters",
        license: "MIT OR Apache-2.0",
    };
    const METRICS: &'static [MetricDef] = metrics::ALL;
    type Config = Config;

    fn subscribe(config: &Config, run: &RunInfo) -> Result<Subscription, Fault> {
        let mut wants = vec![CallColumns::want()];
        if config.counters && !on_cpu(run) {
            wants.push(CounterColumns::want());
        }
        Ok(Subscription::new(wants))
    }

    fn new(mut config: Config, run: &RunInfo, resolved: &Resolved) -> Result<Self, Fault> {
        for part in &mut config.kernels {
            part.make_ascii_lowercase();
        }
        let counted = config.counters && !on_cpu(run);
        let (peak_flops, peak_bytes) = (run.peak("flops").cloned(), run.peak("bytes").cloned());
        let roof = peak_flops.as_ref().zip(peak_bytes.as_ref());
        Ok(Self {
            on_cpu: on_cpu(run),
            roof: roof.map(|(flops, bytes)| Roof {
                flops: flops.per_second,
                bytes: bytes.per_second,
            }),
            peak_flops,
            peak_bytes,
            call_columns: CallColumns::resolve(resolved)?,
            counter_columns: counted.then(|| CounterColumns::resolve(resolved)).transpose()?,
            symbols: Symbols::default(),
            calls: PhaseLayers::default(),
            counters: Counters::default(),
            config,
        })
    }

    fn on_batch(&mut self, batch: &Batch<'_>, cx: &mut Cx<'_>) -> Result<(), Fault> {
        if batch.kind == self.call_columns.kind {
            self.add_calls(batch)
        } else if self
            .counter_columns
            .as_ref()
            .is_some_and(|columns| columns.kind == batch.kind)
        {
            self.add_counters(batch, cx)
        } else {
            Ok(())
        }
    }

    fn checkpoint(&mut self, sink: &mut Sink<'_>) -> Result<(), Fault> {
        report::report(self, sink);
        Ok(())
    }
}

impl AttentionEfficiency {
    fn add_calls(&mut self, batch: &Batch<'_>) -> Result<(), Fault> {
        let c = &self.call_columns;
        let (phase, layer) = (batch.get(c.phase), batch.get(c.layer));
        let (flops, bytes, device_ns) = (batch.get(c.flops), batch.get(c.bytes), batch.get(c.device_ns));
        let smem_bytes = c.smem_bytes.map(|column| batch.get(column));
        let dram_bytes = c.dram_bytes.map(|column| batch.get(column));
        for row in 0..batch.len() {
            if flops[row] < 0.0 || bytes[row] < 0.0 {
                let text = format!("attention row of layer {}: negative flops or bytes", layer[row]);
                return Err(Fault::data(text));
            }
            let call = Call {
                weight: batch.weight,
                flops: flops[row],
                bytes: bytes[row],
                device_ns: device_ns[row],
                smem_bytes: smem_bytes.map_or(0, |column| column[row]),
                dram_bytes: dram_bytes.map_or(0, |column| column[row]),
            };
            self.calls
                .entry(phase[row], layer[row], Calls::default)
                .add(&call, self.roof);
        }
        Ok(())
    }

    fn add_counters(&mut self, batch: &Batch<'_>, cx: &mut Cx<'_>) -> Result<(), Fault> {
        let Some(c) = &self.counter_columns else {
            return Ok(());
        };
        let (kernel, launch) = (batch.get(c.kernel), batch.get(c.launch));
        let (metric, value) = (batch.get(c.metric), batch.get(c.value));
        for row in 0..batch.len() {
            let name = self.symbols.text(kernel[row], cx)?.to_ascii_lowercase();
            if !self
                .config
                .kernels
                .iter()
                .any(|part| name.contains(part.as_str()))
            {
                continue;
            }
            let metric = self.symbols.text(metric[row], cx)?;
            self.counters
                .add((&name, launch[row]), (metric, value[row]), batch.weight);
        }
        Ok(())
    }
}

lm_bench_plugin::export!(AttentionEfficiency);

#[cfg(test)]
mod tests;
