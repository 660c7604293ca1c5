//! Rows of the event stream as an engine writes them: one function per kind, each a few loads and stores where the
//! kind is not recorded.

use lm_bench_plugin::kinds::{
    self, attention, kv_cache, moe_assign, moe_route, op, op_code, phase, quant, step,
};

use super::fp8::{Granularity, QuantError};
use crate::events::Recorder;

/// What the tokens of a step are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    Prefill = phase::PREFILL,
    Decode = phase::DECODE,
}

/// Parts of a step that are timed apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Op {
    Embed = op_code::EMBED,
    Norm = op_code::NORM,
    Qkv = op_code::QKV,
    Attention = op_code::ATTENTION,
    OProj = op_code::O_PROJ,
    Router = op_code::ROUTER,
    Experts = op_code::EXPERTS,
    Mlp = op_code::MLP,
    LmHead = op_code::LM_HEAD,
    Sample = op_code::SAMPLE,
}

/// Work of one attention call: one layer, all sequences and heads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AttentionCall {
    pub(super) heads: u32,
    pub(super) kv_heads: u32,
    pub(super) head_dim: u32,
    pub(super) q_len: u64,
    pub(super) kv_len: u64,
    pub(super) flops: f64,
    pub(super) bytes: f64,
}

/// Decisions of one router.
pub(super) struct Routed<'a> {
    pub(super) top_k: usize,
    /// `[tokens, top_k]`.
    pub(super) experts: &'a [u32],
    /// As `experts`.
    pub(super) gates: &'a [f32],
}

/// Sums over the tokens of one router, one per expert.
pub(super) struct RouterSums {
    /// Tokens sent to the expert.
    pub(super) counts: Vec<u32>,
    /// Its probability, summed.
    pub(super) prob_sum: Vec<f32>,
}

/// A tensor that was quantised.
pub(super) struct QuantSubject<'a> {
    pub(super) tensor: &'static str,
    pub(super) granularity: Granularity,
    pub(super) error: &'a QuantError,
}

/// Sizes of a step.
pub(super) struct StepSize {
    pub(super) batch: usize,
    pub(super) tokens: usize,
    /// Tokens cached after the step.
    pub(super) context_tokens: u64,
}

/// State of a cache. One that is not paged has one block per sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Occupancy {
    pub(super) block_tokens: usize,
    pub(super) blocks_total: u64,
    pub(super) blocks_used: u64,
    pub(super) tokens_stored: u64,
}

/// The marks of one step.
///
/// They read a clock that stands still during [`Self::aside`], so that neither an operator nor the step contains work
/// that is done for the measurement only.
pub(super) struct Marks<'a> {
    rec: &'a mut Recorder,
    step: u64,
    phase: u8,
    measuring_ns: u64,
}

impl<'a> Marks<'a> {
    /// Starts a step.
    pub(super) fn begin(rec: &'a mut Recorder, step: u64, phase: Phase) -> Self {
        let phase = phase as u8;
        rec.begin_step(step, phase);
        Self {
            rec,
            step,
            phase,
            measuring_ns: 0,
        }
    }

    /// Marks of what was done on loading, before the first step.
    pub(super) fn of_load(rec: &'a mut Recorder) -> Self {
        Self {
            rec,
            step: 0,
            phase: phase::LOAD,
            measuring_ns: 0,
        }
    }

    /// Time on the clock of the work: since the run started, without what was spent aside in this step.
    pub(super) fn now(&self) -> u64 {
        self.rec.now_ns() - self.measuring_ns
    }

    /// Does work that exists for the measurement only, with the clock of the work stopped. The work is given the time
    /// at which it stopped, on the run's clock.
    pub(super) fn aside<R>(&mut self, work: impl FnOnce(&mut Self, u64) -> R) -> R {
        let (stopped, before) = (self.rec.now_ns(), self.measuring_ns);
        let result = work(self, stopped);
        // Set, not added to: what was spent aside inside is part of this span.
        self.measuring_ns = before + (self.rec.now_ns() - stopped);
        result
    }

    pub(super) fn wants_quant(&self) -> bool {
        self.rec.wants(quant::INDEX)
    }

    /// An operator that began at `start`; `layer` is `None` outside the layers.
    pub(super) fn op(&mut self, layer: Option<usize>, op: Op, start: u64) {
        if !self.rec.wants(op::INDEX) {
            return;
        }
        self.aside(|marks, t_ns| {
            marks.rec.record(&op::Row {
                t_ns,
                step: marks.step,
                phase: marks.phase,
                layer: layer.map_or(kinds::NO_LAYER, number),
                op: op as u8,
                device_ns: t_ns - marks.measuring_ns - start,
            });
        });
    }

    /// Whether operators of this step are recorded.
    pub(super) fn wants_ops(&self) -> bool {
        self.rec.wants(op::INDEX)
    }

    /// An operator that the device has timed.
    pub(super) fn timed_op(&mut self, layer: Option<usize>, op: Op, device_ns: u64) {
        self.aside(|marks, t_ns| {
            marks.rec.record(&op::Row {
                t_ns,
                step: marks.step,
                phase: marks.phase,
                layer: layer.map_or(kinds::NO_LAYER, number),
                op: op as u8,
                device_ns,
            });
        });
    }

    /// An attention call that began at `start` and ends now; `account` is asked for its work if it is recorded.
    pub(super) fn attention(&mut self, layer: usize, start: u64, account: impl FnOnce() -> AttentionCall) {
        if !self.rec.wants(attention::INDEX) {
            return;
        }
        self.aside(|marks, t_ns| {
            let call = account();
            marks.rec.record(&attention::Row {
                t_ns,
                step: marks.step,
                phase: marks.phase,
                layer: number(layer),
                heads: call.heads,
                kv_heads: call.kv_heads,
                head_dim: call.head_dim,
                q_len: call.q_len,
                kv_len: call.kv_len,
                causal: 1,
                flops: call.flops,
                bytes: call.bytes,
                device_ns: t_ns - marks.measuring_ns - start,
                ..attention::Row::default()
            });
        });
    }

    /// Decisions of a layer's router; `account` is asked for the sums if they are recorded.
    pub(super) fn route(&mut self, layer: usize, routed: &Routed<'_>, account: impl FnOnce() -> RouterSums) {
        if self.rec.wants(moe_route::INDEX) {
            self.aside(|marks, t_ns| marks.route_sums(t_ns, (layer, routed), &account()));
        }
        if self.rec.wants(moe_assign::INDEX) {
            self.aside(|marks, t_ns| marks.assignments(t_ns, (layer, routed)));
        }
    }

    fn route_sums(&mut self, t_ns: u64, (layer, routed): (usize, &Routed<'_>), sums: &RouterSums) {
        let tokens = routed.experts.len() / routed.top_k;
        self.rec.record(&moe_route::Row {
            t_ns,
            step: self.step,
            phase: self.phase,
            layer: number(layer),
            tokens: tokens as u32,
            top_k: routed.top_k as u32,
            experts: sums.counts.len() as u32,
            counts: &sums.counts,
            prob_sum: &sums.prob_sum,
            dropped: 0,
        });
    }

    fn assignments(&mut self, t_ns: u64, (layer, routed): (usize, &Routed<'_>)) {
        let rows = routed.experts.chunks_exact(routed.top_k);
        for (token, (expert, gate)) in (0..).zip(rows.zip(routed.gates.chunks_exact(routed.top_k))) {
            self.rec.record(&moe_assign::Row {
                t_ns,
                step: self.step,
                layer: number(layer),
                token,
                expert,
                gate,
            });
        }
    }

    pub(super) fn quant(&mut self, layer: usize, subject: &QuantSubject<'_>) {
        self.aside(|marks, t_ns| marks.quant_row(t_ns, layer, subject));
    }

    fn quant_row(&mut self, t_ns: u64, layer: usize, subject: &QuantSubject<'_>) {
        let QuantSubject {
            tensor,
            granularity,
            error,
        } = subject;
        let (tensor, format) = (self.rec.symbol(tensor), self.rec.symbol("e4m3"));
        let granularity = self.rec.symbol(&granularity.name());
        self.rec.record(&quant::Row {
            t_ns,
            step: self.step,
            phase: self.phase,
            layer: number(layer),
            tensor,
            format,
            granularity,
            n: error.n,
            amax: error.amax,
            scale: error.scale,
            sum_sq_ref: error.sum_sq_ref,
            sum_sq_err: error.sum_sq_err,
            sqnr_channel_p50: error.sqnr_channel_p50() as f32,
            max_abs_err: error.max_abs_err,
            saturated: error.saturated,
            underflow: error.underflow,
            nonfinite: error.nonfinite,
        });
    }

    /// The end of a step that began at `start`.
    pub(super) fn step(&mut self, start: u64, size: &StepSize) {
        let t_ns = self.rec.now_ns();
        let host_ns = t_ns - self.measuring_ns - start;
        self.step_row((t_ns, host_ns), size, (host_ns, false));
    }

    /// As [`Self::step`], where the device has timed the step; `graph` is whether it replayed a graph.
    pub(super) fn device_step(&mut self, start: u64, size: &StepSize, timed: (u64, bool)) {
        let t_ns = self.rec.now_ns();
        self.step_row((t_ns, t_ns - self.measuring_ns - start), size, timed);
    }

    fn step_row(&mut self, (t_ns, host_ns): (u64, u64), size: &StepSize, (device_ns, graph): (u64, bool)) {
        self.rec.record(&step::Row {
            t_ns,
            step: self.step,
            phase: self.phase,
            batch: size.batch as u32,
            tokens: size.tokens as u32,
            context_tokens: size.context_tokens,
            host_ns,
            device_ns,
            graph: graph.into(),
            measuring_ns: self.measuring_ns,
        });
    }

    /// The state of the cache after the step. A cache without prefix reuse has no hits, queries or evictions.
    pub(super) fn kv_cache(&mut self, occupancy: Occupancy) {
        let t_ns = self.rec.now_ns();
        self.rec.record(&kv_cache::Row {
            t_ns,
            blocks_total: occupancy.blocks_total,
            blocks_used: occupancy.blocks_used,
            tokens_stored: occupancy.tokens_stored,
            block_tokens: u32::try_from(occupancy.block_tokens).unwrap_or(u32::MAX),
            ..kv_cache::Row::default()
        });
    }
}

/// A layer's number as events have it; shapes are limited to 4,096 layers.
fn number(layer: usize) -> u16 {
    u16::try_from(layer).unwrap_or(kinds::NO_LAYER - 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::Clock;
    use crate::engine::testing::record_with;

    #[test]
    fn what_is_done_aside_is_in_no_operator_and_not_in_the_step() {
        let clock = Clock::fake();
        let pass = |us| clock.advance(Duration::from_micros(us));
        let recorded = record_with(clock.clone(), |rec| {
            pass(7);
            let mut marks = Marks::begin(rec, 0, Phase::Decode);
            let begun = marks.now();
            let start = marks.now();
            pass(10);
            marks.aside(|marks, stopped| {
                assert_eq!(stopped, 17_000);
                pass(1_000);
                // Inside, so it counts once.
                marks.aside(|_, _| pass(500));
            });
            pass(5);
            marks.attention(3, start, || {
                pass(40);
                call()
            });
            marks.op(Some(3), Op::Attention, start);
            pass(2);
            let start = marks.now();
            pass(20);
            marks.op(None, Op::LmHead, start);
            marks.step(begun, &SIZE);
        });
        assert_eq!(recorded.column("op", "device_ns"), [15_000.0, 20_000.0]);
        assert_eq!(recorded.column("attention", "device_ns"), [15_000.0]);
        assert_eq!(recorded.column("step", "host_ns"), [37_000.0]);
        assert_eq!(recorded.column("step", "measuring_ns"), [1_540_000.0]);
        // 7 before the step, and both parts of it.
        assert_eq!(recorded.column("step", "t_ns"), [1_584_000.0]);
    }

    const SIZE: StepSize = StepSize {
        batch: 1,
        tokens: 1,
        context_tokens: 1,
    };

    fn call() -> AttentionCall {
        AttentionCall {
            heads: 1,
            kv_heads: 1,
            head_dim: 2,
            q_len: 1,
            kv_len: 1,
            flops: 8.0,
            bytes: 32.0,
        }
    }
}
