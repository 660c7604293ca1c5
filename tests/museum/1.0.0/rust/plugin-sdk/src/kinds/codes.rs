//! The values of columns that hold codes.

/// Values of the `phase` column of `step`, `op`, `attention`, `moe_route`, `sched` and `quant`.
pub mod phase {
    /// All tokens of the step are prompt tokens.
    pub const PREFILL: u8 = 0;
    /// Each sequence of the step contributes the token it generated last.
    pub const DECODE: u8 = 1;
    /// Prompt chunks and generated tokens share the step.
    pub const MIXED: u8 = 2;
    /// Work done once when the model was loaded (weights that were quantised), outside any step.
    pub const LOAD: u8 = 3;

    /// The word that labels metrics; `unknown` for a code this version does not know.
    pub const fn name(code: u8) -> &'static str {
        match code {
            PREFILL => "prefill",
            DECODE => "decode",
            MIXED => "mixed",
            LOAD => "load",
            _ => "unknown",
        }
    }
}

/// Values of the `phase` column of `request`.
pub mod request_phase {
    /// The moment at which the workload wanted the request to start.
    pub const DUE: u8 = 0;
    /// A concurrency slot was granted.
    pub const PERMIT: u8 = 1;
    /// The request left for the engine.
    pub const SENT: u8 = 2;
    /// The first output token arrived.
    pub const FIRST_TOKEN: u8 = 3;
    /// The last output token arrived.
    pub const LAST_CONTENT: u8 = 4;
    /// The request ended well.
    pub const FINISHED: u8 = 5;
    /// The request ended with an error; the `error` column names it.
    pub const FAILED: u8 = 6;
    /// The request was given up by the client.
    pub const CANCELLED: u8 = 7;
}

/// Values of the `op` column of `op`.
pub mod op_code {
    /// Token embedding look-up.
    pub const EMBED: u8 = 0;
    /// A normalisation.
    pub const NORM: u8 = 1;
    /// Query, key and value projections with rotary embedding.
    pub const QKV: u8 = 2;
    /// Attention over the KV cache, cache update included.
    pub const ATTENTION: u8 = 3;
    /// Output projection of attention.
    pub const O_PROJ: u8 = 4;
    /// Router of a mixture of experts.
    pub const ROUTER: u8 = 5;
    /// Expert MLPs of a mixture of experts.
    pub const EXPERTS: u8 = 6;
    /// Dense MLP.
    pub const MLP: u8 = 7;
    /// Projection to the vocabulary.
    pub const LM_HEAD: u8 = 8;
    /// Choice of the next token.
    pub const SAMPLE: u8 = 9;

    /// Number of codes.
    pub const COUNT: usize = 10;

    /// The word that labels metrics; `unknown` for a code this version does not know.
    pub const fn name(code: u8) -> &'static str {
        match code {
            EMBED => "embed",
            NORM => "norm",
            QKV => "qkv",
            ATTENTION => "attention",
            O_PROJ => "o_proj",
            ROUTER => "router",
            EXPERTS => "experts",
            MLP => "mlp",
            LM_HEAD => "lm_head",
            SAMPLE => "sample",
            _ => "unknown",
        }
    }
}
