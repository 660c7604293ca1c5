//! Engines: what turns prompts into tokens and says what it did on the way.

pub mod candle;
mod error;
pub mod fp8;
pub mod http;
mod info;
mod marks;
pub mod mock;
#[cfg(test)]
mod testing;

pub use error::EngineError;
pub use info::{EngineInfo, Quantization};

use lm_bench_plugin::Peak;

use crate::events::Recorder;

/// Where tokens come from. One batch of sequences at a time: `begin`, `prefill`, then `decode` for each further token.
pub trait Engine {
    /// What this engine is and what it has loaded.
    fn info(&self) -> &EngineInfo;

    /// Drops all sequences and prepares for `batch` sequences of at most `max_tokens` tokens (prompt plus output).
    fn begin(&mut self, batch: usize, max_tokens: usize) -> Result<(), EngineError>;

    /// Processes one prompt per sequence, of any lengths, and returns the most likely next token of each.
    ///
    /// # Errors
    /// [`EngineError::Interrupted`] if the run's [`Stop`](crate::stop::Stop) was requested meanwhile, as from `decode`;
    /// the sequences can then only be dropped.
    fn prefill(&mut self, prompts: &[Vec<u32>], rec: &mut Recorder) -> Result<Vec<u32>, EngineError>;

    /// Appends one token to each sequence and returns the most likely next token of each.
    fn decode(&mut self, tokens: &[u32], rec: &mut Recorder) -> Result<Vec<u32>, EngineError>;

    /// Records what was done on loading (quantisation of the weights), with phase `load`. Call it once, before the
    /// first step.
    fn record_load(&mut self, _rec: &mut Recorder) {}

    /// Best rates that this device reaches, measured now; empty for engines that cannot tell.
    fn measure_peaks(&self) -> Vec<Peak> {
        Vec::new()
    }

    /// Logits of the last step, `[batch, vocab]`, where the engine keeps them.
    fn logits(&self) -> Option<&[f32]>;
}
