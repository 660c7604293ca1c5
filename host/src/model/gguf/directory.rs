//! The header as a whole: preamble, metadata and the tensor directory.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;

use super::cursor::Cursor;
use super::header::{GgufError, Header};
use super::value::Value;
use crate::model::storage::StorageType;

/// ggml's limits for one tensor.
const MAX_DIMENSIONS: u32 = 4;
const MAX_NAME: usize = 255;
/// Smallest entries possible: key length, key of one byte, type, value of one byte; and name length, name of one
/// byte, dimension count, type, offset.
const MIN_PAIR: u64 = 8 + 1 + 4 + 1;
const MIN_TENSOR: u64 = 8 + 1 + 4 + 4 + 8;
const DEFAULT_ALIGNMENT: u64 = 32;

/// One entry of the tensor directory, checked to lie inside the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GgufTensor {
    /// Name in the file.
    pub name: String,
    /// Storage of the values.
    pub storage: StorageType,
    /// Dimensions, outermost first (the file lists them innermost first).
    pub shape: Vec<usize>,
    /// First byte, counted from the start of the file.
    pub offset: u64,
    /// Size in bytes.
    pub bytes: u64,
}

struct RawTensor {
    name: String,
    code: u32,
    shape: Vec<usize>,
    relative_offset: u64,
}

/// Reads and checks the header of a file of `file_length` bytes. `input` starts at the file's first byte.
pub fn read_header<R: Read>(input: R, file_length: u64) -> Result<Header, GgufError> {
    let mut c = Cursor::new(input, file_length);
    let version = preamble(&mut c)?;
    let tensor_count = c.u64("the tensor count")?;
    let pair_count = c.u64("the metadata count")?;
    c.require("the metadata", pair_count, MIN_PAIR)?;
    let mut metadata = BTreeMap::new();
    for _ in 0..pair_count {
        let key = c.text("a metadata key")?;
        let code = c.u32("a metadata type")?;
        let value = c.value(code)?;
        if metadata.contains_key(&key) {
            return Err(c.malformed(format!("metadata key `{key}` appears twice")));
        }
        metadata.insert(key, value);
    }
    c.require("the tensor directory", tensor_count, MIN_TENSOR)?;
    let mut raw = Vec::new();
    for _ in 0..tensor_count {
        raw.push(raw_tensor(&mut c)?);
    }
    let alignment = alignment(&c, &metadata)?;
    let data_start = c.position().next_multiple_of(alignment);
    let tensors = place(raw, data_start, (alignment, file_length))?;
    Ok(Header {
        version,
        metadata,
        tensors,
    })
}

fn preamble<R: Read>(c: &mut Cursor<R>) -> Result<u32, GgufError> {
    match &c.magic()? {
        b"GGUF" => {}
        b"FUGG" => return Err(GgufError::BigEndian),
        b"lmgg" => return Err(GgufError::Legacy("GGML")),
        b"fmgg" => return Err(GgufError::Legacy("GGMF")),
        b"tjgg" => return Err(GgufError::Legacy("GGJT")),
        other => return Err(GgufError::Magic(*other)),
    }
    match c.u32("the version")? {
        v @ (2 | 3) => Ok(v),
        // Versions are small: one whose low half is empty was written with the other byte order.
        v if v != 0 && v & 0xffff == 0 => Err(GgufError::BigEndian),
        v => Err(GgufError::Version(v)),
    }
}

fn alignment<R: Read>(c: &Cursor<R>, metadata: &BTreeMap<String, Value>) -> Result<u64, GgufError> {
    let Some(value) = metadata.get("general.alignment") else {
        return Ok(DEFAULT_ALIGNMENT);
    };
    value
        .as_u64()
        .filter(|a| a.is_power_of_two() && (8..=1 << 20).contains(a))
        .ok_or_else(|| {
            c.malformed(format!(
                "general.alignment is {value:?}, not a power of two from 8 to 1,048,576"
            ))
        })
}

fn raw_tensor<R: Read>(c: &mut Cursor<R>) -> Result<RawTensor, GgufError> {
    let name = c.text("a tensor name")?;
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(c.malformed(format!("a tensor name of {} bytes", name.len())));
    }
    let dimensions = c.u32("a dimension count")?;
    if dimensions == 0 || dimensions > MAX_DIMENSIONS {
        return Err(GgufError::Tensor {
            name,
            what: format!("it has {dimensions} dimensions, 1 to {MAX_DIMENSIONS} are possible"),
        });
    }
    let mut shape = Vec::new();
    for _ in 0..dimensions {
        let size = c.u64("a dimension")?;
        match usize::try_from(size) {
            Ok(size) if size > 0 => shape.push(size),
            _ => {
                return Err(GgufError::Tensor {
                    name,
                    what: format!("a dimension of {size}"),
                });
            }
        }
    }
    shape.reverse();
    Ok(RawTensor {
        name,
        code: c.u32("a tensor type")?,
        shape,
        relative_offset: c.u64("a tensor offset")?,
    })
}

fn place(
    raw: Vec<RawTensor>,
    data_start: u64,
    (alignment, file_length): (u64, u64),
) -> Result<Vec<GgufTensor>, GgufError> {
    let mut names = HashSet::new();
    let mut placed = Vec::new();
    for tensor in raw {
        let damaged = |what: String| GgufError::Tensor {
            name: tensor.name.clone(),
            what,
        };
        if !names.insert(tensor.name.clone()) {
            return Err(damaged("it appears twice".into()));
        }
        let storage = StorageType::from_ggml(tensor.code).ok_or_else(|| GgufError::TensorType {
            name: tensor.name.clone(),
            code: tensor.code,
        })?;
        let bytes = storage.bytes_of(&tensor.shape).ok_or_else(|| {
            damaged(format!(
                "shape {:?} does not fit {} blocks of {} values",
                tensor.shape,
                storage.name(),
                storage.block_len()
            ))
        })?;
        if !tensor.relative_offset.is_multiple_of(alignment) {
            return Err(damaged(format!(
                "offset {} is not a multiple of {alignment}",
                tensor.relative_offset
            )));
        }
        let offset = data_start.checked_add(tensor.relative_offset);
        let end = offset.and_then(|o| o.checked_add(bytes));
        let (Some(offset), Some(end)) = (offset, end) else {
            return Err(damaged("its position leaves the range of 64 bits".into()));
        };
        if end > file_length {
            return Err(damaged(format!(
                "it ends at byte {end}, the file at {file_length}; the file is truncated"
            )));
        }
        placed.push(GgufTensor {
            name: tensor.name,
            storage,
            shape: tensor.shape,
            offset,
            bytes,
        });
    }
    Ok(placed)
}
