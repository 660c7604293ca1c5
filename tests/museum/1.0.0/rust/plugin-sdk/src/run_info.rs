//! Facts about the run that a collector may depend on.

use serde::{Deserialize, Serialize};

/// Facts about the run, the same through every door. Unknown fields are ignored and missing ones take
/// their default, so that host and collectors of different versions understand each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunInfo {
    /// The model.
    pub model: ModelInfo,
    /// Name of the engine, such as `candle`.
    pub engine: String,
    /// Device, such as `cpu` or `cuda:0 NVIDIA H200`.
    pub device: String,
    /// Quantisation applied by the engine, `none` where there is none.
    pub quantization: String,
    /// Sequences per batch.
    pub batch_size: u32,
    /// Prompt tokens per sequence.
    pub prompt_tokens: u32,
    /// Output tokens per sequence.
    pub output_tokens: u32,
    /// Steps per sampled step for kinds of level `ops` and above.
    pub sample_every: u32,
    /// Peaks that utilisation is computed against.
    pub peaks: Vec<Peak>,
}

/// Shape of the model; 0 where it does not apply or is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelInfo {
    /// Name as the user gave it.
    pub name: String,
    /// Architecture, such as `llama` or `mixtral`.
    pub architecture: String,
    /// Transformer layers.
    pub layers: u32,
    /// Size of the hidden state.
    pub hidden: u32,
    /// Query heads.
    pub heads: u32,
    /// Key and value heads.
    pub kv_heads: u32,
    /// Size of a head.
    pub head_dim: u32,
    /// Experts per mixture-of-experts layer.
    pub experts: u32,
    /// Experts chosen per token.
    pub experts_per_token: u32,
    /// Entries of the vocabulary.
    pub vocab: u32,
    /// Parameters.
    pub parameters: u64,
    /// Bytes of the weights as the engine holds them.
    pub weight_bytes: u64,
    /// Bytes of one token in the KV cache.
    pub kv_bytes_per_token: u64,
}

/// A peak rate of the device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Peak {
    /// What it is a peak of: `flops` (1/s) or `bytes` (By/s).
    pub of: String,
    /// Where the figure comes from, such as `measured f32 GEMM 512x512x512` or `data sheet`.
    pub source: String,
    /// Whether it was measured in this run.
    pub measured: bool,
    /// The rate per second.
    pub per_second: f64,
}

impl RunInfo {
    /// The measured peak of the given quantity, else the first stated one.
    pub fn peak(&self, of: &str) -> Option<&Peak> {
        let mut all = self
            .peaks
            .iter()
            .filter(|peak| peak.of == of && peak.per_second > 0.0);
        all.clone().find(|peak| peak.measured).or_else(|| all.next())
    }
}
