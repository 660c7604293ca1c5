//! Models as data: shapes, weight files, tokenizers and memory needs. Nothing here computes.
//!
//! An engine opens a [`Model`], asks [`Weights`] for tensors by their canonical (GGUF) name and gets shape, storage
//! type and raw little-endian bytes; which kernels use them is the engine's own affair.

mod config;
mod digest;
mod dummy;
pub mod gguf;
mod hf_config;
mod hf_names;
mod memory;
mod open;
mod parameters;
mod presets;
mod safetensors;
mod storage;
mod tokenizer;
mod weights;

pub use config::{Architecture, ConfigError, ExpertConfig, ModelConfig, RopeLayout, RopeScaling};
pub use hf_config::{HfConfigError, config_from_json};
pub use memory::{Available, MemoryError, MemoryNeed, available_memory};
pub use open::{LoadFormat, Model, OpenError, open};
pub use presets::{preset, preset_names};
pub use safetensors::SafetensorsError;
pub use storage::StorageType;
pub use tokenizer::{Tokenizer, TokenizerError};
pub use weights::{SeededValues, TensorInfo, WeightError, Weights};
