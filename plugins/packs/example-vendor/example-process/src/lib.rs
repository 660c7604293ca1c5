//! What the samples of `example-process-probe` amount to.

use lm_bench_plugin::{
    Batch, Col, Collector, Column, Cx, Direction, Fault, Info, MetricDef, Resolved, RunInfo, Sink, Subscription, Want,
};

const KIND: &str = "vendor.example.process";
const T_NS: Column<u64> = Column::new(KIND, "t_ns");
const CPU_NS: Column<u64> = Column::new(KIND, "cpu_ns");
const THREADS: Column<u32> = Column::new(KIND, "threads");

const SAMPLES: MetricDef = MetricDef::counter("process_samples")
    .formula("number of rows of vendor.example.process")
    .about("Samples of the process.");
const CORES: MetricDef = MetricDef::gauge("process_cores", "1")
    .better(Direction::Lower)
    .formula("(last cpu_ns - first cpu_ns) / (last t_ns - first t_ns)")
    .about("Cores in use on average between the first sample and the last one.");
const MOST_THREADS: MetricDef = MetricDef::gauge("process_threads_max", "1")
    .formula("max(threads)")
    .about("Most threads at once in a sample.");

/// There is nothing to set.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

/// The collector.
#[derive(Debug)]
pub struct ProcessMetrics {
    columns: Option<(Col<u64>, Col<u64>, Col<u32>)>,
    samples: u64,
    first: Option<(u64, u64)>,
    last: (u64, u64),
    most_threads: u32,
}

impl Collector for ProcessMetrics {
    const INFO: Info = Info {
        id: env!("CARGO_PKG_NAME"),
        version: env!("CARGO_PKG_VERSION"),
        about: env!("CARGO_PKG_DESCRIPTION"),
        license: env!("CARGO_PKG_LICENSE"),
    };
    const METRICS: &'static [MetricDef] = &[SAMPLES, CORES, MOST_THREADS];
    type Config = Config;

    fn subscribe(_: &Config, _: &RunInfo) -> Result<Subscription, Fault> {
        let want = Want::kind(KIND).column(T_NS).column(CPU_NS).column(THREADS);
        Ok(Subscription::new([want]))
    }

    fn new(_: Config, _: &RunInfo, resolved: &Resolved) -> Result<Self, Fault> {
        let kind = resolved.kind(KIND)?;
        // A run without the probe has none of them.
        let columns = match (kind.optional(T_NS), kind.optional(CPU_NS), kind.optional(THREADS)) {
            (Some(t_ns), Some(cpu_ns), Some(threads)) => Some((t_ns, cpu_ns, threads)),
            _ => None,
        };
        Ok(Self { columns, samples: 0, first: None, last: (0, 0), most_threads: 0 })
    }

    fn on_batch(&mut self, batch: &Batch<'_>, _: &mut Cx<'_>) -> Result<(), Fault> {
        let Some((t_ns, cpu_ns, threads)) = self.columns else {
            return Ok(());
        };
        for (&t_ns, &cpu_ns) in batch.get(t_ns).iter().zip(batch.get(cpu_ns)) {
            self.first.get_or_insert((t_ns, cpu_ns));
            self.last = (t_ns, cpu_ns);
            self.samples += 1;
        }
        let most = batch.get(threads).iter().copied().max().unwrap_or(0);
        self.most_threads = self.most_threads.max(most);
        Ok(())
    }

    fn checkpoint(&mut self, sink: &mut Sink<'_>) -> Result<(), Fault> {
        if self.columns.is_none() {
            let reason = "the probe example-process-probe did not run";
            for metric in Self::METRICS {
                sink.unavailable(metric, &[], reason);
            }
            return Ok(());
        }
        sink.counter(&SAMPLES, &[], self.samples);
        let Some((first_t, first_cpu)) = self.first else {
            return Ok(());
        };
        sink.gauge(&MOST_THREADS, &[], self.samples, f64::from(self.most_threads));
        let (last_t, last_cpu) = self.last;
        let (time, cpu) = (last_t.saturating_sub(first_t), last_cpu.saturating_sub(first_cpu));
        if time == 0 {
            sink.unavailable(&CORES, &[], "there is one sample only");
        } else {
            sink.gauge(&CORES, &[], self.samples, cpu as f64 / time as f64);
        }
        Ok(())
    }
}

lm_bench_plugin::export!(ProcessMetrics);
