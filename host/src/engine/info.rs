//! How an engine describes itself in a report.

use serde::Serialize;

use crate::model::ModelConfig;

/// What the weights and activations were quantised to on loading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "method", rename_all = "snake_case")]
pub enum Quantization {
    /// As the file has them.
    None,
    /// FP8 E4M3, scales per group.
    Fp8 {
        /// Values of a weight that share a scale.
        weights: String,
        /// Values of an activation that share a scale.
        activations: String,
    },
}

/// Facts about a loaded engine.
#[derive(Debug, Clone, Serialize)]
pub struct EngineInfo {
    /// Engine, such as `candle`.
    pub name: String,
    /// Version of its library.
    pub version: String,
    /// Device it computes on, such as `cpu`.
    pub device: String,
    /// Type of activations and cache.
    pub dtype: String,
    /// Threads it computes with.
    pub threads: usize,
    /// Kernels chosen, one per kind of operation.
    pub kernels: Vec<String>,
    /// Where the weights come from: `gguf`, `safetensors` or `dummy`.
    pub weight_format: String,
    /// Bytes of the weights as they lie in memory.
    pub weight_bytes: u64,
    /// Bytes one token leaves in the KV cache, over all layers.
    pub kv_bytes_per_token: u64,
    /// Whether the weights come from a seed.
    pub dummy_weights: bool,
    /// Shape of the model.
    pub model: ModelConfig,
    /// Quantisation done on loading.
    pub quantization: Quantization,
}
