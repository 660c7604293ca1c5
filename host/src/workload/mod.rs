//! What the engine is asked to do: prompts, seeded and pure.

mod prompts;
mod text;

pub use prompts::{PromptError, PromptTokens, Prompts, TextEncoder};
