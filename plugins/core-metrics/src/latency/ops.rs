//! Time per operator and phase.

use std::collections::BTreeMap;

use lm_bench_plugin::Sink;
use lm_bench_plugin::kinds::{op_code, phase};

use super::metrics;
use crate::durations::{Durations, US};

#[derive(Clone, Debug, Default)]
struct Op {
    durations: Durations,
    rows: u64,
    weighted_ns: f64,
}

/// Keyed by phase, then operator.
#[derive(Clone, Debug, Default)]
pub(super) struct Ops(BTreeMap<(u8, u8), Op>);

impl Ops {
    pub(super) fn add(&mut self, phase: u8, op: u8, (device_ns, weight): (u64, f64)) {
        let op = self.0.entry((phase, op)).or_default();
        op.durations.record(device_ns);
        op.rows += 1;
        op.weighted_ns += weight * device_ns as f64;
    }

    pub(super) fn report(&self, sink: &mut Sink<'_>) {
        if self.0.is_empty() {
            let reason = "no operator was instrumented: use --instrument ops";
            sink.unavailable(&metrics::OP, &[], reason);
            sink.unavailable(&metrics::OP_SHARE, &[], reason);
        }
        for (&(phase, code), op) in &self.0 {
            let labels = [("op", op_code::name(code)), ("phase", phase::name(phase))];
            op.durations.report((&metrics::OP, US), &labels, "no call", sink);
            let same_phase = self.0.range((phase, 0)..=(phase, u8::MAX));
            let total: f64 = same_phase.map(|(_, op)| op.weighted_ns).sum();
            sink.ratio(&metrics::OP_SHARE, &labels, op.rows, (op.weighted_ns, total));
        }
    }
}
