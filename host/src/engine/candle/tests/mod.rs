//! The engine against an independent implementation, and against itself.

mod against_reference;
mod events;
mod files;
mod reference;
mod steps;

use super::{CandleEngine, LoadOptions};
use crate::engine::fp8::Fp8Scales;
use crate::model::{Architecture, ExpertConfig, Model, ModelConfig, preset};
use crate::stop::Stop;

/// A shape small enough for plain loops.
fn small(architecture: Architecture) -> ModelConfig {
    let base = preset("tiny-llama").expect("preset");
    let experts = |normalise_gates| {
        Some(ExpertConfig {
            count: 6,
            per_token: 2,
            intermediate: 40,
            normalise_gates,
        })
    };
    ModelConfig {
        name: architecture.name().into(),
        architecture,
        layers: 2,
        hidden: 64,
        intermediate: 96,
        heads: 4,
        kv_heads: 2,
        head_dim: 16,
        vocab: 96,
        max_context: 64,
        qkv_bias: architecture == Architecture::Qwen2,
        qk_norm: matches!(architecture, Architecture::Qwen3 | Architecture::Qwen3Moe),
        experts: match architecture {
            Architecture::Mixtral => experts(true),
            Architecture::Qwen3Moe => experts(false),
            _ => None,
        },
        ..base
    }
}

fn engine(config: ModelConfig, fp8: Option<Fp8Scales>) -> CandleEngine {
    let model = Model::dummy(config, 11);
    CandleEngine::load(
        &model,
        LoadOptions {
            fp8,
            run: (2, 64),
            threads: Some(2),
            stop: Stop::default(),
        },
    )
    .expect("small models load")
}

fn assert_close(found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0.0f32, |m, v| m.max(v.abs()));
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        let difference = (a - b).abs();
        assert!(
            difference <= tolerance * largest,
            "value {i}: {a} against {b}, largest {largest}"
        );
    }
}
