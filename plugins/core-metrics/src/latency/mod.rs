//! How long things take: steps, operators, requests and tokens.

mod metrics;
mod ops;
mod requests;

use lm_bench_plugin::kinds::{op, phase, request, request_phase, step, token};
use lm_bench_plugin::{
    Batch, Collector, Cx, Fault, Info, MetricDef, Resolved, RunInfo, Sink, Subscription, columns,
};

use crate::durations::{Durations, MS};
use ops::Ops;
use requests::{Change, Gaps, Requests};

/// Configuration.
#[derive(Clone, Copy, Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Whether operators are timed; this has them instrumented in sampled steps.
    pub ops: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { ops: true }
    }
}

columns! {
    struct Step of step {
        phase: u8,
        batch: u32,
        tokens: u32,
        host_ns: u64,
    }
}

columns! {
    struct Request of request {
        t_ns: u64,
        id: u64,
        phase: u8,
        output_tokens: u32,
    }
}

columns! {
    struct Token of token {
        t_ns: u64,
        request: u64,
        chunk: u32,
    }
}

columns! {
    struct Op of op {
        phase: u8,
        op: u8,
        device_ns: u64,
    }
}

/// The collector.
pub struct Latency {
    step: Step,
    request: Request,
    token: Token,
    op: Option<Op>,
    prefill: Durations,
    decode: Durations,
    decode_step: Durations,
    mixed: Durations,
    ops: Ops,
    requests: Requests,
    gaps: Gaps,
}

impl Collector for Latency {
    const INFO: Info = Info {
        id: "latency",
        version: env!("CARGO_PKG_VERSION"),
        about: "How long prefill, decode, operators and requests take",
        license: "MIT OR Apache-2.0",
    };
    const METRICS: &'static [MetricDef] = metrics::ALL;
    type Config = Config;

    fn subscribe(config: &Config, _: &RunInfo) -> Result<Subscription, Fault> {
        let mut wants = vec![Step::want(), Request::want(), Token::want()];
        if config.ops {
            wants.push(Op::want());
        }
        Ok(Subscription::new(wants))
    }

    fn new(config: Config, _: &RunInfo, resolved: &Resolved) -> Result<Self, Fault> {
        Ok(Self {
            step: Step::resolve(resolved)?,
            request: Request::resolve(resolved)?,
            token: Token::resolve(resolved)?,
            op: config.ops.then(|| Op::resolve(resolved)).transpose()?,
            prefill: Durations::default(),
            decode: Durations::default(),
            decode_step: Durations::default(),
            mixed: Durations::default(),
            ops: Ops::default(),
            requests: Requests::default(),
            gaps: Gaps::default(),
        })
    }

    fn on_batch(&mut self, batch: &Batch<'_>, _: &mut Cx<'_>) -> Result<(), Fault> {
        if batch.kind == self.step.kind {
            self.steps(batch);
        } else if batch.kind == self.request.kind {
            self.requests(batch)?;
        } else if batch.kind == self.token.kind {
            let (t_ns, request) = (batch.get(self.token.t_ns), batch.get(self.token.request));
            let chunk = batch.get(self.token.chunk);
            for row in 0..batch.len() {
                self.gaps.add(request[row], chunk[row], t_ns[row])?;
            }
        } else if let Some(op) = self.op.as_ref().filter(|op| op.kind == batch.kind) {
            let (phase, code) = (batch.get(op.phase), batch.get(op.op));
            let device_ns = batch.get(op.device_ns);
            for row in 0..batch.len() {
                self.ops
                    .add(phase[row], code[row], (device_ns[row], batch.weight));
            }
        }
        Ok(())
    }

    fn checkpoint(&mut self, sink: &mut Sink<'_>) -> Result<(), Fault> {
        self.prefill
            .report((&metrics::PREFILL, MS), &[], "no prefill step was recorded", sink);
        let no_decode = "no decode step was recorded";
        self.decode.report((&metrics::DECODE, MS), &[], no_decode, sink);
        self.decode_step
            .report((&metrics::DECODE_STEP, MS), &[], no_decode, sink);
        self.mixed
            .report((&metrics::MIXED, MS), &[], "no mixed step was recorded", sink);
        if self.op.is_some() {
            self.ops.report(sink);
        }
        let (requests, none) = (&self.requests, "no finished request was recorded");
        for (metric, of) in [(&metrics::TTFT, &requests.ttft), (&metrics::E2E, &requests.e2e)] {
            of.due.report((metric, MS), &[("from", "due")], none, sink);
            of.sent.report((metric, MS), &[("from", "sent")], none, sink);
        }
        let none = "no finished request with more than one output token was recorded";
        requests.tpot.report((&metrics::TPOT, MS), &[], none, sink);
        self.gaps.gaps.report(
            (&metrics::ITL, MS),
            &[],
            "no two successive chunks were recorded",
            sink,
        );
        Ok(())
    }
}

impl Latency {
    fn steps(&mut self, batch: &Batch<'_>) {
        let (phase, host_ns) = (batch.get(self.step.phase), batch.get(self.step.host_ns));
        let (sequences, tokens) = (batch.get(self.step.batch), batch.get(self.step.tokens));
        for row in 0..batch.len() {
            match phase[row] {
                phase::PREFILL => self.prefill.record(host_ns[row]),
                phase::DECODE => {
                    self.decode_step.record(host_ns[row]);
                    if tokens[row] > 0 {
                        let ns = u128::from(host_ns[row]) * u128::from(sequences[row]);
                        let ns = ns / u128::from(tokens[row]);
                        self.decode.record(u64::try_from(ns).unwrap_or(u64::MAX));
                    }
                }
                phase::MIXED => self.mixed.record(host_ns[row]),
                _ => {}
            }
        }
    }

    fn requests(&mut self, batch: &Batch<'_>) -> Result<(), Fault> {
        let (t_ns, id) = (batch.get(self.request.t_ns), batch.get(self.request.id));
        let phase = batch.get(self.request.phase);
        let output_tokens = batch.get(self.request.output_tokens);
        for row in 0..batch.len() {
            self.requests.add(&Change {
                id: id[row],
                phase: phase[row],
                t_ns: t_ns[row],
                output_tokens: output_tokens[row],
            })?;
            if matches!(
                phase[row],
                request_phase::FINISHED | request_phase::FAILED | request_phase::CANCELLED
            ) {
                self.gaps.end(id[row]);
            }
        }
        Ok(())
    }
}

lm_bench_plugin::export_builtin!(Latency);

#[cfg(test)]
mod tests;
