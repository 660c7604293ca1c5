//! Facts about the machine, the engine and the model. A fact that could not be found out is `null`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine and the build.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Operating system, such as `Debian GNU/Linux 13 (trixie)`.
    pub os: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Instruction set, such as `x86_64`.
    pub arch: String,
    /// The processor.
    pub cpu: Cpu,
    /// Memory of the machine in bytes.
    pub memory_total_bytes: Option<u64>,
    /// Memory that was available at the start, in bytes.
    pub memory_available_bytes: Option<u64>,
    /// Limits of the control group the run was in.
    pub cgroup: Cgroup,
    /// Mean number of runnable tasks over the minute before the start.
    pub load_1m: Option<f64>,
    /// GPUs that were found.
    pub gpus: Vec<Gpu>,
    /// How this program was built.
    pub build: Build,
}

/// The processor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// Model name.
    pub model: Option<String>,
    /// Physical cores.
    pub physical_cores: Option<u32>,
    /// Hardware threads.
    pub logical_cores: Option<u32>,
    /// Hardware threads that this process may use.
    pub usable_cores: Option<u32>,
    /// Frequency governor, such as `performance`.
    pub governor: Option<String>,
    /// Vector extensions that kernels may use, such as `avx2`.
    pub features: Vec<String>,
}

/// Limits of the control group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cgroup {
    /// Processor time per time, in cores; `null` without a limit.
    pub cpu_cores: Option<f64>,
    /// Memory in bytes; `null` without a limit.
    pub memory_bytes: Option<u64>,
}

/// A GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gpu {
    /// Index among the visible GPUs.
    pub index: u32,
    /// Product name.
    pub name: String,
    /// Unique id.
    pub uuid: Option<String>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Compute capability, such as `9.0`.
    pub compute_capability: Option<String>,
    /// Driver version.
    pub driver: Option<String>,
    /// Power limit in watts.
    pub power_limit_w: Option<f64>,
    /// Whether it is a slice of a partitioned GPU (MIG).
    pub partitioned: Option<bool>,
}

/// How this program was built.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Build {
    /// Profile, such as `release`.
    pub profile: String,
    /// Architecture and system that it was built for, such as `x86_64-linux`.
    pub target: String,
}

/// What computed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EngineFacts {
    /// Engine, such as `candle`.
    pub name: String,
    /// Version of its library.
    pub version: Option<String>,
    /// Device, such as `cpu` or `cuda:0`.
    pub device: String,
    /// Type of activations and KV cache, such as `f32`.
    pub dtype: String,
    /// Threads it computes with.
    pub threads: u32,
    /// Kernels chosen, one per kind of operation.
    pub kernels: Vec<String>,
    /// Quantisation that the engine applied; `none` where there was none.
    pub quantization: String,
    /// Bytes of the weights as they lie in memory.
    pub weight_bytes: u64,
    /// Bytes that one token leaves in the KV cache, over all layers.
    pub kv_bytes_per_token: u64,
    /// Whether decode steps were replayed from a recorded graph; `null` where the engine knows no graphs.
    pub graph: Option<bool>,
}

/// The model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelFacts {
    /// Preset or path as the user gave it.
    pub name: String,
    /// Architecture, such as `llama`.
    pub architecture: String,
    /// Form of the weights: `gguf`, `safetensors` or `dummy` (from a seed).
    pub format: String,
    /// Type of the weights as stored, such as `q4_1` or `bf16`; of several types the one that most values have.
    pub weight_type: Option<String>,
    /// SHA-256 of the weights' file, of several files as one in order of their names
    /// (`cat model-*.safetensors | sha256sum`); `null` for weights from a seed.
    pub sha256: Option<String>,
    /// Parameters.
    pub parameters: u64,
    /// Parameters that take part in one token: all but those of the experts that the router does not choose.
    pub active_parameters: Option<u64>,
    /// Transformer layers.
    pub layers: u32,
    /// Size of the hidden state.
    pub hidden: u32,
    /// Query heads.
    pub heads: u32,
    /// Key and value heads.
    pub kv_heads: u32,
    /// Size of a head.
    pub head_dim: u32,
    /// Experts per layer; 0 for a dense model.
    pub experts: u32,
    /// Experts chosen per token; 0 for a dense model.
    pub experts_per_token: u32,
    /// Entries of the vocabulary.
    pub vocab: u32,
    /// Longest sequence that the model was made for.
    pub context_length: Option<u32>,
    /// Whether text is turned into tokens by the model's own tokenizer.
    pub tokenizer: bool,
}
