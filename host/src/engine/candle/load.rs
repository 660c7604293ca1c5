//! From a model's tensors to this engine's weights.

use super::layer::{FeedForward, Layer, Mlp};
use super::linear::{Linear, to_f32};
use super::tensors;
use crate::engine::EngineError;
use crate::engine::fp8::{ChannelAxis, Fp8Scales, Matrix, QuantError, quantize_measured};
use crate::model::{ExpertConfig, Model, ModelConfig, TensorInfo, WeightError};
use crate::stop::Stop;

/// What quantising one weight did.
pub(super) struct WeightError8 {
    pub(super) layer: usize,
    pub(super) tensor: &'static str,
    pub(super) error: QuantError,
}

/// Everything a model's tensors turn into.
pub(super) struct Loaded {
    pub(super) embedding: Linear,
    pub(super) layers: Vec<Layer>,
    pub(super) norm: Vec<f32>,
    /// `None` where the embedding serves as LM head.
    pub(super) head: Option<Linear>,
    /// Divisors of the rotary frequencies, where the file has its own.
    pub(super) rope_divisors: Option<Vec<f32>>,
    pub(super) weight_errors: Vec<WeightError8>,
}

/// Loads every tensor of `model`; projections inside layers are quantised if `fp8` says so. The embedding, the router
/// and the LM head are left as they are, as FP8 checkpoints do.
pub(super) fn load(model: &Model, fp8: Option<Fp8Scales>, stop: &Stop) -> Result<Loaded, EngineError> {
    let mut loader = Loader {
        model,
        fp8,
        stop,
        errors: Vec::new(),
    };
    let c = &model.config;
    let table = (c.vocab, c.hidden);
    Ok(Loaded {
        embedding: loader.plain("token_embd.weight", table)?,
        layers: (0..c.layers)
            .map(|index| loader.layer(index))
            .collect::<Result<_, _>>()?,
        norm: loader.vector("output_norm.weight", c.hidden)?,
        head: match c.tie_embeddings {
            true => None,
            false => Some(loader.plain("output.weight", table)?),
        },
        rope_divisors: loader.optional("rope_freqs.weight", c.head_dim / 2)?,
        weight_errors: loader.errors,
    })
}

struct Loader<'a> {
    model: &'a Model,
    fp8: Option<Fp8Scales>,
    stop: &'a Stop,
    errors: Vec<WeightError8>,
}

impl Loader<'_> {
    /// A tensor's bytes, unless the user wants the run to end.
    fn read(&self, info: &TensorInfo) -> Result<Vec<u8>, EngineError> {
        self.stop.check()?;
        Ok(self.model.weights.read(info)?)
    }

    fn config(&self) -> &ModelConfig {
        &self.model.config
    }

    fn vector(&self, name: &str, length: usize) -> Result<Vec<f32>, EngineError> {
        let info = self.model.weights.expect(name, &[length])?;
        to_f32(&self.read(info)?, info.storage, length)
    }

    fn optional(&self, name: &str, length: usize) -> Result<Option<Vec<f32>>, EngineError> {
        match self.model.weights.find(name) {
            Some(_) => self.vector(name, length).map(Some),
            None => Ok(None),
        }
    }

    /// A matrix `[outputs, inputs]` that is never quantised further.
    fn plain(&self, name: &str, shape: (usize, usize)) -> Result<Linear, EngineError> {
        let info = self.model.weights.expect(name, &[shape.0, shape.1])?;
        self.keep(info, shape)
    }

    fn keep(&self, info: &TensorInfo, shape: (usize, usize)) -> Result<Linear, EngineError> {
        let bytes = self.read(info)?;
        if info.storage.is_float() {
            Linear::dense(to_f32(&bytes, info.storage, info.elements())?, shape)
        } else {
            Linear::blocks(&bytes, info.storage, shape)
        }
    }

    /// A projection of layer `index`; `role` names it in events.
    fn projection(
        &mut self,
        info: &TensorInfo,
        shape: (usize, usize),
        (index, role): (usize, &'static str),
    ) -> Result<Linear, EngineError> {
        let Some(scales) = self.fp8 else {
            return self.keep(info, shape);
        };
        let bytes = self.read(info)?;
        let mut values = to_f32(&bytes, info.storage, info.elements())?;
        if let Some(matrix) = Matrix::new(&mut values, shape.1) {
            let error = quantize_measured(matrix, scales.weights, ChannelAxis::Rows);
            self.note(index, role, error);
        }
        Linear::dense(values, shape)
    }

    /// Experts of a layer share one entry per projection.
    fn note(&mut self, layer: usize, tensor: &'static str, error: QuantError) {
        let same = |e: &&mut WeightError8| e.layer == layer && e.tensor == tensor;
        match self.errors.iter_mut().rev().find(same) {
            Some(entry) => entry.error.append(error),
            None => self.errors.push(WeightError8 { layer, tensor, error }),
        }
    }

    fn named(
        &mut self,
        index: usize,
        role: &'static str,
        shape: (usize, usize),
    ) -> Result<Linear, EngineError> {
        let model = self.model;
        let name = format!("blk.{index}.{role}.weight");
        let info = model.weights.expect(&name, &[shape.0, shape.1])?;
        let bias = match self.config().qkv_bias
            && matches!(role, tensors::ATTN_Q | tensors::ATTN_K | tensors::ATTN_V)
        {
            true => Some(self.vector(&format!("blk.{index}.{role}.bias"), shape.0)?),
            false => None,
        };
        Ok(self.projection(info, shape, (index, role))?.with_bias(bias))
    }

    fn layer(&mut self, index: usize) -> Result<Layer, EngineError> {
        let c = self.config();
        let (h, q, kv, dim) = (c.hidden, c.q_width(), c.kv_width(), c.head_dim);
        let (qk_norm, experts, wide) = (c.qk_norm, c.experts, c.intermediate);
        let norm = |role: &str, length| self.vector(&format!("blk.{index}.{role}.weight"), length);
        Ok(Layer {
            attention_norm: norm("attn_norm", h)?,
            mlp_norm: norm("ffn_norm", h)?,
            qk_norm: match qk_norm {
                true => Some((norm("attn_q_norm", dim)?, norm("attn_k_norm", dim)?)),
                false => None,
            },
            q: self.named(index, tensors::ATTN_Q, (q, h))?,
            k: self.named(index, tensors::ATTN_K, (kv, h))?,
            v: self.named(index, tensors::ATTN_V, (kv, h))?,
            o: self.named(index, tensors::ATTN_OUTPUT, (h, q))?,
            mlp: match experts {
                Some(experts) => self.experts(index, experts)?,
                None => Mlp::Dense(FeedForward {
                    gate: self.named(index, tensors::FFN_GATE, (wide, h))?,
                    up: self.named(index, tensors::FFN_UP, (wide, h))?,
                    down: self.named(index, tensors::FFN_DOWN, (h, wide))?,
                }),
            },
        })
    }

    fn experts(&mut self, index: usize, config: ExpertConfig) -> Result<Mlp, EngineError> {
        let (h, wide) = (self.config().hidden, config.intermediate);
        let router = self.plain(&format!("blk.{index}.ffn_gate_inp.weight"), (config.count, h))?;
        let mut experts = Vec::with_capacity(config.count);
        for expert in 0..config.count {
            let place = (index, expert, config.count);
            experts.push(FeedForward {
                gate: self.expert(place, tensors::FFN_GATE, (wide, h))?,
                up: self.expert(place, tensors::FFN_UP, (wide, h))?,
                down: self.expert(place, tensors::FFN_DOWN, (h, wide))?,
            });
        }
        Ok(Mlp::Experts {
            router,
            experts,
            config,
        })
    }

    /// One expert's matrix, from the stack of all experts or from a tensor of its own.
    fn expert(
        &mut self,
        (index, expert, count): (usize, usize, usize),
        role: &'static str,
        shape: (usize, usize),
    ) -> Result<Linear, EngineError> {
        let weights = &self.model.weights;
        let single = format!("blk.{index}.{role}.{expert}.weight");
        if weights.find(&single).is_some() {
            let info = weights.expect(&single, &[shape.0, shape.1])?.clone();
            return self.projection(&info, shape, (index, role));
        }
        let stacked = format!("blk.{index}.{role}_exps.weight");
        let info = weights
            .expect(&stacked, &[count, shape.0, shape.1])?
            .outer(expert)
            .ok_or(WeightError::Missing(stacked))?;
        self.projection(&info, shape, (index, role))
    }
}
