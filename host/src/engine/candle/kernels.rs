//! What this engine chooses for a model, in words and bytes.

use std::collections::BTreeSet;

use super::load::Loaded;
use super::{VALUE_BYTES, loaded_bytes, simd};
use crate::engine::fp8::Fp8Scales;
use crate::engine::{EngineInfo, Quantization};
use crate::model::{MemoryNeed, Model, StorageType, TensorInfo};

/// The candle release this engine is built with; a test compares it with the lock file.
const CANDLE_VERSION: &str = "0.11.1";

/// Bytes the weights will take: floats become f32, blocks stay (scales of Q4_1 and Q8_0 become f32), and candle keeps a
/// second, rearranged copy of Q4_K and Q6_K blocks. FP8 keeps dequantised f32 values of every projection.
pub(super) fn memory_of_weights(model: &Model, fp8: bool) -> u64 {
    let one = |t: &TensorInfo| {
        let as_f32 = (t.elements() as u64).saturating_mul(VALUE_BYTES);
        match t.storage {
            _ if t.storage.is_float() || fp8 => as_f32,
            StorageType::Q4_1 => t.bytes() / 20 * 24,
            StorageType::Q8_0 => t.bytes() / 34 * 36,
            StorageType::Q4K | StorageType::Q6K => t.bytes().saturating_mul(2),
            _ => t.bytes(),
        }
    };
    model.weights.iter().map(one).fold(0, u64::saturating_add)
}

/// The engine's description once a model is loaded.
pub(super) fn describe(
    model: &Model,
    (weights, threads): (&Loaded, usize),
    fp8: Option<Fp8Scales>,
) -> EngineInfo {
    EngineInfo {
        name: "candle".into(),
        version: CANDLE_VERSION.into(),
        device: "cpu".into(),
        dtype: "f32".into(),
        threads,
        kernels: kernels(model, fp8.is_some()),
        weight_bytes: loaded_bytes(weights),
        kv_bytes_per_token: MemoryNeed::kv_bytes_per_token(&model.config, VALUE_BYTES),
        weight_format: model.weight_format.into(),
        dummy_weights: model.dummy,
        model: model.config.clone(),
        quantization: match fp8 {
            Some(scales) => Quantization::Fp8 {
                weights: scales.weights.name(),
                activations: scales.activations.name(),
            },
            None => Quantization::None,
        },
    }
}

/// Whether products of this storage run on candle's own threads.
pub(super) fn is_candle_block(storage: StorageType) -> bool {
    !storage.is_float() && !matches!(storage, StorageType::Q4_1 | StorageType::Q8_0)
}

fn kernels(model: &Model, fp8: bool) -> Vec<String> {
    let matrices = model.weights.iter().filter(|t| t.shape.len() > 1);
    let names: BTreeSet<String> = matrices.map(|t| kernel(t.storage, fp8)).collect();
    let mut all: Vec<String> = names.into_iter().collect();
    all.push(format!("attention, norms, rope: own f32 loops, {}", simd::name()));
    if fp8 {
        all.push("fp8: e4m3 values, products of the dequantised values in f32".into());
    }
    all
}

fn kernel(storage: StorageType, fp8: bool) -> String {
    let name = storage.name();
    match storage {
        _ if storage.is_float() => format!(
            "matmul {name}: gemm in f32; up to 4 rows own dot products, {}",
            simd::name()
        ),
        _ if fp8 => format!("matmul {name}: dequantised, gemm in f32"),
        StorageType::Q4_1 | StorageType::Q8_0 => {
            format!(
                "matmul {name}: own blocks with 8-bit activations, {}",
                simd::name()
            )
        }
        StorageType::Q5_0 | StorageType::Q5_1 => format!("matmul {name}: candle blocks, scalar"),
        _ => format!("matmul {name}: candle blocks, {}", simd::name()),
    }
}

#[cfg(test)]
mod tests {
    use super::CANDLE_VERSION;

    #[test]
    fn the_reported_version_is_the_one_that_is_built_in() {
        let lock = include_str!("../../../../Cargo.lock");
        assert!(lock.contains(&format!("name = \"candle-core\"\nversion = \"{CANDLE_VERSION}\"")));
    }
}
