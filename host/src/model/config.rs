//! The shape of a decoder-only transformer.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::storage::StorageType;

/// Decoder families whose layers an engine knows how to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Architecture {
    /// Llama 1 to 3, SmolLM2 and others with the same layer.
    Llama,
    /// Mistral 7B and later dense models of that family.
    Mistral,
    /// Qwen2 and Qwen2.5: biases on query, key and value.
    Qwen2,
    /// Qwen3 dense: RMS norm on each query and key head.
    Qwen3,
    /// Mixtral: the MLP is a mixture of experts, gates renormalised over the chosen experts.
    Mixtral,
    /// Qwen3 mixture of experts: query and key norms and a softmax router over all experts.
    Qwen3Moe,
}

impl Architecture {
    /// Every family, in the order error messages list them.
    pub const ALL: [Self; 6] = [
        Self::Llama,
        Self::Mistral,
        Self::Qwen2,
        Self::Qwen3,
        Self::Mixtral,
        Self::Qwen3Moe,
    ];

    /// The name `config.json` uses as `model_type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Mistral => "mistral",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
            Self::Mixtral => "mixtral",
            Self::Qwen3Moe => "qwen3_moe",
        }
    }

    /// The names of all families, comma separated.
    pub fn list() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

/// Which elements of a head one rotation of the rotary embedding pairs up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RopeLayout {
    /// Element `i` with `i + head_dim/2` (Hugging Face, GPT-NeoX).
    Halves,
    /// Element `2i` with `2i + 1` (GGUF files of the `llama` architecture).
    Interleaved,
}

/// Stretching of the rotary frequencies beyond the trained context.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RopeScaling {
    /// Frequencies as trained.
    None,
    /// All frequencies divided by `factor`.
    Linear {
        /// Divisor of each frequency, above 0.
        factor: f32,
    },
    /// Llama 3.1: long wavelengths divided by `factor`, short ones kept, a ramp between.
    Llama3 {
        /// Divisor of the lowest frequencies.
        factor: f32,
        /// Wavelengths above `original_context / low_freq_factor` are divided in full.
        low_freq_factor: f32,
        /// Wavelengths below `original_context / high_freq_factor` are kept.
        high_freq_factor: f32,
        /// Context the model was first trained with, in tokens.
        original_context: usize,
    },
}

/// A mixture-of-experts MLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpertConfig {
    /// Experts per layer.
    pub count: usize,
    /// Experts each token is sent to.
    pub per_token: usize,
    /// Hidden width of one expert.
    pub intermediate: usize,
    /// Whether the chosen gates are divided by their sum.
    pub normalise_gates: bool,
}

/// Everything an engine needs to know about a model besides its weights. Sizes are element counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelConfig {
    /// Preset name, or the name the file gives itself.
    pub name: String,
    /// Layer family.
    pub architecture: Architecture,
    /// Number of decoder layers.
    pub layers: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Width of the dense MLP (of one expert where there are experts).
    pub intermediate: usize,
    /// Query heads.
    pub heads: usize,
    /// Key/value heads; divides `heads`.
    pub kv_heads: usize,
    /// Width of one head; even.
    pub head_dim: usize,
    /// Rows of the embedding and of the LM head.
    pub vocab: usize,
    /// Base of the rotary frequencies.
    pub rope_theta: f32,
    /// Stretching of the rotary frequencies.
    pub rope_scaling: RopeScaling,
    /// Pairing of elements in the rotation.
    pub rope_layout: RopeLayout,
    /// Added to the mean square before the root in RMS norm.
    pub rms_eps: f32,
    /// Whether the LM head is the embedding matrix.
    pub tie_embeddings: bool,
    /// RMS norm on each query and key head.
    pub qk_norm: bool,
    /// Bias on the query, key and value projections.
    pub qkv_bias: bool,
    /// The experts, where the MLP is a mixture.
    pub experts: Option<ExpertConfig>,
    /// Longest sequence the model was made for, in tokens (prompt plus output).
    pub max_context: usize,
    /// Window beyond which attention would have to be cut; engines that cannot cut refuse longer sequences.
    pub sliding_window: Option<usize>,
    /// Tokens that end a sequence.
    pub eos: Vec<u32>,
    /// Token that starts a sequence.
    pub bos: Option<u32>,
    /// Storage of the large matrices as the file has them, or as a dummy model has them.
    pub storage: StorageType,
}

/// A shape that no model can have.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    /// A size of zero.
    #[error("model shape: `{0}` is 0; it must be at least 1")]
    Zero(&'static str),
    /// A size beyond any model known, most likely a damaged file.
    #[error(
        "model shape: `{field}` is {value}, above the limit of {limit}; the file is damaged or not a model"
    )]
    Absurd {
        /// Name of the size.
        field: &'static str,
        /// What the file says.
        value: usize,
        /// What is accepted.
        limit: usize,
    },
    /// Sizes that must divide each other.
    #[error("model shape: `{whole}` {whole_value} is not a multiple of `{part}` {part_value}")]
    NotMultiple {
        /// The larger size.
        whole: &'static str,
        /// Its value.
        whole_value: usize,
        /// The size that should divide it.
        part: &'static str,
        /// Its value.
        part_value: usize,
    },
    /// A router that chooses more experts than there are.
    #[error("model shape: {per_token} experts per token of only {experts} experts")]
    TooManyExpertsPerToken {
        /// Chosen per token.
        per_token: usize,
        /// Present per layer.
        experts: usize,
    },
    /// A number that must be finite and positive.
    #[error("model shape: `{field}` is {value}; it must be a finite number above 0")]
    NotPositive {
        /// Name of the number.
        field: &'static str,
        /// What the file says.
        value: String,
    },
}

/// Limits well above every model published; they keep all later products of sizes inside `u64`.
const LIMITS: [(&str, usize); 9] = [
    ("layers", 1 << 12),
    ("hidden", 1 << 20),
    ("intermediate", 1 << 22),
    ("heads", 1 << 12),
    ("kv_heads", 1 << 12),
    ("head_dim", 1 << 12),
    ("vocab", 1 << 24),
    ("max_context", 1 << 30),
    ("experts", 1 << 14),
];

impl ModelConfig {
    /// Checks that the sizes fit together.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let experts = self.experts.map_or(1, |e| e.count);
        let sizes = [
            self.layers,
            self.hidden,
            self.intermediate,
            self.heads,
            self.kv_heads,
            self.head_dim,
            self.vocab,
            self.max_context,
            experts,
        ];
        for ((field, limit), value) in LIMITS.into_iter().zip(sizes) {
            check_size(field, value, limit)?;
        }
        check_multiple(("heads", self.heads), ("kv_heads", self.kv_heads))?;
        check_multiple(("head_dim", self.head_dim), ("2 (rotary pairs)", 2))?;
        for (field, value) in [("rope_theta", self.rope_theta), ("rms_eps", self.rms_eps)] {
            check_positive(field, value)?;
        }
        self.validate_scaling()?;
        self.validate_experts()
    }

    fn validate_scaling(&self) -> Result<(), ConfigError> {
        match self.rope_scaling {
            RopeScaling::None => Ok(()),
            RopeScaling::Linear { factor } => check_positive("rope_scaling.factor", factor),
            RopeScaling::Llama3 {
                factor,
                low_freq_factor,
                high_freq_factor,
                original_context,
            } => {
                check_positive("rope_scaling.factor", factor)?;
                check_positive("rope_scaling.low_freq_factor", low_freq_factor)?;
                check_positive(
                    "rope_scaling.high_freq_factor - low_freq_factor",
                    high_freq_factor - low_freq_factor,
                )?;
                check_size(
                    "rope_scaling.original_max_position_embeddings",
                    original_context,
                    1 << 30,
                )
            }
        }
    }

    fn validate_experts(&self) -> Result<(), ConfigError> {
        let Some(e) = self.experts else {
            return Ok(());
        };
        check_size("experts per token", e.per_token, 1 << 14)?;
        check_size("expert intermediate", e.intermediate, 1 << 22)?;
        if e.per_token > e.count {
            return Err(ConfigError::TooManyExpertsPerToken {
                per_token: e.per_token,
                experts: e.count,
            });
        }
        Ok(())
    }

    /// Width of all query heads together.
    pub fn q_width(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Width of all key heads together (and of all value heads).
    pub fn kv_width(&self) -> usize {
        self.kv_heads * self.head_dim
    }

    /// Longest sequence an engine without window cutting can run, in tokens.
    pub fn context_limit(&self) -> usize {
        self.sliding_window
            .map_or(self.max_context, |w| w.min(self.max_context))
    }
}

fn check_size(field: &'static str, value: usize, limit: usize) -> Result<(), ConfigError> {
    match value {
        0 => Err(ConfigError::Zero(field)),
        v if v > limit => Err(ConfigError::Absurd { field, value, limit }),
        _ => Ok(()),
    }
}

fn check_multiple(
    (whole, whole_value): (&'static str, usize),
    (part, part_value): (&'static str, usize),
) -> Result<(), ConfigError> {
    if whole_value.is_multiple_of(part_value) {
        return Ok(());
    }
    Err(ConfigError::NotMultiple {
        whole,
        whole_value,
        part,
        part_value,
    })
}

fn check_positive(field: &'static str, value: f32) -> Result<(), ConfigError> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(ConfigError::NotPositive {
        field,
        value: value.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::preset;

    #[test]
    fn heads_that_do_not_divide_are_named() {
        let mut c = preset("tiny-llama").expect("preset");
        c.kv_heads = 3;
        let text = c.validate().expect_err("8 heads, 3 kv heads").to_string();
        assert_eq!(text, "model shape: `heads` 8 is not a multiple of `kv_heads` 3");
    }

    #[test]
    fn zero_absurd_and_non_finite_are_refused() {
        let base = preset("tiny-moe").expect("preset");
        let mut c = base.clone();
        c.layers = 0;
        assert_eq!(c.validate(), Err(ConfigError::Zero("layers")));
        let mut c = base.clone();
        c.vocab = usize::MAX;
        assert!(matches!(
            c.validate(),
            Err(ConfigError::Absurd { field: "vocab", .. })
        ));
        let mut c = base.clone();
        c.rms_eps = f32::NAN;
        assert!(matches!(c.validate(), Err(ConfigError::NotPositive { .. })));
        let mut c = base;
        c.experts = c.experts.map(|e| ExpertConfig { per_token: 9, ..e });
        assert!(matches!(
            c.validate(),
            Err(ConfigError::TooManyExpertsPerToken { .. })
        ));
    }
}
