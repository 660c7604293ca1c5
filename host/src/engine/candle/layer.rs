//! One decoder layer.

use super::attention::{self, RowPlace};
use super::cache::KvCache;
use super::linear::Linear;
use super::moe::{gather, route, scatter_add};
use super::quant::ActivationQuant;
use super::rope::Rope;
use super::rows::{add, for_each_row, rms_norm, rms_norm_in_place, silu_mul};
use crate::engine::EngineError;
use crate::engine::fp8::QuantError;
use crate::engine::marks::{Marks, Op, Routed};
use crate::model::{ExpertConfig, ModelConfig};

/// Weights of one layer.
pub(super) struct Layer {
    pub(super) attention_norm: Vec<f32>,
    pub(super) q: Linear,
    pub(super) k: Linear,
    pub(super) v: Linear,
    pub(super) o: Linear,
    /// Norms of each query and key head, where the family has them.
    pub(super) qk_norm: Option<(Vec<f32>, Vec<f32>)>,
    pub(super) mlp_norm: Vec<f32>,
    pub(super) mlp: Mlp,
}

/// The second half of a layer.
#[expect(clippy::large_enum_variant, reason = "there is one per layer")]
pub(super) enum Mlp {
    Dense(FeedForward),
    Experts {
        router: Linear,
        experts: Vec<FeedForward>,
        config: ExpertConfig,
    },
}

/// SwiGLU: `down(silu(gate(x)) · up(x))`.
pub(super) struct FeedForward {
    pub(super) gate: Linear,
    pub(super) up: Linear,
    pub(super) down: Linear,
}

/// What all layers of a step share.
pub(super) struct StepContext<'a> {
    pub(super) config: &'a ModelConfig,
    pub(super) rope: &'a Rope,
    pub(super) quant: &'a ActivationQuant,
    pub(super) places: &'a [RowPlace],
}

impl Layer {
    /// Adds this layer's contribution to the residual stream `x`, `[rows, hidden]`.
    pub(super) fn forward(
        &self,
        (index, x): (usize, &mut [f32]),
        cache: &mut KvCache,
        cx: &StepContext<'_>,
        marks: &mut Marks<'_>,
    ) -> Result<(), EngineError> {
        let start = marks.now();
        let mut normed = rms_norm(x, &self.attention_norm, cx.config.rms_eps);
        marks.op(Some(index), Op::Norm, start);

        let start = marks.now();
        cx.quant
            .apply(&mut normed, cx.config.hidden, (index, "attn_input"), marks);
        let [q, k, v] = self.project(&normed, cx)?;
        marks.op(Some(index), Op::Qkv, start);

        let start = marks.now();
        let width = cx.config.kv_width();
        let rows = k.chunks_exact(width).zip(v.chunks_exact(width));
        for (place, (k, v)) in cx.places.iter().zip(rows) {
            cache.write(index, (place.sequence, place.position), k, v);
        }
        let mut attended = attention::attend(cx.config, (cache, index), &q, cx.places);
        marks.op(Some(index), Op::Attention, start);
        if marks.wants_attention() {
            marks.attention(index, start, &attention::account(cx.config, cx.places));
        }

        let start = marks.now();
        cx.quant.apply(
            &mut attended,
            cx.config.q_width(),
            (index, "attn_output_input"),
            marks,
        );
        add(x, &self.o.forward(&attended)?);
        marks.op(Some(index), Op::OProj, start);

        let start = marks.now();
        let normed = rms_norm(x, &self.mlp_norm, cx.config.rms_eps);
        marks.op(Some(index), Op::Norm, start);
        let output = self.mlp.forward((index, normed), cx, marks)?;
        add(x, &output);
        Ok(())
    }

    /// Queries, keys and values of all rows; queries and keys are rotated.
    fn project(&self, normed: &[f32], cx: &StepContext<'_>) -> Result<[Vec<f32>; 3], EngineError> {
        let (q_width, kv_width) = (cx.config.q_width(), cx.config.kv_width());
        let mut q = self.q.forward(normed)?;
        let mut k = self.k.forward(normed)?;
        let v = self.v.forward(normed)?;
        if let Some((q_norm, k_norm)) = &self.qk_norm {
            rms_norm_in_place(&mut q, q_norm, cx.config.rms_eps);
            rms_norm_in_place(&mut k, k_norm, cx.config.rms_eps);
        }
        for_each_row(&mut q, q_width, |i, row| {
            cx.rope.rotate(row, cx.places[i].position)
        });
        for_each_row(&mut k, kv_width, |i, row| {
            cx.rope.rotate(row, cx.places[i].position)
        });
        Ok([q, k, v])
    }
}

impl Mlp {
    fn forward(
        &self,
        (index, mut normed): (usize, Vec<f32>),
        cx: &StepContext<'_>,
        marks: &mut Marks<'_>,
    ) -> Result<Vec<f32>, EngineError> {
        match self {
            Self::Dense(ffn) => {
                let start = marks.now();
                cx.quant
                    .apply(&mut normed, cx.config.hidden, (index, "ffn_input"), marks);
                let mut error = None;
                let output = ffn.forward(&normed, cx.quant, (&mut error, marks.wants_quant()))?;
                cx.quant.report(error.as_ref(), (index, "ffn_down_input"), marks);
                marks.op(Some(index), Op::Mlp, start);
                Ok(output)
            }
            Self::Experts {
                router,
                experts,
                config,
            } => mixture((router, experts, config), (index, normed), cx, marks),
        }
    }
}

fn mixture(
    (router, experts, config): (&Linear, &[FeedForward], &ExpertConfig),
    (index, mut normed): (usize, Vec<f32>),
    cx: &StepContext<'_>,
    marks: &mut Marks<'_>,
) -> Result<Vec<f32>, EngineError> {
    let start = marks.now();
    let routing = route(router.forward(&normed)?, config);
    marks.op(Some(index), Op::Router, start);
    marks.route(
        index,
        &Routed {
            top_k: config.per_token,
            experts: &routing.experts,
            gates: &routing.gates,
            counts: &routing.counts,
            prob_sum: &routing.prob_sum,
        },
    );

    let start = marks.now();
    let hidden = cx.config.hidden;
    cx.quant.apply(&mut normed, hidden, (index, "ffn_input"), marks);
    let mut output = vec![0.0; normed.len()];
    let mut error = None;
    for (expert, ffn) in (0u32..).zip(experts) {
        let tokens = routing.tokens_of(expert);
        if tokens.is_empty() {
            continue;
        }
        let rows = gather(&normed, hidden, &tokens);
        let rows = ffn.forward(&rows, cx.quant, (&mut error, marks.wants_quant()))?;
        scatter_add(&mut output, hidden, (&rows, &tokens));
    }
    cx.quant.report(error.as_ref(), (index, "ffn_down_input"), marks);
    marks.op(Some(index), Op::Experts, start);
    Ok(output)
}

impl FeedForward {
    /// `x` is quantised already; the hidden activations are quantised here, their error added to `error` if `measure`.
    fn forward(
        &self,
        x: &[f32],
        quant: &ActivationQuant,
        (error, measure): (&mut Option<QuantError>, bool),
    ) -> Result<Vec<f32>, EngineError> {
        let mut hidden = self.gate.forward(x)?;
        silu_mul(&mut hidden, &self.up.forward(x)?);
        quant.accumulate(&mut hidden, self.gate.outputs(), (error, measure));
        self.down.forward(&hidden)
    }

    /// Bytes of the three weights.
    pub(super) fn bytes(&self) -> u64 {
        self.gate.bytes() + self.up.bytes() + self.down.bytes()
    }
}

impl Layer {
    /// Bytes of all weights of the layer in memory.
    pub(super) fn bytes(&self) -> u64 {
        let projections = [&self.q, &self.k, &self.v, &self.o];
        let norms = self.attention_norm.len() + self.mlp_norm.len();
        let head_norms = self.qk_norm.as_ref().map_or(0, |(q, k)| q.len() + k.len());
        let mlp = match &self.mlp {
            Mlp::Dense(ffn) => ffn.bytes(),
            Mlp::Experts { router, experts, .. } => {
                router.bytes() + experts.iter().map(FeedForward::bytes).sum::<u64>()
            }
        };
        projections.map(Linear::bytes).iter().sum::<u64>() + 4 * (norms + head_norms) as u64 + mlp
    }
}
