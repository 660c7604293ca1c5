//! Rows of the event stream as an engine writes them: one function per kind, each a few loads and stores where the
//! kind is not recorded.

use lm_bench_plugin::kinds::{
    self, attention, kv_cache, moe_assign, moe_route, op, op_code, phase, quant, step,
};

use super::fp8::{Granularity, QuantError};
use crate::events::Recorder;

/// Tokens per block in which the cache's account is kept, like that of engines with paging.
pub(super) const KV_BLOCK_TOKENS: usize = 16;

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
    pub(super) counts: &'a [u32],
    pub(super) prob_sum: &'a [f32],
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

/// State of a cache in blocks of [`KV_BLOCK_TOKENS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Occupancy {
    pub(super) blocks_total: u64,
    pub(super) blocks_used: u64,
    pub(super) tokens_stored: u64,
}

/// The marks of one step.
pub(super) struct Marks<'a> {
    rec: &'a mut Recorder,
    step: u64,
    phase: u8,
}

impl<'a> Marks<'a> {
    /// Starts a step.
    pub(super) fn begin(rec: &'a mut Recorder, step: u64, phase: Phase) -> Self {
        let phase = phase as u8;
        rec.begin_step(step, phase);
        Self { rec, step, phase }
    }

    /// Marks of what was done on loading, before the first step.
    pub(super) fn of_load(rec: &'a mut Recorder) -> Self {
        Self {
            rec,
            step: 0,
            phase: phase::LOAD,
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.rec.now_ns()
    }

    pub(super) fn wants_quant(&self) -> bool {
        self.rec.wants(quant::INDEX)
    }

    pub(super) fn wants_attention(&self) -> bool {
        self.rec.wants(attention::INDEX)
    }

    /// An operator that began at `start`; `layer` is `None` outside the layers.
    pub(super) fn op(&mut self, layer: Option<usize>, op: Op, start: u64) {
        if !self.rec.wants(op::INDEX) {
            return;
        }
        let t_ns = self.now();
        self.rec.record(&op::Row {
            t_ns,
            step: self.step,
            phase: self.phase,
            layer: layer.map_or(kinds::NO_LAYER, number),
            op: op as u8,
            device_ns: t_ns - start,
        });
    }

    pub(super) fn attention(&mut self, layer: usize, start: u64, call: &AttentionCall) {
        let t_ns = self.now();
        self.rec.record(&attention::Row {
            t_ns,
            step: self.step,
            phase: self.phase,
            layer: number(layer),
            heads: call.heads,
            kv_heads: call.kv_heads,
            head_dim: call.head_dim,
            q_len: call.q_len,
            kv_len: call.kv_len,
            causal: 1,
            flops: call.flops,
            bytes: call.bytes,
            device_ns: t_ns - start,
            ..attention::Row::default()
        });
    }

    pub(super) fn route(&mut self, layer: usize, routed: &Routed<'_>) {
        let t_ns = self.now();
        let tokens = routed.experts.len() / routed.top_k;
        self.rec.record(&moe_route::Row {
            t_ns,
            step: self.step,
            phase: self.phase,
            layer: number(layer),
            tokens: tokens as u32,
            top_k: routed.top_k as u32,
            experts: routed.counts.len() as u32,
            counts: routed.counts,
            prob_sum: routed.prob_sum,
            dropped: 0,
        });
        if !self.rec.wants(moe_assign::INDEX) {
            return;
        }
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
        let t_ns = self.now();
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
        let t_ns = self.now();
        let host_ns = t_ns - start;
        self.rec.record(&step::Row {
            t_ns,
            step: self.step,
            phase: self.phase,
            batch: size.batch as u32,
            tokens: size.tokens as u32,
            context_tokens: size.context_tokens,
            host_ns,
            device_ns: host_ns,
            graph: 0,
        });
    }

    pub(super) fn kv_cache(&mut self, occupancy: Occupancy) {
        let t_ns = self.now();
        self.rec.record(&kv_cache::Row {
            t_ns,
            blocks_total: occupancy.blocks_total,
            blocks_used: occupancy.blocks_used,
            tokens_stored: occupancy.tokens_stored,
            block_tokens: KV_BLOCK_TOKENS as u32,
            ..kv_cache::Row::default()
        });
    }
}

/// A layer's number as events have it; shapes are limited to 4,096 layers.
fn number(layer: usize) -> u16 {
    u16::try_from(layer).unwrap_or(kinds::NO_LAYER - 1)
}
