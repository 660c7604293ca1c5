//! How the numbers of a tensor are stored: plain floats and the block formats of ggml.

use serde::{Deserialize, Serialize};

/// Storage of one tensor. Block formats keep `block_len` values in `block_bytes` bytes, row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each name is the format's own name")]
pub enum StorageType {
    F32,
    F16,
    Bf16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2K,
    Q3K,
    Q4K,
    Q5K,
    Q6K,
}

impl StorageType {
    /// The type with this number in a GGUF tensor directory, if it is one that can be computed with.
    pub fn from_ggml(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            6 => Self::Q5_0,
            7 => Self::Q5_1,
            8 => Self::Q8_0,
            10 => Self::Q2K,
            11 => Self::Q3K,
            12 => Self::Q4K,
            13 => Self::Q5K,
            14 => Self::Q6K,
            30 => Self::Bf16,
            _ => return None,
        })
    }

    /// Values per block; 1 for plain floats.
    pub fn block_len(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => 1,
            Self::Q4_0 | Self::Q4_1 | Self::Q5_0 | Self::Q5_1 | Self::Q8_0 => 32,
            Self::Q2K | Self::Q3K | Self::Q4K | Self::Q5K | Self::Q6K => 256,
        }
    }

    /// Bytes per block, as laid out by ggml.
    pub fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q5_0 => 22,
            Self::Q5_1 => 24,
            Self::Q8_0 => 34,
            Self::Q2K => 84,
            Self::Q3K => 110,
            Self::Q4K => 144,
            Self::Q5K => 176,
            Self::Q6K => 210,
        }
    }

    /// The format's usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Q4_0 => "q4_0",
            Self::Q4_1 => "q4_1",
            Self::Q5_0 => "q5_0",
            Self::Q5_1 => "q5_1",
            Self::Q8_0 => "q8_0",
            Self::Q2K => "q2_k",
            Self::Q3K => "q3_k",
            Self::Q4K => "q4_k",
            Self::Q5K => "q5_k",
            Self::Q6K => "q6_k",
        }
    }

    /// Whether values are stored one by one as floats.
    pub fn is_float(self) -> bool {
        self.block_len() == 1
    }

    /// Bytes of a tensor of this shape (outermost dimension first). `None` when a row is not a whole number of
    /// blocks or the product leaves `u64`.
    pub fn bytes_of(self, shape: &[usize]) -> Option<u64> {
        let row = *shape.last()?;
        if !row.is_multiple_of(self.block_len()) {
            return None;
        }
        let count = shape
            .iter()
            .try_fold(1u64, |n, &d| n.checked_mul(u64::try_from(d).ok()?))?;
        (count / self.block_len() as u64).checked_mul(self.block_bytes() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::StorageType;

    #[test]
    fn sizes_follow_the_block_layout() {
        // Q4_1 keeps 32 values in 16 nibble bytes plus two f16: 576 values = 18 blocks of 20 bytes.
        assert_eq!(StorageType::Q4_1.bytes_of(&[1536, 576]), Some(1536 * 18 * 20));
        assert_eq!(StorageType::Bf16.bytes_of(&[3, 5]), Some(30));
        assert_eq!(StorageType::Q6K.bytes_of(&[2, 512]), Some(4 * 210));
        assert_eq!(StorageType::Q4K.bytes_of(&[2, 128]), None, "half a block");
        assert_eq!(StorageType::F32.bytes_of(&[usize::MAX, usize::MAX]), None);
        assert_eq!(StorageType::F32.bytes_of(&[]), None);
    }
}
