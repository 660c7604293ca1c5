//! Matrix products with weights, through candle.

use std::borrow::Cow;

use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use candle_core::{CpuStorage, Device, Storage, Tensor};
use half::{bf16, f16};

use super::blocks::BlockMatrix;
use super::dense_dot;
use crate::engine::EngineError;
use crate::model::StorageType;

/// `y = x · Wᵀ + b` for a weight of shape `[outputs, inputs]`.
pub(super) struct Linear {
    weight: Weight,
    bias: Option<Vec<f32>>,
    inputs: usize,
    outputs: usize,
}

enum Weight {
    /// `[outputs, inputs]` in f32.
    Dense(Tensor),
    /// Blocks of a ggml format, through candle.
    Candle(QTensor),
    /// Blocks of a format that this engine multiplies itself.
    Own(BlockMatrix),
}

impl Linear {
    /// Keeps the weight in f32; `values` is row-major `[outputs, inputs]`.
    pub(super) fn dense(values: Vec<f32>, (outputs, inputs): (usize, usize)) -> Result<Self, EngineError> {
        let weight = Tensor::from_vec(values, (outputs, inputs), &Device::Cpu)
            .map_err(failed("preparing a weight"))?;
        Ok(Self {
            weight: Weight::Dense(weight),
            bias: None,
            inputs,
            outputs,
        })
    }

    /// Keeps the weight in the block format it comes in.
    pub(super) fn blocks(
        bytes: &[u8],
        storage: StorageType,
        (outputs, inputs): (usize, usize),
    ) -> Result<Self, EngineError> {
        let weight = match storage {
            StorageType::Q4_1 => Weight::Own(BlockMatrix::q4_1(bytes, inputs)),
            StorageType::Q8_0 => Weight::Own(BlockMatrix::q8_0(bytes, inputs)),
            other => QStorage::from_data(Cow::Borrowed(bytes), &Device::Cpu, ggml_type(other))
                .and_then(|s| QTensor::new(s, (outputs, inputs)))
                .map(Weight::Candle)
                .map_err(failed("preparing a quantised weight"))?,
        };
        Ok(Self {
            weight,
            bias: None,
            inputs,
            outputs,
        })
    }

    /// Adds a bias of `outputs` values.
    pub(super) fn with_bias(mut self, bias: Option<Vec<f32>>) -> Self {
        self.bias = bias;
        self
    }

    /// Number of results per row.
    pub(super) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Bytes of the weight and bias in memory.
    pub(super) fn bytes(&self) -> u64 {
        let weight = match &self.weight {
            Weight::Dense(_) => self.inputs * self.outputs * 4,
            Weight::Candle(t) => t.storage_size_in_bytes(),
            Weight::Own(m) => m.bytes(),
        };
        (weight + self.bias.as_ref().map_or(0, |b| 4 * b.len())) as u64
    }

    /// `x` is `[rows, inputs]`; the result is `[rows, outputs]`.
    pub(super) fn forward(&self, x: &[f32]) -> Result<Vec<f32>, EngineError> {
        let rows = x.len() / self.inputs;
        let as_tensor = || Tensor::from_slice(x, (rows, self.inputs), &Device::Cpu);
        let product = match &self.weight {
            Weight::Own(w) => Ok(w.product(x)),
            Weight::Dense(w) if rows <= dense_dot::MOST_ROWS => {
                with_values(w, |w| Ok(dense_dot::product(w, x, self.inputs)))
            }
            Weight::Dense(w) => as_tensor().and_then(|x| into_values(x.matmul(&w.t()?)?)),
            Weight::Candle(w) => as_tensor().and_then(|x| into_values(x.apply_op1_no_bwd(w)?)),
        }
        .map_err(failed("a matrix product"))?;
        Ok(match &self.bias {
            Some(bias) => add_bias(product, bias),
            None => product,
        })
    }

    /// Rows of the weight as f32 (the embedding of tokens); `ids` are below `outputs`.
    pub(super) fn rows(&self, ids: &[u32]) -> Result<Vec<f32>, EngineError> {
        let index = || Tensor::from_slice(ids, ids.len(), &Device::Cpu);
        match &self.weight {
            Weight::Own(w) => Ok(ids.iter().flat_map(|&id| w.row(id as usize)).collect()),
            Weight::Dense(w) => index().and_then(|i| into_values(w.index_select(&i, 0)?)),
            Weight::Candle(w) => index().and_then(|i| into_values(w.embedding(&i)?)),
        }
        .map_err(failed("an embedding look-up"))
    }
}

fn add_bias(mut values: Vec<f32>, bias: &[f32]) -> Vec<f32> {
    for row in values.chunks_exact_mut(bias.len()) {
        for (v, b) in row.iter_mut().zip(bias) {
            *v += b;
        }
    }
    values
}

/// Calls `f` with the values of a contiguous f32 tensor.
fn with_values<R>(
    tensor: &Tensor,
    f: impl FnOnce(&[f32]) -> candle_core::Result<R>,
) -> candle_core::Result<R> {
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cpu(CpuStorage::F32(values)) => {
            let start = layout.start_offset();
            f(&values[start..start + layout.shape().elem_count()])
        }
        _ => candle_core::bail!("expected f32 values on the CPU"),
    }
}

fn into_values(tensor: Tensor) -> candle_core::Result<Vec<f32>> {
    with_values(&tensor, |values| Ok(values.to_vec()))
}

/// Turns candle's error into ours, with what was being done.
pub(super) fn failed(operation: &'static str) -> impl FnOnce(candle_core::Error) -> EngineError {
    move |error| EngineError::Compute {
        operation,
        message: error.to_string().lines().next().unwrap_or_default().to_owned(),
    }
}

/// A tensor's bytes as f32, whatever their storage.
pub(super) fn to_f32(bytes: &[u8], storage: StorageType, values: usize) -> Result<Vec<f32>, EngineError> {
    let pairs = || bytes.chunks_exact(2).map(|b| [b[0], b[1]]);
    Ok(match storage {
        StorageType::F32 => bytes
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect(),
        StorageType::F16 => pairs().map(|b| f16::from_le_bytes(b).to_f32()).collect(),
        StorageType::Bf16 => pairs().map(|b| bf16::from_le_bytes(b).to_f32()).collect(),
        blocks => QStorage::from_data(Cow::Borrowed(bytes), &Device::Cpu, ggml_type(blocks))
            .and_then(|s| QTensor::new(s, values))
            .and_then(|t| t.dequantize(&Device::Cpu))
            .and_then(into_values)
            .map_err(failed("dequantising a weight"))?,
    })
}

fn ggml_type(storage: StorageType) -> GgmlDType {
    match storage {
        StorageType::F32 => GgmlDType::F32,
        StorageType::F16 => GgmlDType::F16,
        StorageType::Bf16 => GgmlDType::BF16,
        StorageType::Q4_0 => GgmlDType::Q4_0,
        StorageType::Q4_1 => GgmlDType::Q4_1,
        StorageType::Q5_0 => GgmlDType::Q5_0,
        StorageType::Q5_1 => GgmlDType::Q5_1,
        StorageType::Q8_0 => GgmlDType::Q8_0,
        StorageType::Q2K => GgmlDType::Q2K,
        StorageType::Q3K => GgmlDType::Q3K,
        StorageType::Q4K => GgmlDType::Q4K,
        StorageType::Q5K => GgmlDType::Q5K,
        StorageType::Q6K => GgmlDType::Q6K,
    }
}
