//! Rows of the event stream as an engine writes them, one function per kind.

use super::fp8::QuantError;

/// Interim.
pub struct Recorder;

impl Recorder {
    pub fn now_ns(&self) -> u64 {
        0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Prefill,
    Decode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Embed,
    Norm,
    Qkv,
    Attention,
    OProj,
    Router,
    Experts,
    Mlp,
    LmHead,
    Sample,
}

/// One step's marks. Cheap where nothing is recorded.
pub(super) struct Marks<'a> {
    rec: &'a mut Recorder,
    step: u64,
    phase: Phase,
}

pub(super) struct AttentionCall {
    pub(super) q_len: u64,
    pub(super) kv_len: u64,
    pub(super) flops: u64,
    pub(super) bytes: u64,
}

pub(super) struct Routed<'a> {
    pub(super) top_k: usize,
    pub(super) experts: &'a [u32],
    pub(super) gates: &'a [f32],
    pub(super) counts: &'a [u64],
    pub(super) prob_sum: &'a [f64],
}

pub(super) struct QuantSubject<'a> {
    pub(super) tensor: &'static str,
    pub(super) granularity: super::fp8::Granularity,
    pub(super) error: &'a QuantError,
}

impl<'a> Marks<'a> {
    pub(super) fn new(rec: &'a mut Recorder, step: u64, phase: Phase) -> Self {
        Self { rec, step, phase }
    }
    pub(super) fn now(&self) -> u64 {
        self.rec.now_ns()
    }
    pub(super) fn op(&mut self, _layer: usize, _op: Op, _start: u64) {}
    pub(super) fn wants_quant(&self) -> bool {
        self.step == 0
    }
    pub(super) fn attention(&mut self, _layer: usize, _start: u64, _call: &AttentionCall) {}
    pub(super) fn route(&mut self, _layer: usize, _routed: &Routed<'_>) {}
    pub(super) fn wants_attention(&self) -> bool {
        false
    }
    pub(super) fn weight_quant(&mut self, _layer: usize, _subject: &QuantSubject<'_>) {}
    pub(super) fn step(&mut self, _start: u64, _s: &StepSummary) {}
    pub(super) fn kv_cache(&mut self, _total: u64, _used: u64, _tokens: u64) {}
    pub(super) fn quant(&mut self, _layer: usize, _subject: &QuantSubject<'_>) {
        let _ = self.phase;
    }
}

pub(super) struct StepSummary {
    pub(super) batch: u64,
    pub(super) tokens: u64,
    pub(super) context_tokens: u64,
}

#[cfg(test)]
pub(super) mod testing {
    pub(in crate::engine) fn recorder() -> super::Recorder {
        super::Recorder
    }
}
