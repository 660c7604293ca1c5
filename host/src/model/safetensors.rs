//! Directories of safetensors files: one file, or shards named by an index.
//!
//! The headers are parsed by the `safetensors` crate after their length was compared with the file; positions are
//! checked again here, since the crate checks them only for a file that is wholly in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};

use safetensors::Dtype;
use safetensors::tensor::Metadata;
use serde::Deserialize;
use thiserror::Error;

use super::hf_names;
use super::storage::StorageType;
use super::weights::Weights;

/// Longest header accepted, as in the reference implementation.
const MAX_HEADER: u64 = 100_000_000;
/// Longest index accepted; the largest published ones have some 10 MiB.
const MAX_INDEX: u64 = 256 << 20;
const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// A directory whose weights cannot be used.
#[derive(Debug, Error)]
pub enum SafetensorsError {
    /// Neither a single file nor an index.
    #[error("{}: neither {SINGLE} nor {INDEX} is there", .0.display())]
    NoWeights(PathBuf),
    /// The system refused.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The index is not what it should be.
    #[error("{}: damaged index: {what}", path.display())]
    Index {
        /// The index file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A shard of the index that does not exist.
    #[error("{}: the index names it and it is not there; fetch all shards of the model", .0.display())]
    MissingShard(PathBuf),
    /// A header longer than its file.
    #[error("{}: the header is said to be {header} bytes, the file has {file}", path.display())]
    HeaderLength {
        /// The file.
        path: PathBuf,
        /// Length in the first 8 bytes.
        header: u64,
        /// Length of the file.
        file: u64,
    },
    /// A header that does not parse.
    #[error("{}: damaged header: {what}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A tensor of a type that cannot be computed with.
    #[error("{}: tensor `{name}` is {dtype}; supported: F32, F16, BF16", path.display())]
    Dtype {
        /// The file.
        path: PathBuf,
        /// Name in the file.
        name: String,
        /// Its type.
        dtype: String,
    },
    /// A tensor outside its file.
    #[error("{}: tensor `{name}` {what}", path.display())]
    Tensor {
        /// The file.
        path: PathBuf,
        /// Name in the file.
        name: String,
        /// What is wrong.
        what: String,
    },
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// Opens the weights of a model directory.
pub(super) fn open_directory(directory: &Path) -> Result<Weights, SafetensorsError> {
    let single = directory.join(SINGLE);
    let index = directory.join(INDEX);
    let shards = if index.is_file() {
        shards_of(&index, directory)?
    } else if single.is_file() {
        vec![single]
    } else {
        return Err(SafetensorsError::NoWeights(directory.to_owned()));
    };
    let mut weights = Weights::empty(0);
    for shard in shards {
        add_shard(&mut weights, &shard)?;
    }
    Ok(weights)
}

fn shards_of(path: &Path, directory: &Path) -> Result<Vec<PathBuf>, SafetensorsError> {
    let damaged = |what: String| SafetensorsError::Index {
        path: path.to_owned(),
        what,
    };
    let (file, length) = open_file(path)?;
    if length > MAX_INDEX {
        return Err(damaged(format!("it has {length} bytes")));
    }
    let reader = io::BufReader::new(file);
    let index: Index = serde_json::from_reader(reader).map_err(|e| damaged(e.to_string()))?;
    let names: BTreeSet<String> = index.weight_map.into_values().collect();
    let mut shards = Vec::new();
    for name in names {
        let mut parts = Path::new(&name).components();
        let plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
        if !plain {
            return Err(damaged(format!("shard `{name}` is not a file name")));
        }
        let shard = directory.join(name);
        if !shard.is_file() {
            return Err(SafetensorsError::MissingShard(shard));
        }
        shards.push(shard);
    }
    Ok(shards)
}

fn open_file(path: &Path) -> Result<(File, u64), SafetensorsError> {
    let io = |source| SafetensorsError::Io {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    Ok((file, length))
}

fn add_shard(weights: &mut Weights, path: &Path) -> Result<(), SafetensorsError> {
    let (file, length) = open_file(path)?;
    let (metadata, data_start) = read_metadata(path, &file, length)?;
    let number = weights.add_file(path, file);
    for (name, info) in metadata.tensors() {
        let Some(canonical) = hf_names::canonical(&name) else {
            continue;
        };
        let storage = storage(info.dtype).ok_or_else(|| SafetensorsError::Dtype {
            path: path.to_owned(),
            name: name.clone(),
            dtype: format!("{:?}", info.dtype),
        })?;
        let fault = |what: String| SafetensorsError::Tensor {
            path: path.to_owned(),
            name: name.clone(),
            what,
        };
        let (start, end) = info.data_offsets;
        let size = end.checked_sub(start).map(|n| n as u64);
        if size.is_none() || size != storage.bytes_of(&info.shape) {
            return Err(fault(format!(
                "occupies {start}..{end}, not the size of {:?}",
                info.shape
            )));
        }
        if data_start.checked_add(end as u64).is_none_or(|end| end > length) {
            return Err(fault(format!(
                "ends after the file's {length} bytes; the file is truncated"
            )));
        }
        let added = weights.add_file_tensor(
            canonical,
            (storage, info.shape.clone()),
            (number, data_start + start as u64),
        );
        if !added {
            return Err(fault("appears in two shards".into()));
        }
    }
    Ok(())
}

fn read_metadata(path: &Path, file: &File, length: u64) -> Result<(Metadata, u64), SafetensorsError> {
    let io = |source| SafetensorsError::Io {
        path: path.to_owned(),
        source,
    };
    let damaged = |what: String| SafetensorsError::Header {
        path: path.to_owned(),
        what,
    };
    if length < 8 {
        return Err(damaged(format!(
            "the file has {length} bytes, fewer than the 8 of its length"
        )));
    }
    let mut prefix = [0; 8];
    file.read_exact_at(&mut prefix, 0).map_err(io)?;
    let header = u64::from_le_bytes(prefix);
    if header > length - 8 {
        return Err(SafetensorsError::HeaderLength {
            path: path.to_owned(),
            header,
            file: length,
        });
    }
    if header > MAX_HEADER {
        return Err(damaged(format!(
            "{header} bytes are more than the limit of {MAX_HEADER}"
        )));
    }
    let mut text = vec![0; header as usize];
    file.read_exact_at(&mut text, 8).map_err(io)?;
    let metadata = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
    Ok((metadata, 8 + header))
}

fn storage(dtype: Dtype) -> Option<StorageType> {
    match dtype {
        Dtype::F32 => Some(StorageType::F32),
        Dtype::F16 => Some(StorageType::F16),
        Dtype::BF16 => Some(StorageType::Bf16),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file with this header text and `data` bytes behind it.
    fn file(header: &str, data: usize) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(vec![1; data]);
        bytes
    }

    fn open_bytes(bytes: &[u8]) -> Result<Weights, SafetensorsError> {
        let dir = tempfile::tempdir().expect("temporary folder");
        std::fs::write(dir.path().join(SINGLE), bytes).expect("write");
        open_directory(dir.path())
    }

    const NORM: &str = r#"{"model.norm.weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;

    #[test]
    fn a_tensor_is_found_under_its_canonical_name() {
        let w = open_bytes(&file(NORM, 8)).expect("valid");
        let info = w.find("output_norm.weight").expect("there");
        assert_eq!(w.read(info).expect("read"), vec![1; 8]);
    }

    #[test]
    fn each_fault_is_named() {
        let header_too_long = [&1000u64.to_le_bytes()[..], b"{}"].concat();
        let dtype = NORM.replace("F32", "I64").replace("[0,8]", "[0,16]");
        let cases: [(Vec<u8>, &str); 6] = [
            (vec![1, 2, 3], "the file has 3 bytes"),
            (header_too_long, "said to be 1000 bytes, the file has 10"),
            (file("not json", 0), "damaged header"),
            (file(NORM, 7), "truncated"),
            (file(&dtype, 16), "tensor `model.norm.weight` is I64; supported"),
            (file(&NORM.replace("[2]", "[3]"), 8), "damaged header"),
        ];
        for (bytes, expected) in cases {
            let text = open_bytes(&bytes).expect_err("must fail").to_string();
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn a_missing_shard_and_a_path_out_of_the_folder_are_refused() {
        let dir = tempfile::tempdir().expect("temporary folder");
        let index = |shard: &str| {
            let text = format!(r#"{{"weight_map":{{"model.norm.weight":"{shard}"}}}}"#);
            std::fs::write(dir.path().join(INDEX), text).expect("write");
            open_directory(dir.path()).expect_err("must fail")
        };
        let missing = index("model-00002-of-00002.safetensors");
        assert!(matches!(missing, SafetensorsError::MissingShard(_)), "{missing}");
        let outside = index("../model.safetensors");
        assert!(outside.to_string().contains("not a file name"), "{outside}");
    }

    #[test]
    fn shards_are_joined() {
        let dir = tempfile::tempdir().expect("temporary folder");
        let second = NORM.replace("model.norm", "lm_head");
        std::fs::write(dir.path().join("a.safetensors"), file(NORM, 8)).expect("write");
        std::fs::write(dir.path().join("b.safetensors"), file(&second, 8)).expect("write");
        let map = r#"{"weight_map":{"model.norm.weight":"a.safetensors","lm_head.weight":"b.safetensors"}}"#;
        std::fs::write(dir.path().join(INDEX), map).expect("write");
        let w = open_directory(dir.path()).expect("valid");
        assert_eq!((w.iter().count(), w.total_bytes()), (2, 16));
    }

    proptest! {
        #[test]
        fn mutated_files_never_panic(at in 0usize..90, byte: u8, cut in 0usize..100) {
            let mut bytes = file(NORM, 8);
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(bytes.len() - cut % bytes.len());
            // Whatever comes out, a tensor that was accepted can be read.
            if let Ok(w) = open_bytes(&bytes) {
                for info in w.iter() {
                    prop_assert!(w.read(info).is_ok());
                }
            }
        }
    }
}
