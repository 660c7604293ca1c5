//! One decoder layer.

use super::attention::{self, RowPlace};
use super::cache::KvCache;
use super::linear::Linear;
use super::moe::{gather, route, scatter_add};
use super::quant::{ActivationQuant, Originals};
use super::rope::Rope;
use super::rows::{add, for_each_row, rms_norm, rms_norm_in_place, silu_mul};
use super::tensors;
use crate::engine::EngineError;
use crate::engine::marks::{Marks, Op, Routed};
use crate::model::{ExpertConfig, ModelConfig};
use crate::stop::Stop;

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
    pub(super) stop: &'a Stop,
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
        cx.stop.check()?;
        let start = marks.now();
        let mut normed = rms_norm(x, &self.attention_norm, cx.config.rms_eps);
        marks.op(Some(index), Op::Norm, start);

        let start = marks.now();
        let mut originals = Originals::default();
        cx.quant
            .apply((&mut normed, cx.config.hidden), &mut originals, marks);
        let [q, k, v] = self.project(&normed, cx)?;
        marks.op(Some(index), Op::Qkv, start);
        cx.quant.report(originals, (index, tensors::ATTN_INPUT), marks);

        let start = marks.now();
        let width = cx.config.kv_width();
        let rows = k.chunks_exact(width).zip(v.chunks_exact(width));
        for (place, (k, v)) in cx.places.iter().zip(rows) {
            cache.write(index, (place.sequence, place.position), k, v);
        }
        let mut attended = attention::attend(cx.config, (cache, index), &q, cx.places);
        marks.attention(index, start, || attention::account(cx.config, cx.places));
        marks.op(Some(index), Op::Attention, start);

        let start = marks.now();
        let mut originals = Originals::default();
        cx.quant
            .apply((&mut attended, cx.config.q_width()), &mut originals, marks);
        add(x, &self.o.forward(&attended)?);
        marks.op(Some(index), Op::OProj, start);
        cx.quant
            .report(originals, (index, tensors::ATTN_OUTPUT_INPUT), marks);

        let start = marks.now();
        let normed = rms_norm(x, &self.mlp_norm, cx.config.rms_eps);
        marks.op(Some(index), Op::Norm, start);
        cx.stop.check()?;
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
                let (mut input, mut hidden) = (Originals::default(), Originals::default());
                cx.quant.apply((&mut normed, cx.config.hidden), &mut input, marks);
                let output = ffn.forward(&normed, cx.quant, (&mut hidden, marks))?;
                marks.op(Some(index), Op::Mlp, start);
                cx.quant.report(input, (index, tensors::FFN_INPUT), marks);
                cx.quant.report(hidden, (index, tensors::FFN_DOWN_INPUT), marks);
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
    let routed = Routed {
        top_k: config.per_token,
        experts: &routing.experts,
        gates: &routing.gates,
    };
    marks.route(index, &routed, || routing.sums(config.count));

    let start = marks.now();
    let width = cx.config.hidden;
    let (mut input, mut hidden) = (Originals::default(), Originals::default());
    cx.quant.apply((&mut normed, width), &mut input, marks);
    let mut output = vec![0.0; normed.len()];
    for (expert, ffn) in (0u32..).zip(experts) {
        let tokens = routing.tokens_of(expert);
        if tokens.is_empty() {
            continue;
        }
        cx.stop.check()?;
        let rows = gather(&normed, width, &tokens);
        let rows = ffn.forward(&rows, cx.quant, (&mut hidden, marks))?;
        scatter_add(&mut output, width, (&rows, &tokens));
    }
    marks.op(Some(index), Op::Experts, start);
    cx.quant.report(input, (index, tensors::FFN_INPUT), marks);
    cx.quant.report(hidden, (index, tensors::FFN_DOWN_INPUT), marks);
    Ok(output)
}

impl FeedForward {
    /// `x` is quantised already; the hidden activations are quantised here, after a copy to `originals` if wanted.
    fn forward(
        &self,
        x: &[f32],
        quant: &ActivationQuant,
        (originals, marks): (&mut Originals, &mut Marks<'_>),
    ) -> Result<Vec<f32>, EngineError> {
        let mut hidden = self.gate.forward(x)?;
        silu_mul(&mut hidden, &self.up.forward(x)?);
        quant.apply((&mut hidden, self.gate.outputs()), originals, marks);
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
