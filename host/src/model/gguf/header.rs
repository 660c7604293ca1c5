//! What a GGUF header holds and what can be wrong with it.

use std::collections::BTreeMap;
use std::io;

use thiserror::Error;

use super::directory::GgufTensor;
use super::value::Value;

/// A parsed header.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// Format version, 2 or 3.
    pub version: u32,
    /// Metadata by key.
    pub metadata: BTreeMap<String, Value>,
    /// Tensors in the order of the file.
    pub tensors: Vec<GgufTensor>,
}

impl Header {
    /// The metadata value with this key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.metadata.get(key)
    }
}

/// A file that is not a usable GGUF file.
#[derive(Debug, Error)]
pub enum GgufError {
    /// The system refused to read.
    #[error("cannot read the GGUF header: {0}")]
    Io(#[from] io::Error),
    /// The file starts with something else.
    #[error("not a GGUF file: it starts with {0:02x?} instead of \"GGUF\"")]
    Magic([u8; 4]),
    /// A format from before GGUF.
    #[error("a {0} file from before GGUF; convert it with llama.cpp's convert script")]
    Legacy(&'static str),
    /// Written for another byte order.
    #[error(
        "a big-endian GGUF file; only little-endian files can be read (convert it with gguf_convert_endian)"
    )]
    BigEndian,
    /// Too old or too new.
    #[error("GGUF version {0}; versions 2 and 3 can be read")]
    Version(u32),
    /// The header runs past the end of the file, or past the limit.
    #[error("the GGUF header is cut off: {what} at byte {at} needs {needed} bytes, {left} are left")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Position in the file.
        at: u64,
        /// Bytes needed at least.
        needed: u64,
        /// Bytes that follow.
        left: u64,
    },
    /// A value outside its range.
    #[error("damaged GGUF header at byte {at}: {what}")]
    Malformed {
        /// What is wrong.
        what: String,
        /// Position in the file.
        at: u64,
    },
    /// A tensor that does not fit the file.
    #[error("damaged GGUF tensor `{name}`: {what}")]
    Tensor {
        /// Its name.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// A tensor in a format that cannot be computed with.
    #[error(
        "GGUF tensor `{name}` is of ggml type {code}; supported: F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K to Q6_K"
    )]
    TensorType {
        /// Its name.
        name: String,
        /// The type's number.
        code: u32,
    },
}
