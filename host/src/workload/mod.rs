//! What the engine is asked to do: prompts, lengths and arrivals, seeded and pure.

mod arrivals;
mod lengths;
mod prompts;
mod requests;
mod text;

pub use arrivals::{Arrivals, RateError, RequestRate};
pub use lengths::{Lengths, LengthsError};
pub use prompts::{PromptError, PromptTokens, Prompts, TextEncoder};
pub use requests::{LoadRequest, LoadRequests, LoadShape};
