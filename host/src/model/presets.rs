//! Shapes that run without any download, with weights from a seed.

use super::config::{Architecture, ExpertConfig, ModelConfig, RopeLayout, RopeScaling};
use super::storage::StorageType;

const NAMES: [&str; 5] = [
    "tiny-llama",
    "tiny-moe",
    "llama-3-8b",
    "mixtral-8x7b",
    "qwen3-30b-a3b",
];

/// Names of all presets.
pub fn preset_names() -> &'static [&'static str] {
    &NAMES
}

/// The shape with this name.
pub fn preset(name: &str) -> Option<ModelConfig> {
    Some(match name {
        "tiny-llama" => tiny("tiny-llama", Architecture::Llama),
        "tiny-moe" => tiny_moe(),
        "llama-3-8b" => llama_3_8b(),
        "mixtral-8x7b" => mixtral_8x7b(),
        "qwen3-30b-a3b" => qwen3_30b_a3b(),
        _ => return None,
    })
}

fn tiny(name: &str, architecture: Architecture) -> ModelConfig {
    ModelConfig {
        name: name.to_owned(),
        architecture,
        layers: 4,
        hidden: 256,
        intermediate: 768,
        heads: 8,
        kv_heads: 2,
        head_dim: 32,
        vocab: 2048,
        rope_theta: 10_000.0,
        rope_scaling: RopeScaling::None,
        rope_layout: RopeLayout::Halves,
        rms_eps: 1e-5,
        tie_embeddings: false,
        qk_norm: false,
        qkv_bias: false,
        experts: None,
        max_context: 4096,
        sliding_window: None,
        eos: vec![2],
        bos: Some(1),
        storage: StorageType::F32,
    }
}

fn tiny_moe() -> ModelConfig {
    ModelConfig {
        intermediate: 256,
        experts: Some(ExpertConfig {
            count: 8,
            per_token: 2,
            intermediate: 256,
            normalise_gates: true,
        }),
        ..tiny("tiny-moe", Architecture::Mixtral)
    }
}

/// Meta-Llama-3-8B, `config.json`.
fn llama_3_8b() -> ModelConfig {
    ModelConfig {
        layers: 32,
        hidden: 4096,
        intermediate: 14_336,
        heads: 32,
        kv_heads: 8,
        head_dim: 128,
        vocab: 128_256,
        rope_theta: 500_000.0,
        max_context: 8192,
        eos: vec![128_001],
        bos: Some(128_000),
        storage: StorageType::Bf16,
        ..tiny("llama-3-8b", Architecture::Llama)
    }
}

/// Mixtral-8x7B-v0.1, `config.json`.
fn mixtral_8x7b() -> ModelConfig {
    ModelConfig {
        layers: 32,
        hidden: 4096,
        intermediate: 14_336,
        heads: 32,
        kv_heads: 8,
        head_dim: 128,
        vocab: 32_000,
        rope_theta: 1_000_000.0,
        max_context: 32_768,
        storage: StorageType::Bf16,
        experts: Some(ExpertConfig {
            count: 8,
            per_token: 2,
            intermediate: 14_336,
            normalise_gates: true,
        }),
        ..tiny("mixtral-8x7b", Architecture::Mixtral)
    }
}

/// Qwen3-30B-A3B, `config.json`.
fn qwen3_30b_a3b() -> ModelConfig {
    ModelConfig {
        layers: 48,
        hidden: 2048,
        intermediate: 768,
        heads: 32,
        kv_heads: 4,
        head_dim: 128,
        vocab: 151_936,
        rope_theta: 1_000_000.0,
        rms_eps: 1e-6,
        qk_norm: true,
        max_context: 40_960,
        eos: vec![151_645],
        bos: Some(151_643),
        storage: StorageType::Bf16,
        experts: Some(ExpertConfig {
            count: 128,
            per_token: 8,
            intermediate: 768,
            normalise_gates: true,
        }),
        ..tiny("qwen3-30b-a3b", Architecture::Qwen3Moe)
    }
}

#[cfg(test)]
mod tests {
    use super::{preset, preset_names};

    #[test]
    fn every_preset_is_valid_and_carries_its_name() {
        for name in preset_names() {
            let config = preset(name).expect("listed preset exists");
            assert_eq!(config.name, *name);
            assert_eq!(config.validate(), Ok(()), "{name}");
        }
        assert!(preset("tiny-lama").is_none());
    }
}
