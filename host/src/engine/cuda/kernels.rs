//! The kernels' source, compiled for the device at run time.

use cudarc::nvrtc::{CompileError, CompileOptions, Ptx, compile_ptx_with_opts};

use crate::engine::EngineError;
use crate::model::ModelConfig;

/// Tokens per block of the paged cache.
pub(super) const BLOCK_TOKENS: usize = 16;
/// Widths of a head that the kernels are written for.
pub(super) const HEAD_DIMS: [usize; 4] = [32, 64, 96, 128];
/// Most query heads per key/value head: each takes registers of the decode kernel.
pub(super) const MOST_GROUPED: usize = 8;

/// Every kernel, in the order in which the files need one another.
const SOURCE: &str = concat!(
    include_str!("kernels/common.cuh"),
    include_str!("kernels/elementwise.cu"),
    include_str!("kernels/gemv.cu"),
    include_str!("kernels/decode_attention.cu"),
    include_str!("kernels/prefill_attention.cu"),
);

/// Names of the kernels.
pub(super) const NAMES: [&str; 13] = [
    "fill_seeded",
    "embed",
    "add_norm",
    "rope_store",
    "silu_mul",
    "argmax",
    "gemv1",
    "gemv2",
    "gemv3",
    "gemv4",
    "decode_attention",
    "combine_parts",
    "prefill_attention",
];

/// The virtual architecture to compile for; the driver translates it for the device.
pub(super) fn architecture((major, _): (i32, i32)) -> &'static str {
    if major >= 9 { "compute_90" } else { "compute_80" }
}

/// Compiles all kernels for heads of this shape.
pub(super) fn compile(config: &ModelConfig, architecture: &'static str) -> Result<Ptx, EngineError> {
    let options = CompileOptions {
        arch: Some(architecture),
        options: vec![
            format!("-DHEAD_DIM={}", config.head_dim),
            format!("-DGROUP={}", config.heads / config.kv_heads),
            format!("-DBLOCK_TOKENS={BLOCK_TOKENS}"),
        ],
        ..CompileOptions::default()
    };
    compile_ptx_with_opts(SOURCE, options).map_err(|error| EngineError::Compute {
        operation: "compiling the CUDA kernels",
        message: match error {
            CompileError::CompileError { log, .. } => log.to_string_lossy().into_owned(),
            other => format!("{other:?}"),
        },
    })
}
