//! The model's shape from GGUF metadata.

use thiserror::Error;

use super::header::Header;
use super::value::Value;
use crate::model::config::{Architecture, ConfigError, ExpertConfig, ModelConfig, RopeLayout, RopeScaling};
use crate::model::storage::StorageType;

/// Metadata that does not describe a model this program knows.
#[derive(Debug, Error)]
pub enum GgufConfigError {
    /// An architecture without an implementation.
    #[error("GGUF architecture `{0}`; supported: llama (also Mistral, Mixtral), qwen2, qwen3, qwen3moe")]
    Architecture(String),
    /// A key that must be there.
    #[error("GGUF metadata lacks `{0}`")]
    Missing(String),
    /// A key of the wrong type or range.
    #[error("GGUF metadata `{key}` is {found}, expected {expected}")]
    Value {
        /// The key.
        key: String,
        /// What it holds.
        found: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// A feature that changes results and is not implemented.
    #[error("this GGUF file needs {0}, which is not supported")]
    Unsupported(String),
    /// Sizes that do not fit together.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

struct Keys<'a> {
    header: &'a Header,
    prefix: &'a str,
}

impl<'a> Keys<'a> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.prefix)
    }

    fn find(&self, name: &str) -> Option<(String, &'a Value)> {
        let key = self.key(name);
        self.header.get(&key).map(|value| (key, value))
    }

    fn size(&self, name: &str) -> Result<Option<usize>, GgufConfigError> {
        let Some((key, value)) = self.find(name) else {
            return Ok(None);
        };
        value
            .as_u64()
            .and_then(|v| usize::try_from(v).ok())
            .map(Some)
            .ok_or_else(|| wrong(key, value, "one whole number (per-layer lists are not supported)"))
    }

    fn required(&self, name: &str) -> Result<usize, GgufConfigError> {
        self.size(name)?
            .ok_or_else(|| GgufConfigError::Missing(self.key(name)))
    }

    fn float(&self, name: &str) -> Result<Option<f32>, GgufConfigError> {
        let Some((key, value)) = self.find(name) else {
            return Ok(None);
        };
        value
            .as_f64()
            .map(|v| Some(v as f32))
            .ok_or_else(|| wrong(key, value, "a number"))
    }
}

fn wrong(key: String, value: &Value, expected: &'static str) -> GgufConfigError {
    let found = match value {
        Value::Array(_) => "a list".to_owned(),
        other => format!("{other:?}"),
    };
    GgufConfigError::Value { key, found, expected }
}

/// Reads the shape that the metadata and the tensor directory describe, and validates it.
pub fn config_from_gguf(header: &Header) -> Result<ModelConfig, GgufConfigError> {
    let missing = |key: &str| GgufConfigError::Missing(key.to_owned());
    let arch = header
        .get("general.architecture")
        .and_then(Value::as_str)
        .ok_or_else(|| missing("general.architecture"))?;
    let keys = Keys { header, prefix: arch };
    let architecture = architecture(arch, &keys)?;
    refuse_shards(header)?;
    let hidden = keys.required("embedding_length")?;
    let heads = keys.required("attention.head_count")?;
    let head_dim = head_dim(&keys, hidden, heads)?;
    let feed_forward = keys.size("feed_forward_length")?;
    let experts = experts(&keys, feed_forward)?;
    let intermediate = experts.map(|e| e.intermediate).or(feed_forward);
    let config = ModelConfig {
        name: name(header, arch),
        architecture,
        layers: keys.required("block_count")?,
        hidden,
        intermediate: intermediate.ok_or_else(|| missing(&keys.key("feed_forward_length")))?,
        heads,
        kv_heads: keys.size("attention.head_count_kv")?.unwrap_or(heads),
        head_dim,
        vocab: vocab(header, &keys)?,
        rope_theta: keys.float("rope.freq_base")?.unwrap_or(10_000.0),
        rope_scaling: scaling(&keys)?,
        rope_layout: if arch == "llama" {
            RopeLayout::Interleaved
        } else {
            RopeLayout::Halves
        },
        rms_eps: keys
            .float("attention.layer_norm_rms_epsilon")?
            .ok_or_else(|| missing(&keys.key("attention.layer_norm_rms_epsilon")))?,
        tie_embeddings: !has_tensor(header, "output.weight"),
        qk_norm: matches!(architecture, Architecture::Qwen3 | Architecture::Qwen3Moe),
        qkv_bias: has_tensor(header, "blk.0.attn_q.bias"),
        experts,
        max_context: keys.required("context_length")?,
        sliding_window: keys.size("attention.sliding_window")?.filter(|&w| w > 0),
        eos: token(header, "tokenizer.ggml.eos_token_id").into_iter().collect(),
        bos: token(header, "tokenizer.ggml.bos_token_id"),
        storage: main_storage(header),
    };
    config.validate()?;
    Ok(config)
}

fn architecture(arch: &str, keys: &Keys<'_>) -> Result<Architecture, GgufConfigError> {
    match arch {
        "llama" if keys.size("expert_count")?.unwrap_or(0) > 0 => Ok(Architecture::Mixtral),
        "llama" => Ok(Architecture::Llama),
        "qwen2" => Ok(Architecture::Qwen2),
        "qwen3" => Ok(Architecture::Qwen3),
        "qwen3moe" => Ok(Architecture::Qwen3Moe),
        other => Err(GgufConfigError::Architecture(other.to_owned())),
    }
}

fn refuse_shards(header: &Header) -> Result<(), GgufConfigError> {
    match header.get("split.count").and_then(Value::as_u64) {
        Some(n) if n > 1 => Err(GgufConfigError::Unsupported(format!(
            "the other {} files of a split model (join them with llama-gguf-split --merge)",
            n - 1
        ))),
        _ => Ok(()),
    }
}

fn head_dim(keys: &Keys<'_>, hidden: usize, heads: usize) -> Result<usize, GgufConfigError> {
    let key_length = keys.size("attention.key_length")?;
    if heads == 0 {
        return Err(ConfigError::Zero("heads").into());
    }
    let dim = match key_length {
        Some(d) => d,
        None if hidden.is_multiple_of(heads) => hidden / heads,
        None => {
            return Err(ConfigError::NotMultiple {
                whole: "hidden",
                whole_value: hidden,
                part: "heads",
                part_value: heads,
            }
            .into());
        }
    };
    if let Some(v) = keys.size("attention.value_length")?
        && v != dim
    {
        return Err(GgufConfigError::Unsupported(format!(
            "value heads of {v} beside key heads of {dim}"
        )));
    }
    if let Some(r) = keys.size("rope.dimension_count")?
        && r != dim
    {
        return Err(GgufConfigError::Unsupported(format!(
            "a rotation of {r} of {dim} head elements"
        )));
    }
    Ok(dim)
}

fn experts(keys: &Keys<'_>, feed_forward: Option<usize>) -> Result<Option<ExpertConfig>, GgufConfigError> {
    let count = keys.size("expert_count")?.unwrap_or(0);
    if count == 0 {
        return Ok(None);
    }
    if keys.size("expert_shared_count")?.unwrap_or(0) > 0 {
        return Err(GgufConfigError::Unsupported("shared experts".into()));
    }
    let intermediate = keys.size("expert_feed_forward_length")?.or(feed_forward);
    Ok(Some(ExpertConfig {
        count,
        per_token: keys.required("expert_used_count")?,
        intermediate: intermediate
            .ok_or_else(|| GgufConfigError::Missing(keys.key("feed_forward_length")))?,
        // llama.cpp renormalises the chosen gates for both families with experts here.
        normalise_gates: true,
    }))
}

fn scaling(keys: &Keys<'_>) -> Result<RopeScaling, GgufConfigError> {
    let kind = keys
        .find("rope.scaling.type")
        .map(|(_, v)| v.as_str().unwrap_or("?"));
    let factor = keys.float("rope.scaling.factor")?;
    match kind {
        None | Some("none") => Ok(RopeScaling::None),
        Some("linear") => Ok(RopeScaling::Linear {
            factor: factor.ok_or_else(|| GgufConfigError::Missing(keys.key("rope.scaling.factor")))?,
        }),
        Some(other) => Err(GgufConfigError::Unsupported(format!(
            "rope scaling `{other}` (supported: none, linear, llama3)"
        ))),
    }
}

fn vocab(header: &Header, keys: &Keys<'_>) -> Result<usize, GgufConfigError> {
    // The embedding decides; `vocab_size` may leave out padding rows.
    if let Some(t) = header.tensors.iter().find(|t| t.name == "token_embd.weight") {
        return Ok(t.shape[0]);
    }
    if let Some(n) = keys.size("vocab_size")? {
        return Ok(n);
    }
    header
        .get("tokenizer.ggml.tokens")
        .and_then(Value::as_strings)
        .map(<[String]>::len)
        .ok_or_else(|| GgufConfigError::Missing(keys.key("vocab_size")))
}

fn name(header: &Header, arch: &str) -> String {
    header
        .get("general.name")
        .and_then(Value::as_str)
        .unwrap_or(arch)
        .chars()
        .filter(|c| !c.is_control())
        .take(128)
        .collect()
}

fn has_tensor(header: &Header, name: &str) -> bool {
    header.tensors.iter().any(|t| t.name == name)
}

fn token(header: &Header, key: &str) -> Option<u32> {
    header.get(key)?.as_u64()?.try_into().ok()
}

/// The storage type that holds most of the values.
fn main_storage(header: &Header) -> StorageType {
    let mut totals: Vec<(StorageType, u64)> = Vec::new();
    for t in &header.tensors {
        let values = t.shape.iter().map(|&d| d as u64).product::<u64>();
        match totals.iter_mut().find(|(s, _)| *s == t.storage) {
            Some((_, n)) => *n += values,
            None => totals.push((t.storage, values)),
        }
    }
    totals
        .into_iter()
        .max_by_key(|&(_, n)| n)
        .map_or(StorageType::F32, |(s, _)| s)
}
