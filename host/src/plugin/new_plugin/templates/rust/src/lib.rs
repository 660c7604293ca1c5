//! How many steps of the engine were slow, by phase. An example to change: each part that a collector has is here once.

use lm_bench_plugin::kinds::{phase, step};
use lm_bench_plugin::math::{Sum, exp, log};
use lm_bench_plugin::{
    Batch, Col, Collector, Cx, Direction, Fault, Info, MetricDef, Resolved, RunInfo, Sink, Subscription, Want,
};

const SLOW_STEPS: MetricDef = MetricDef::counter("slow_steps")
    .better(Direction::Lower)
    .formula("number of steps with host_ns > slow_ms * 1e6")
    .about("Steps that were slower than the limit.")
    .labels(&["phase"]);
const SLOW_STEP_RATIO: MetricDef = MetricDef::gauge("slow_step_ratio", "1")
    .better(Direction::Lower)
    .formula("sum of weight over steps with host_ns > slow_ms * 1e6 / sum of weight")
    .about("Share of steps that were slower than the limit.")
    .labels(&["phase"]);
const STEP_TIME_GEOMEAN: MetricDef = MetricDef::gauge("step_time_geomean_ms", "ms")
    .better(Direction::Lower)
    .formula("exp(sum(weight * log(host_ns / 1e6)) / sum(weight))")
    .about("Geometric mean of the time of a step.")
    .labels(&["phase"]);

/// What a user may set, with `--plugin-config ID.slow_ms=20`.
#[derive(Clone, Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Steps that take longer, in milliseconds, are slow.
    pub slow_ms: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { slow_ms: 50.0 }
    }
}

/// The known phases, and one place for all that a later version of lm-bench may have.
const PHASES: usize = 5;

/// What is known of the steps of one phase.
#[derive(Clone, Debug, Default)]
struct Phase {
    steps: u64,
    slow_steps: u64,
    weight: f64,
    slow_weight: f64,
    logs: Sum,
}

/// The collector.
#[derive(Debug)]
pub struct SlowSteps {
    slow_ms: f64,
    phase: Col<u8>,
    host_ns: Col<u64>,
    lost: u64,
    phases: [Phase; PHASES],
}

impl Collector for SlowSteps {
    const INFO: Info = Info {
        id: env!("CARGO_PKG_NAME"),
        version: env!("CARGO_PKG_VERSION"),
        about: env!("CARGO_PKG_DESCRIPTION"),
        license: env!("CARGO_PKG_LICENSE"),
    };
    const METRICS: &'static [MetricDef] = &[SLOW_STEPS, SLOW_STEP_RATIO, STEP_TIME_GEOMEAN];
    type Config = Config;

    fn subscribe(config: &Config, _run: &RunInfo) -> Result<Subscription, Fault> {
        if config.slow_ms <= 0.0 {
            return Err(Fault::config("slow_ms must be above 0"));
        }
        Ok(Subscription::new([Want::kind(step::KIND)
            .column(step::COLUMNS.phase)
            .column(step::COLUMNS.host_ns)]))
    }

    fn new(config: Config, _run: &RunInfo, resolved: &Resolved) -> Result<Self, Fault> {
        let kind = resolved.kind(step::KIND)?;
        Ok(Self {
            slow_ms: config.slow_ms,
            phase: kind.column(step::COLUMNS.phase)?,
            host_ns: kind.column(step::COLUMNS.host_ns)?,
            lost: 0,
            phases: Default::default(),
        })
    }

    fn on_batch(&mut self, batch: &Batch<'_>, _cx: &mut Cx<'_>) -> Result<(), Fault> {
        for (&code, &host_ns) in batch.get(self.phase).iter().zip(batch.get(self.host_ns)) {
            let phase = &mut self.phases[usize::from(code).min(PHASES - 1)];
            let ms = host_ns as f64 / 1e6;
            phase.steps += 1;
            phase.weight += batch.weight;
            // From the SDK: `f64::ln` differs in the last bit from one platform to the next.
            phase.logs.add(batch.weight * log(ms));
            if ms > self.slow_ms {
                phase.slow_steps += 1;
                phase.slow_weight += batch.weight;
            }
        }
        Ok(())
    }

    fn on_loss(&mut self, _kind: u16, rows: u64) {
        self.lost += rows;
    }

    fn checkpoint(&mut self, sink: &mut Sink<'_>) -> Result<(), Fault> {
        for (code, phase) in self.phases.iter().enumerate() {
            if phase.steps == 0 {
                continue;
            }
            let labels = [("phase", phase::name(code as u8))];
            // A share of the rows that were seen is still a share; a count is not.
            if self.lost > 0 {
                let reason = format!("{} steps were lost, so they cannot be counted", self.lost);
                sink.unavailable(&SLOW_STEPS, &labels, &reason);
            } else {
                sink.counter(&SLOW_STEPS, &labels, phase.slow_steps);
            }
            sink.ratio(
                &SLOW_STEP_RATIO,
                &labels,
                phase.steps,
                (phase.slow_weight, phase.weight),
            );
            let mean = exp(phase.logs.value() / phase.weight);
            sink.gauge(&STEP_TIME_GEOMEAN, &labels, phase.steps, mean);
        }
        Ok(())
    }
}

lm_bench_plugin::export!(SlowSteps);

#[cfg(test)]
mod tests {
    use lm_bench_plugin::testing::CollectorTest;

    use super::*;

    fn decode(milliseconds: u64) -> step::Row<'static> {
        step::Row {
            phase: phase::DECODE,
            host_ns: milliseconds * 1_000_000,
            ..step::Row::default()
        }
    }

    #[test]
    fn one_of_three_steps_is_slow() {
        let mut test = CollectorTest::<SlowSteps>::new().config(r#"{"slow_ms": 20}"#);
        for milliseconds in [2, 4, 27] {
            test.row(&decode(milliseconds));
        }
        let metrics = test.metrics();
        let labels = [("phase", "decode")];
        metrics.assert("slow_steps", &labels, 1.0);
        metrics.assert("slow_step_ratio", &labels, 1.0 / 3.0);
        // The cube root of 2 * 4 * 27 = 6^3.
        metrics.assert("step_time_geomean_ms", &labels, 6.0);
    }

    #[test]
    fn a_limit_must_be_above_0() {
        let failed = CollectorTest::<SlowSteps>::new()
            .config(r#"{"slow_ms": 0}"#)
            .run();
        assert!(failed.expect_err("refused").to_string().contains("above 0"));
    }
}
