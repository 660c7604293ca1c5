//! What can go wrong between a model and its tokens.

use thiserror::Error;

use crate::model::{MemoryError, WeightError};
use crate::stop::Stopped;

/// A model that an engine cannot load or a step it cannot do.
#[derive(Debug, Error)]
pub enum EngineError {
    /// A tensor is missing, of the wrong shape or unreadable.
    #[error(transparent)]
    Weights(#[from] WeightError),
    /// The machine has too little memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The user wants the run to end; the step or the loading was left unfinished.
    #[error(transparent)]
    Interrupted(#[from] Stopped),
    /// Something this engine cannot do.
    #[error("the {engine} engine cannot do {what}; it can do {supported}")]
    Unsupported {
        /// The engine.
        engine: &'static str,
        /// What was asked for.
        what: String,
        /// What it can do instead.
        supported: String,
    },
    /// A size of zero.
    #[error("{0} is 0; it must be at least 1")]
    Zero(&'static str),
    /// More tokens than the model was made for.
    #[error(
        "sequences of {asked} tokens (prompt plus output) exceed the model's limit of {limit} ({reason})"
    )]
    Context {
        /// Tokens asked for.
        asked: usize,
        /// Tokens possible.
        limit: usize,
        /// What sets the limit.
        reason: &'static str,
    },
    /// A prompt and its output that exceed what was prepared.
    #[error("sequence {sequence} needs {needed} tokens, {prepared} were prepared")]
    Overrun {
        /// Number of the sequence.
        sequence: usize,
        /// Tokens it would have.
        needed: usize,
        /// Tokens there is room for.
        prepared: usize,
    },
    /// Calls out of order.
    #[error("{0}")]
    Order(&'static str),
    /// Another number of sequences than was prepared.
    #[error("{found} sequences given, {expected} prepared")]
    Batch {
        /// Given.
        found: usize,
        /// Prepared.
        expected: usize,
    },
    /// A token outside the vocabulary.
    #[error("token {token} of sequence {sequence} is outside the vocabulary of {vocab} tokens")]
    Token {
        /// Number of the sequence.
        sequence: usize,
        /// The token.
        token: u32,
        /// Size of the vocabulary.
        vocab: usize,
    },
    /// A GPU, its driver or a library that is not there or too old.
    #[error("{0}")]
    Device(String),
    /// The GPU has too little free memory.
    #[error(
        "the GPU has {free} bytes free, weights, cache and activations need {needed}; use a smaller batch, shorter \
         sequences or a smaller model"
    )]
    DeviceMemory {
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// A failure inside a kernel library.
    #[error("{operation} failed: {message}")]
    Compute {
        /// What was being computed.
        operation: &'static str,
        /// What the library said, in one line.
        message: String,
    },
}
