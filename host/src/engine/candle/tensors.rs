//! Names of the tensors that may be quantised, as `quant` rows carry them.
//!
//! A weight has the role that it has in GGUF files (`blk.<layer>.<role>.weight`), the experts of a layer together one
//! name. An input of a projection is named after what it goes into.

/// Queries.
pub(super) const ATTN_Q: &str = "attn_q";
/// Keys.
pub(super) const ATTN_K: &str = "attn_k";
/// Values.
pub(super) const ATTN_V: &str = "attn_v";
/// Output of the attention.
pub(super) const ATTN_OUTPUT: &str = "attn_output";
/// Gate of the feed-forward part.
pub(super) const FFN_GATE: &str = "ffn_gate";
/// Its first projection.
pub(super) const FFN_UP: &str = "ffn_up";
/// Its last projection.
pub(super) const FFN_DOWN: &str = "ffn_down";

/// Activations that go into the projections of queries, keys and values.
pub(super) const ATTN_INPUT: &str = "attn_input";
/// Activations that go into the output projection.
pub(super) const ATTN_OUTPUT_INPUT: &str = "attn_output_input";
/// Activations that go into gate and first projection.
pub(super) const FFN_INPUT: &str = "ffn_input";
/// Activations that go into the last projection.
pub(super) const FFN_DOWN_INPUT: &str = "ffn_down_input";
