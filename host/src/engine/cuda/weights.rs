//! From a model's tensors to bf16 matrices on the device.

use cudarc::driver::CudaSlice;
use half::{bf16, f16};

use super::gpu::{Arg, Gpu};
use crate::engine::EngineError;
use crate::model::{Model, StorageType, TensorInfo};
use crate::stop::Stop;

/// One decoder layer. Query, key and value matrices are one matrix, and so are gate and up.
pub(super) struct LayerWeights {
    pub(super) attention_norm: CudaSlice<f32>,
    pub(super) qkv: CudaSlice<bf16>,
    pub(super) bias: Option<CudaSlice<f32>>,
    pub(super) qk_norm: Option<(CudaSlice<f32>, CudaSlice<f32>)>,
    pub(super) output: CudaSlice<bf16>,
    pub(super) mlp_norm: CudaSlice<f32>,
    pub(super) gate_up: CudaSlice<bf16>,
    pub(super) down: CudaSlice<bf16>,
}

/// All weights of a dense model.
pub(super) struct Weights {
    pub(super) embedding: CudaSlice<bf16>,
    pub(super) layers: Vec<LayerWeights>,
    pub(super) norm: CudaSlice<f32>,
    /// `None` where the embedding serves as LM head.
    pub(super) head: Option<CudaSlice<bf16>>,
    pub(super) frequencies: CudaSlice<f32>,
}

pub(super) struct Loader<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) model: &'a Model,
    pub(super) stop: &'a Stop,
}

impl Loader<'_> {
    pub(super) fn load(&self) -> Result<Weights, EngineError> {
        let c = &self.model.config;
        let (h, v) = (c.hidden, c.vocab);
        let divisors = match self.model.weights.find("rope_freqs.weight") {
            Some(_) => Some(self.values("rope_freqs.weight", c.head_dim / 2)?),
            None => None,
        };
        let frequencies = crate::engine::candle::rope_frequencies(c, divisors.as_deref());
        let layers = (0..c.layers).map(|index| self.layer(index));
        Ok(Weights {
            embedding: self.matrices(&[("token_embd.weight".into(), v)], h)?,
            layers: layers.collect::<Result<_, _>>()?,
            norm: self.vector("output_norm.weight", h)?,
            head: match c.tie_embeddings {
                true => None,
                false => Some(self.matrices(&[("output.weight".into(), v)], h)?),
            },
            frequencies: self.gpu.upload(&frequencies)?,
        })
    }

    fn layer(&self, index: usize) -> Result<LayerWeights, EngineError> {
        let c = &self.model.config;
        let (h, q, kv, wide) = (c.hidden, c.q_width(), c.kv_width(), c.intermediate);
        let name = |role: &str| format!("blk.{index}.{role}.weight");
        let bias = match c.qkv_bias {
            true => {
                let mut all = Vec::with_capacity(q + 2 * kv);
                for (role, length) in [("attn_q", q), ("attn_k", kv), ("attn_v", kv)] {
                    all.extend(self.values(&format!("blk.{index}.{role}.bias"), length)?);
                }
                Some(self.gpu.upload(&all)?)
            }
            false => None,
        };
        let qk_norm = match c.qk_norm {
            true => Some((
                self.vector(&name("attn_q_norm"), c.head_dim)?,
                self.vector(&name("attn_k_norm"), c.head_dim)?,
            )),
            false => None,
        };
        let qkv = [(name("attn_q"), q), (name("attn_k"), kv), (name("attn_v"), kv)];
        let gate_up = [(name("ffn_gate"), wide), (name("ffn_up"), wide)];
        Ok(LayerWeights {
            attention_norm: self.vector(&name("attn_norm"), h)?,
            qkv: self.matrices(&qkv, h)?,
            bias,
            qk_norm,
            output: self.matrices(&[(name("attn_output"), h)], q)?,
            mlp_norm: self.vector(&name("ffn_norm"), h)?,
            gate_up: self.matrices(&gate_up, h)?,
            down: self.matrices(&[(name("ffn_down"), h)], wide)?,
        })
    }

    fn vector(&self, name: &str, length: usize) -> Result<CudaSlice<f32>, EngineError> {
        self.gpu.upload(&self.values(name, length)?)
    }

    fn values(&self, name: &str, length: usize) -> Result<Vec<f32>, EngineError> {
        self.stop.check()?;
        let info = self.model.weights.expect(name, &[length])?;
        to_f32(&self.model.weights.read(info)?, info)
    }

    /// Matrices `[rows, inputs]` one below the other.
    fn matrices(&self, parts: &[(String, usize)], inputs: usize) -> Result<CudaSlice<bf16>, EngineError> {
        let rows: usize = parts.iter().map(|(_, rows)| rows).sum();
        let mut all = self.gpu.zeros::<bf16>(rows * inputs)?;
        let mut first = 0;
        for (name, rows) in parts {
            self.stop.check()?;
            let info = self.model.weights.expect(name, &[*rows, inputs])?;
            self.fill((&mut all, first), info)?;
            first += rows * inputs;
        }
        Ok(all)
    }

    fn fill(
        &self,
        (all, first): (&mut CudaSlice<bf16>, usize),
        info: &TensorInfo,
    ) -> Result<(), EngineError> {
        let n = info.elements();
        if let Some(seeded) = self.model.weights.seeded(info) {
            let args = [
                self.gpu.pointer_at(all, first),
                Arg::Long(n as u64),
                Arg::Long(seeded.key),
                Arg::Float(seeded.mean),
                Arg::Float(seeded.deviation),
            ];
            return self.gpu.launch("fill_seeded", ((2048, 1, 1), 256), &args);
        }
        let values = to_f32(&self.model.weights.read(info)?, info)?;
        let values: Vec<bf16> = values.into_iter().map(bf16::from_f32).collect();
        let mut place = all.slice_mut(first..first + n);
        let copied = self.gpu.stream.memcpy_htod(&values, &mut place);
        copied.map_err(super::libraries::failed("copying a weight to the device"))
    }
}

fn to_f32(bytes: &[u8], info: &TensorInfo) -> Result<Vec<f32>, EngineError> {
    let pairs = bytes.chunks_exact(2).map(|b| [b[0], b[1]]);
    match info.storage {
        StorageType::F32 => {
            let words = bytes.chunks_exact(4);
            Ok(words
                .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                .collect())
        }
        StorageType::F16 => Ok(pairs.map(|b| f16::from_le_bytes(b).to_f32()).collect()),
        StorageType::Bf16 => Ok(pairs.map(|b| bf16::from_le_bytes(b).to_f32()).collect()),
        other => Err(EngineError::Unsupported {
            engine: "cuda",
            what: format!("tensor `{}` in {}", info.name, other.name()),
            supported: "f32, f16 and bf16; --device cpu does the others".into(),
        }),
    }
}
