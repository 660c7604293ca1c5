//! The model's shape from a Hugging Face `config.json`.

use serde_json::{Map, Value};
use thiserror::Error;

use super::config::{Architecture, ConfigError, ExpertConfig, ModelConfig, RopeLayout, RopeScaling};
use super::storage::StorageType;

#[cfg(test)]
mod tests;

/// A `config.json` that does not describe a model this program knows.
#[derive(Debug, Error)]
pub enum HfConfigError {
    /// Not JSON, or not an object.
    #[error("config.json: {0}")]
    Json(String),
    /// A family without an implementation.
    #[error("config.json: model_type `{found}`; supported: {supported}")]
    Architecture {
        /// What the file says.
        found: String,
        /// What there is.
        supported: String,
    },
    /// A key that must be there.
    #[error("config.json lacks `{0}`")]
    Missing(&'static str),
    /// A key of the wrong type or range.
    #[error("config.json: `{key}` is {found}, expected {expected}")]
    Value {
        /// The key.
        key: &'static str,
        /// What it holds.
        found: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// A feature that changes results and is not implemented.
    #[error("config.json: {0}, which is not supported")]
    Unsupported(String),
    /// Sizes that do not fit together.
    #[error("config.json: {0}")]
    Config(#[from] ConfigError),
}

struct Keys(Map<String, Value>);

impl Keys {
    /// A key's value; `null` counts as absent, as in the reference implementation.
    fn find(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|v| !v.is_null())
    }

    fn size(&self, key: &'static str) -> Result<Option<usize>, HfConfigError> {
        let Some(value) = self.find(key) else {
            return Ok(None);
        };
        value
            .as_u64()
            .and_then(|v| usize::try_from(v).ok())
            .map(Some)
            .ok_or_else(|| wrong(key, value, "a whole number of 0 or more"))
    }

    fn required(&self, key: &'static str) -> Result<usize, HfConfigError> {
        self.size(key)?.ok_or(HfConfigError::Missing(key))
    }

    fn float(&self, key: &'static str, default: f32) -> Result<f32, HfConfigError> {
        self.find(key).map_or(Ok(default), |v| number(key, v))
    }

    fn bool(&self, key: &'static str, default: bool) -> Result<bool, HfConfigError> {
        self.find(key).map_or(Ok(default), |v| {
            v.as_bool().ok_or_else(|| wrong(key, v, "true or false"))
        })
    }

    fn text(&self, key: &'static str) -> Result<Option<&str>, HfConfigError> {
        self.find(key)
            .map(|v| v.as_str().ok_or_else(|| wrong(key, v, "text")))
            .transpose()
    }
}

fn number(key: &'static str, value: &Value) -> Result<f32, HfConfigError> {
    value
        .as_f64()
        .map(|v| v as f32)
        .ok_or_else(|| wrong(key, value, "a number"))
}

fn wrong(key: &'static str, value: &Value, expected: &'static str) -> HfConfigError {
    let mut found: String = value.to_string().chars().take(60).collect();
    if found.len() < value.to_string().len() {
        found.push('…');
    }
    HfConfigError::Value { key, found, expected }
}

/// Parses the text of a `config.json` and validates the shape. `name` becomes the model's name.
pub fn config_from_json(text: &str, name: &str) -> Result<ModelConfig, HfConfigError> {
    let value: Value = serde_json::from_str(text).map_err(|e| HfConfigError::Json(e.to_string()))?;
    let Value::Object(map) = value else {
        return Err(HfConfigError::Json("the top level is not an object".into()));
    };
    let keys = Keys(map);
    let architecture = architecture(&keys)?;
    refuse_unsupported(&keys, architecture)?;
    let hidden = keys.required("hidden_size")?;
    let heads = keys.required("num_attention_heads")?;
    let head_dim = head_dim(&keys, hidden, heads)?;
    let experts = experts(&keys, architecture)?;
    let (rope_theta, rope_scaling) = rope(&keys, architecture)?;
    let config = ModelConfig {
        name: name.to_owned(),
        architecture,
        layers: keys.required("num_hidden_layers")?,
        hidden,
        intermediate: match experts {
            Some(e) => e.intermediate,
            None => keys.required("intermediate_size")?,
        },
        heads,
        kv_heads: keys.size("num_key_value_heads")?.unwrap_or(heads),
        head_dim,
        vocab: keys.required("vocab_size")?,
        rope_theta,
        rope_scaling,
        rope_layout: RopeLayout::Halves,
        rms_eps: keys.float("rms_norm_eps", default_eps(architecture))?,
        tie_embeddings: keys.bool("tie_word_embeddings", false)?,
        qk_norm: matches!(architecture, Architecture::Qwen3 | Architecture::Qwen3Moe),
        qkv_bias: architecture == Architecture::Qwen2,
        experts,
        max_context: keys.required("max_position_embeddings")?,
        sliding_window: sliding_window(&keys)?,
        eos: tokens(&keys, "eos_token_id")?,
        bos: tokens(&keys, "bos_token_id")?.first().copied(),
        storage: storage(&keys)?,
    };
    config.validate()?;
    Ok(config)
}

fn architecture(keys: &Keys) -> Result<Architecture, HfConfigError> {
    let found = keys
        .text("model_type")?
        .ok_or(HfConfigError::Missing("model_type"))?;
    Architecture::ALL
        .into_iter()
        .find(|a| a.name() == found)
        .ok_or_else(|| HfConfigError::Architecture {
            found: found.to_owned(),
            supported: Architecture::list(),
        })
}

fn refuse_unsupported(keys: &Keys, architecture: Architecture) -> Result<(), HfConfigError> {
    let unsupported = |what: String| Err(HfConfigError::Unsupported(what));
    if let Some(act) = keys.text("hidden_act")?
        && act != "silu"
    {
        return unsupported(format!("activation `{act}` (only silu)"));
    }
    if keys.bool("attention_bias", false)? && architecture != Architecture::Qwen2 {
        return unsupported("attention_bias with a bias on the output projection".into());
    }
    if keys.bool("mlp_bias", false)? {
        return unsupported("mlp_bias".into());
    }
    if keys.float("partial_rotary_factor", 1.0)? != 1.0 {
        return unsupported("partial_rotary_factor other than 1".into());
    }
    if let Some(method) = keys.find("quantization_config") {
        let method = method
            .get("quant_method")
            .and_then(Value::as_str)
            .unwrap_or("unnamed");
        return unsupported(format!(
            "weights quantised with `{method}` (use f32, f16 or bf16 weights, or a GGUF file)"
        ));
    }
    if architecture == Architecture::Qwen3Moe {
        let dense = keys.find("mlp_only_layers").and_then(Value::as_array);
        if dense.is_some_and(|l| !l.is_empty()) || keys.size("decoder_sparse_step")?.unwrap_or(1) != 1 {
            return unsupported("layers without experts between layers with experts".into());
        }
    }
    Ok(())
}

fn head_dim(keys: &Keys, hidden: usize, heads: usize) -> Result<usize, HfConfigError> {
    if let Some(dim) = keys.size("head_dim")? {
        return Ok(dim);
    }
    if heads == 0 {
        return Err(ConfigError::Zero("heads").into());
    }
    if hidden.is_multiple_of(heads) {
        return Ok(hidden / heads);
    }
    Err(ConfigError::NotMultiple {
        whole: "hidden",
        whole_value: hidden,
        part: "heads",
        part_value: heads,
    }
    .into())
}

fn experts(keys: &Keys, architecture: Architecture) -> Result<Option<ExpertConfig>, HfConfigError> {
    let per_token = || keys.required("num_experts_per_tok");
    match architecture {
        Architecture::Mixtral => Ok(Some(ExpertConfig {
            count: keys.required("num_local_experts")?,
            per_token: per_token()?,
            intermediate: keys.required("intermediate_size")?,
            normalise_gates: true,
        })),
        Architecture::Qwen3Moe => Ok(Some(ExpertConfig {
            count: keys.required("num_experts")?,
            per_token: per_token()?,
            intermediate: keys.required("moe_intermediate_size")?,
            normalise_gates: keys.bool("norm_topk_prob", false)?,
        })),
        _ => Ok(None),
    }
}

/// Defaults of the reference implementation's configuration classes.
fn default_eps(architecture: Architecture) -> f32 {
    match architecture {
        Architecture::Mixtral => 1e-5,
        _ => 1e-6,
    }
}

fn rope(keys: &Keys, architecture: Architecture) -> Result<(f32, RopeScaling), HfConfigError> {
    let default = match architecture {
        Architecture::Mixtral => 1_000_000.0,
        _ => 10_000.0,
    };
    let theta = keys.float("rope_theta", default)?;
    // Newer files keep base and scaling together in `rope_parameters`.
    let Some(table) = keys.find("rope_parameters").or_else(|| keys.find("rope_scaling")) else {
        return Ok((theta, RopeScaling::None));
    };
    let Value::Object(table) = table else {
        return Err(wrong("rope_scaling", table, "an object"));
    };
    let table = Keys(table.clone());
    let theta = table.float("rope_theta", theta)?;
    let kind = match table.text("rope_type")? {
        Some(kind) => Some(kind),
        None => table.text("type")?,
    };
    let scaling = match kind {
        None | Some("default") => RopeScaling::None,
        Some("linear") => RopeScaling::Linear {
            factor: required_float(&table, "factor")?,
        },
        Some("llama3") => RopeScaling::Llama3 {
            factor: required_float(&table, "factor")?,
            low_freq_factor: required_float(&table, "low_freq_factor")?,
            high_freq_factor: required_float(&table, "high_freq_factor")?,
            original_context: table.required("original_max_position_embeddings")?,
        },
        Some(other) => {
            return Err(HfConfigError::Unsupported(format!(
                "rope scaling `{other}` (supported: default, linear, llama3)"
            )));
        }
    };
    Ok((theta, scaling))
}

fn required_float(keys: &Keys, key: &'static str) -> Result<f32, HfConfigError> {
    let value = keys.find(key).ok_or(HfConfigError::Missing(key))?;
    number(key, value)
}

fn sliding_window(keys: &Keys) -> Result<Option<usize>, HfConfigError> {
    // The Qwen families carry a window that counts only when this switch is on.
    if !keys.bool("use_sliding_window", true)? {
        return Ok(None);
    }
    match keys.size("sliding_window")? {
        Some(0) => Err(ConfigError::Zero("sliding_window").into()),
        other => Ok(other),
    }
}

fn tokens(keys: &Keys, key: &'static str) -> Result<Vec<u32>, HfConfigError> {
    let Some(value) = keys.find(key) else {
        return Ok(Vec::new());
    };
    let one = |v: &Value| v.as_u64().and_then(|v| u32::try_from(v).ok());
    let ids = match value {
        Value::Array(list) => list.iter().map(one).collect(),
        single => one(single).map(|id| vec![id]),
    };
    ids.ok_or_else(|| wrong(key, value, "a token id or a list of token ids"))
}

fn storage(keys: &Keys) -> Result<StorageType, HfConfigError> {
    let key = if keys.find("dtype").is_some() {
        "dtype"
    } else {
        "torch_dtype"
    };
    match keys.text(key)? {
        None | Some("float32") => Ok(StorageType::F32),
        Some("bfloat16") => Ok(StorageType::Bf16),
        Some("float16") => Ok(StorageType::F16),
        Some(other) => Err(HfConfigError::Unsupported(format!(
            "dtype `{other}` (supported: float32, float16, bfloat16)"
        ))),
    }
}
