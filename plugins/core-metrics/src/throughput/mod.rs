//! How much is done per second.

use lm_bench_plugin::kinds::{phase, request, request_phase, step};
use lm_bench_plugin::{
    Batch, Collector, Cx, Direction, Fault, Info, Labels, MetricDef, Resolved, RunInfo, Sink, Subscription,
    columns,
};

use crate::NoConfig;

const NS: f64 = 1e9;

const fn rate(name: &'static str, unit: &'static str) -> MetricDef {
    MetricDef::gauge(name, unit).better(Direction::Higher)
}

const TOTAL: MetricDef = rate("tokens_computed_per_second", "{token}/s")
    .formula("sum of weight * step.tokens / ((max t_ns - min(t_ns - host_ns - measuring_ns)) / 1e9) over all steps")
    .about("Tokens computed, prompt and output together, per second of wall time from the first step's start to the last step's end.");

const TOTAL_BUSY: MetricDef = rate("tokens_computed_per_busy_second", "{token}/s")
    .formula("sum of weight * step.tokens / (sum of weight * step.host_ns / 1e9) over all steps")
    .about("Tokens computed, prompt and output together, per second spent in forward passes.");

const PREFILL: MetricDef = rate("prefill_tokens_per_second", "{token}/s")
    .formula(
        "sum of weight * step.tokens / (sum of weight * step.host_ns / 1e9) over steps with phase prefill",
    )
    .about("Prompt tokens computed per second spent in prefill steps (llama-bench's pp).");

const DECODE: MetricDef = rate("decode_tokens_per_second", "{token}/s")
    .formula(
        "sum of weight * step.tokens / (sum of weight * step.host_ns / 1e9) over steps with phase decode",
    )
    .about("Output tokens computed per second spent in decode steps (llama-bench's tg).");

const PREFILL_WALL: MetricDef = rate("prefill_tokens_per_wall_second", "{token}/s")
    .formula("sum of weight * step.tokens over steps with phase prefill / the wall time of tokens_computed_per_second")
    .about("Prompt tokens of prefill steps per second of wall time.");

const DECODE_WALL: MetricDef = rate("decode_tokens_per_wall_second", "{token}/s")
    .formula(
        "sum of weight * step.tokens over steps with phase decode / the wall time of tokens_computed_per_second",
    )
    .about("Output tokens of decode steps per second of wall time.");

const BUSY: MetricDef = rate("engine_busy_ratio", "1")
    .formula("sum of weight * step.host_ns / (max t_ns - min(t_ns - host_ns - measuring_ns)) over all steps")
    .about("Share of the wall time spent in forward passes; above 1 where steps overlap.");

const REQUESTS: MetricDef = rate("requests_per_second", "{request}/s")
    .formula("requests with phase finished / ((max t_ns of finished - min t_ns of any request row) / 1e9)")
    .about(
        "Requests that ended well per second of wall time from the first request event to the last such end.",
    );

const OUTPUT: MetricDef = rate("output_tokens_per_second", "{token}/s")
    .formula("sum of request.output_tokens of finished requests / the wall time of requests_per_second")
    .about("Output tokens of requests that ended well per second of wall time.");

const STEPS: MetricDef = MetricDef::counter("steps")
    .labels(&["phase"])
    .formula("number of step rows of the phase")
    .about("Forward passes measured.");

const TOKENS: MetricDef = MetricDef::counter("tokens_computed")
    .labels(&["phase"])
    .formula("sum of step.tokens of the phase")
    .about("Tokens that the measured forward passes computed.");

columns! {
    struct StepColumns of step {
        t_ns: u64,
        phase: u8,
        tokens: u32,
        host_ns: u64,
    } optional {
        // Not in recordings whose `host_ns` holds that time too.
        measuring_ns: u64,
    }
}

columns! {
    struct RequestColumns of request {
        t_ns: u64,
        phase: u8,
        output_tokens: u32,
    }
}

/// Sums over the steps of a phase.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    steps: u64,
    tokens_seen: u64,
    tokens: f64,
    busy_ns: f64,
}

/// From the first start to the last end.
#[derive(Clone, Copy, Debug)]
struct Window {
    start: u64,
    end: u64,
}

impl Window {
    const EMPTY: Self = Self {
        start: u64::MAX,
        end: 0,
    };

    fn seconds(self) -> f64 {
        self.end.saturating_sub(self.start) as f64 / NS
    }
}

/// The collector.
pub struct Throughput {
    step: StepColumns,
    request: RequestColumns,
    /// Prefill, decode, mixed.
    work: [Work; 3],
    steps: Window,
    steps_lost: u64,
    finished: u64,
    output_tokens: u64,
    requests: Window,
    requests_lost: u64,
}

impl Collector for Throughput {
    const INFO: Info = Info {
        id: "throughput",
        version: env!("CARGO_PKG_VERSION"),
        about: "Tokens and requests per second, of wall time and of busy time",
        license: "MIT OR Apache-2.0",
    };
    const METRICS: &'static [MetricDef] = &[
        TOTAL,
        TOTAL_BUSY,
        PREFILL,
        DECODE,
        PREFILL_WALL,
        DECODE_WALL,
        BUSY,
        REQUESTS,
        OUTPUT,
        STEPS,
        TOKENS,
    ];
    type Config = NoConfig;

    fn subscribe(_: &NoConfig, _: &RunInfo) -> Result<Subscription, Fault> {
        Ok(Subscription::new([StepColumns::want(), RequestColumns::want()]))
    }

    fn new(_: NoConfig, _: &RunInfo, resolved: &Resolved) -> Result<Self, Fault> {
        Ok(Self {
            step: StepColumns::resolve(resolved)?,
            request: RequestColumns::resolve(resolved)?,
            work: [Work::default(); 3],
            steps: Window::EMPTY,
            steps_lost: 0,
            finished: 0,
            output_tokens: 0,
            requests: Window::EMPTY,
            requests_lost: 0,
        })
    }

    fn on_batch(&mut self, batch: &Batch<'_>, _: &mut Cx<'_>) -> Result<(), Fault> {
        if batch.kind == self.step.kind {
            self.steps(batch);
        } else if batch.kind == self.request.kind {
            self.requests(batch);
        }
        Ok(())
    }

    fn on_loss(&mut self, kind: u16, rows: u64) {
        if kind == self.step.kind {
            self.steps_lost += rows;
        } else {
            self.requests_lost += rows;
        }
    }

    fn checkpoint(&mut self, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let all = self.work.iter().fold(Work::default(), |sum, work| Work {
            steps: sum.steps + work.steps,
            tokens_seen: sum.tokens_seen + work.tokens_seen,
            tokens: sum.tokens + work.tokens,
            busy_ns: sum.busy_ns + work.busy_ns,
        });
        let [prefill, decode, _] = self.work;
        let wall = self.steps.seconds();
        for (metric, work) in [(&TOTAL_BUSY, all), (&PREFILL, prefill), (&DECODE, decode)] {
            sink.ratio(metric, &[], work.steps, (work.tokens, work.busy_ns / NS));
        }
        for (metric, steps, amount) in [
            (&TOTAL, all.steps, all.tokens),
            (&PREFILL_WALL, prefill.steps, prefill.tokens),
            (&DECODE_WALL, decode.steps, decode.tokens),
            (&BUSY, all.steps, all.busy_ns / NS),
        ] {
            whole(sink, metric, steps, (amount, wall), self.steps_lost);
        }
        for (phase, work) in (0..).zip(&self.work).filter(|(_, work)| work.steps > 0) {
            let labels: Labels<'_> = &[("phase", phase::name(phase))];
            sink.counter(&STEPS, labels, work.steps);
            sink.counter(&TOKENS, labels, work.tokens_seen);
        }
        let wall = self.requests.seconds();
        for (metric, amount) in [(&REQUESTS, self.finished), (&OUTPUT, self.output_tokens)] {
            if self.finished == 0 {
                sink.unavailable(metric, &[], "no finished request was recorded");
            } else {
                whole(
                    sink,
                    metric,
                    self.finished,
                    (amount as f64, wall),
                    self.requests_lost,
                );
            }
        }
        Ok(())
    }
}

/// Reports an amount per wall time, which needs each row: lost ones would lower it unseen.
fn whole(sink: &mut Sink<'_>, metric: &MetricDef, samples: u64, parts: (f64, f64), lost: u64) {
    if lost > 0 {
        let reason = format!("{lost} rows were lost, so the amount in the wall time is not known");
        sink.unavailable(metric, &[], &reason);
    } else {
        sink.ratio(metric, &[], samples, parts);
    }
}

impl Throughput {
    fn steps(&mut self, batch: &Batch<'_>) {
        let (t_ns, host_ns) = (batch.get(self.step.t_ns), batch.get(self.step.host_ns));
        let (phase, tokens) = (batch.get(self.step.phase), batch.get(self.step.tokens));
        let measuring_ns = self.step.measuring_ns.map(|column| batch.get(column));
        for row in 0..batch.len() {
            let Some(work) = self.work.get_mut(usize::from(phase[row])) else {
                continue;
            };
            work.steps += 1;
            work.tokens_seen += u64::from(tokens[row]);
            work.tokens += batch.weight * f64::from(tokens[row]);
            work.busy_ns += batch.weight * host_ns[row] as f64;
            let took = host_ns[row].saturating_add(measuring_ns.map_or(0, |column| column[row]));
            self.steps.start = self.steps.start.min(t_ns[row].saturating_sub(took));
            self.steps.end = self.steps.end.max(t_ns[row]);
        }
    }

    fn requests(&mut self, batch: &Batch<'_>) {
        let (t_ns, phase) = (batch.get(self.request.t_ns), batch.get(self.request.phase));
        let output_tokens = batch.get(self.request.output_tokens);
        for row in 0..batch.len() {
            self.requests.start = self.requests.start.min(t_ns[row]);
            if phase[row] == request_phase::FINISHED {
                self.finished += 1;
                self.output_tokens += u64::from(output_tokens[row]);
                self.requests.end = self.requests.end.max(t_ns[row]);
            }
        }
    }
}

lm_bench_plugin::export_builtin!(Throughput);

#[cfg(test)]
mod tests;
