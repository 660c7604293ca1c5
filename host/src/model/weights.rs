//! A model's tensors by canonical name, wherever their bytes come from.
//!
//! Names are those of GGUF (`blk.3.attn_q.weight`); readers of other formats translate. Shapes are outermost first,
//! so a projection is `[outputs, inputs]` and stacked experts are `[experts, outputs, inputs]`.
//!
//! Bytes are fetched with positioned reads into memory the caller owns (a CUDA engine hands in pinned buffers). Files
//! are not mapped: a file that shrinks during the run is then an error, where a mapping would kill the process.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::dummy;
use super::storage::StorageType;

/// Where one tensor's bytes start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Location {
    /// Byte `offset` of file number `file`.
    File { file: usize, offset: u64 },
    /// Element `first` of the pseudo-random stream that belongs to the tensor's name.
    Seeded { first: u64 },
}

/// Values that follow from a seed: number `i` is `mean + deviation · unit(mix(key + i))`, where `mix` and `unit` are
/// those of the dummy weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeededValues {
    /// Start of the counter.
    pub key: u64,
    /// Mean of the values.
    pub mean: f32,
    /// Their standard deviation.
    pub deviation: f32,
}

/// One tensor of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// Canonical name.
    pub name: String,
    /// How its values are stored.
    pub storage: StorageType,
    /// Dimensions, outermost first.
    pub shape: Vec<usize>,
    location: Location,
    bytes: u64,
}

impl TensorInfo {
    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of values.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Entry `index` of the outermost dimension as a tensor of its own (one expert of a stack). `None` when there is
    /// no such entry or the tensor has one dimension only.
    pub fn outer(&self, index: usize) -> Option<Self> {
        let count = *self.shape.first()?;
        if index >= count || self.shape.len() < 2 {
            return None;
        }
        let shape = self.shape[1..].to_vec();
        let bytes = self.storage.bytes_of(&shape)?;
        let elements: usize = shape.iter().product();
        let location = match self.location {
            Location::File { file, offset } => Location::File {
                file,
                offset: offset + bytes * index as u64,
            },
            Location::Seeded { first } => Location::Seeded {
                first: first + (elements * index) as u64,
            },
        };
        Some(Self {
            name: self.name.clone(),
            storage: self.storage,
            shape,
            location,
            bytes,
        })
    }
}

/// A tensor that cannot be had.
#[derive(Debug, Error)]
pub enum WeightError {
    /// The directory lacks a tensor the architecture needs.
    #[error("the model has no tensor `{0}`; the file is incomplete or of another architecture")]
    Missing(String),
    /// A tensor of another shape than the configuration says.
    #[error("tensor `{name}` has shape {found:?}, the configuration needs {expected:?}")]
    Shape {
        /// Canonical name.
        name: String,
        /// Shape in the file.
        found: Vec<usize>,
        /// Shape that follows from the configuration.
        expected: Vec<usize>,
    },
    /// The file could not be read to the end of the tensor.
    #[error("cannot read tensor `{name}` from {}: {source}", path.display())]
    Read {
        /// Canonical name.
        name: String,
        /// File it is in.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A caller's buffer of the wrong length.
    #[error("tensor `{name}` is {expected} bytes, the buffer has {found}")]
    Buffer {
        /// Canonical name.
        name: String,
        /// Size of the tensor.
        expected: u64,
        /// Size of the buffer.
        found: usize,
    },
}

/// Tensor directory of one model and the means to fetch the bytes.
#[derive(Debug)]
pub struct Weights {
    tensors: BTreeMap<String, TensorInfo>,
    files: Vec<(PathBuf, File)>,
    seed: u64,
}

impl Weights {
    /// A directory without tensors, whose seeded tensors (if any are added) follow `seed`.
    pub(super) fn empty(seed: u64) -> Self {
        Self {
            tensors: BTreeMap::new(),
            files: Vec::new(),
            seed,
        }
    }

    /// Adds a file and returns its number for [`Self::add_file_tensor`].
    pub(super) fn add_file(&mut self, path: &Path, file: File) -> usize {
        self.files.push((path.to_owned(), file));
        self.files.len() - 1
    }

    /// Adds a tensor at `(file, offset)`; the caller has checked that its bytes lie inside the file. Returns false
    /// for a name that is there already or a shape without a size.
    pub(super) fn add_file_tensor(
        &mut self,
        name: String,
        (storage, shape): (StorageType, Vec<usize>),
        (file, offset): (usize, u64),
    ) -> bool {
        self.add(name, (storage, shape), Location::File { file, offset })
    }

    /// Adds a tensor whose values come from the seed.
    pub(super) fn add_seeded(&mut self, name: String, storage: StorageType, shape: Vec<usize>) -> bool {
        self.add(name, (storage, shape), Location::Seeded { first: 0 })
    }

    fn add(&mut self, name: String, (storage, shape): (StorageType, Vec<usize>), location: Location) -> bool {
        let Some(bytes) = storage.bytes_of(&shape) else {
            return false;
        };
        let info = TensorInfo {
            name: name.clone(),
            storage,
            shape,
            location,
            bytes,
        };
        self.tensors.insert(name, info).is_none()
    }

    /// The tensor with this name, if the model has it.
    pub fn find(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.get(name)
    }

    /// The tensor with this name, which must have this shape.
    pub fn expect(&self, name: &str, shape: &[usize]) -> Result<&TensorInfo, WeightError> {
        let info = self
            .find(name)
            .ok_or_else(|| WeightError::Missing(name.to_owned()))?;
        if info.shape == shape {
            return Ok(info);
        }
        Err(WeightError::Shape {
            name: name.to_owned(),
            found: info.shape.clone(),
            expected: shape.to_vec(),
        })
    }

    /// All tensors, by name.
    pub fn iter(&self) -> impl Iterator<Item = &TensorInfo> {
        self.tensors.values()
    }

    /// The files that hold tensors, in order of their names.
    pub(super) fn files(&self) -> impl ExactSizeIterator<Item = &(PathBuf, File)> {
        self.files.iter()
    }

    /// How most of the values are stored; `None` without tensors.
    pub fn main_storage(&self) -> Option<StorageType> {
        let mut values: BTreeMap<&str, (usize, StorageType)> = BTreeMap::new();
        for tensor in self.iter() {
            let count = &mut values
                .entry(tensor.storage.name())
                .or_insert((0, tensor.storage))
                .0;
            *count = count.saturating_add(tensor.elements());
        }
        let most = values.into_values().max_by_key(|(count, _)| *count)?;
        Some(most.1)
    }

    /// Size of all tensors as stored.
    pub fn total_bytes(&self) -> u64 {
        self.iter().map(TensorInfo::bytes).sum()
    }

    /// How a tensor's values follow from the seed, for devices that make them themselves; `None` for one from a file
    /// and for a part of a stack.
    pub fn seeded(&self, info: &TensorInfo) -> Option<SeededValues> {
        match info.location {
            Location::Seeded { first: 0 } => Some(dummy::Stream::new(self.seed, info, 0).facts()),
            _ => None,
        }
    }

    /// Fetches a tensor's bytes.
    pub fn read(&self, info: &TensorInfo) -> Result<Vec<u8>, WeightError> {
        let mut out = vec![0; usize::try_from(info.bytes).unwrap_or(usize::MAX)];
        self.read_into(info, &mut out)?;
        Ok(out)
    }

    /// Fetches a tensor's bytes into `out`, which must have exactly the tensor's size.
    pub fn read_into(&self, info: &TensorInfo, out: &mut [u8]) -> Result<(), WeightError> {
        if out.len() as u64 != info.bytes {
            return Err(WeightError::Buffer {
                name: info.name.clone(),
                expected: info.bytes,
                found: out.len(),
            });
        }
        match info.location {
            Location::Seeded { first } => {
                dummy::fill(&dummy::Stream::new(self.seed, info, first), info.storage, out);
                Ok(())
            }
            Location::File { file, offset } => {
                let (path, file) = &self.files[file];
                file.read_exact_at(out, offset)
                    .map_err(|source| WeightError::Read {
                        name: info.name.clone(),
                        path: path.clone(),
                        source,
                    })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_most_values_wins_not_that_of_most_tensors() {
        let mut weights = Weights::empty(0);
        assert_eq!(weights.main_storage(), None);
        weights.add_seeded("a".into(), StorageType::F32, vec![10]);
        weights.add_seeded("b".into(), StorageType::F32, vec![10]);
        weights.add_seeded("c".into(), StorageType::Q4_1, vec![1, 32]);
        assert_eq!(weights.main_storage(), Some(StorageType::Q4_1));
        weights.add_seeded("d".into(), StorageType::F32, vec![20]);
        assert_eq!(weights.main_storage(), Some(StorageType::F32));
    }
}
