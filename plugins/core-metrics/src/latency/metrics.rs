//! Declarations.

use lm_bench_plugin::{Direction, MetricDef};

const fn duration(name: &'static str, unit: &'static str) -> MetricDef {
    MetricDef::distribution(name, unit).better(Direction::Lower)
}

pub(crate) const PREFILL: MetricDef = duration("prefill_latency_ms", "ms")
    .formula("step.host_ns / 1e6 of each step with phase prefill")
    .about("Time of the forward passes that compute prompt tokens, for the whole batch.");

pub(crate) const DECODE: MetricDef = duration("decode_latency_per_token_ms", "ms")
    .formula("step.host_ns * step.batch / step.tokens / 1e6 of each step with phase decode and tokens > 0")
    .about(
        "Time that one sequence waits for its next token while decoding: the time of the step, as each sequence of \
         the batch gets one token per step.",
    );

pub(crate) const DECODE_STEP: MetricDef = duration("decode_step_latency_ms", "ms")
    .formula("step.host_ns / 1e6 of each step with phase decode")
    .about("Time of the forward passes that decode; equals the latency per token unless a step gives a sequence more than one.");

pub(crate) const MIXED: MetricDef = duration("mixed_step_latency_ms", "ms")
    .formula("step.host_ns / 1e6 of each step with phase mixed")
    .about("Time of the forward passes that hold prompt chunks and generated tokens.");

pub(crate) const OP: MetricDef = duration("op_latency_us", "us")
    .labels(&["op", "phase"])
    .formula("op.device_ns / 1e3 of each delivered row")
    .about("Time of one call of an operator; sampled steps only.");

pub(crate) const OP_SHARE: MetricDef = MetricDef::gauge("op_time_share", "1")
    .labels(&["op", "phase"])
    .formula("sum of weight * op.device_ns of the operator / that sum over all operators of the phase")
    .about("Share of the instrumented time that an operator takes.");

pub(crate) const TTFT: MetricDef = duration("ttft_ms", "ms")
    .labels(&["from"])
    .formula(
        "(t_ns of first token - t_ns of due or sent) / 1e6 of each finished request; label from says which",
    )
    .about(
        "Time to first token; from=due includes the wait before sending and is free of coordinated omission.",
    );

pub(crate) const E2E: MetricDef = duration("e2e_latency_ms", "ms")
    .labels(&["from"])
    .formula(
        "(t_ns of last content - t_ns of due or sent) / 1e6 of each finished request; label from says which",
    )
    .about("Time to the last token of a request.");

pub(crate) const TPOT: MetricDef = duration("tpot_ms", "ms")
    .formula(
        "(t_ns of last content - t_ns of first token) / (output_tokens - 1) / 1e6 of each finished request with more \
         than one output token",
    )
    .about("Time per output token after the first, per request (vLLM's definition of TPOT).");

pub(crate) const ITL: MetricDef = duration("itl_ms", "ms")
    .formula("(t_ns of chunk i - t_ns of chunk i-1) / 1e6 of each two successive token rows of a request")
    .about(
        "Inter-token latency: gaps between arrivals, all requests together (vLLM's itl). A chunk of several tokens \
         counts as one arrival. A gap in which 65,536 or more other requests had chunks may be left out.",
    );

pub(crate) const ALL: &[MetricDef] = &[
    PREFILL,
    DECODE,
    DECODE_STEP,
    MIXED,
    OP,
    OP_SHARE,
    TTFT,
    E2E,
    TPOT,
    ITL,
];
