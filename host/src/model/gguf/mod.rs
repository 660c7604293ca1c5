//! GGUF files, versions 2 and 3, little-endian: metadata, tensor directory, and what they say about the model.
//!
//! The reader trusts nothing: every count is checked against the bytes that are left before memory is taken for it,
//! every offset and product for overflow, every tensor for lying inside the file.

mod cursor;
mod directory;
mod header;
mod shape;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod value;

pub use directory::{GgufTensor, read_header};
pub use header::{GgufError, Header};
pub use shape::{GgufConfigError, config_from_gguf};
pub use value::{Array, Value};
