//! Engines behind HTTP: a streaming client of OpenAI's completions interface, as vLLM, SGLang and llama.cpp serve it.
//!
//! ```text
//! socket ──stamped reads──▶ hyper ──body──▶ SseParser ──events──▶ CompletionStream ──▶ Marks (times) + Answer (counts)
//! ```
//!
//! One thread, no locks: connections, pool and requests live on one current-thread runtime.

mod client;
mod completion;
mod endpoint;
mod failure;
mod sse;
mod stamped;

pub use client::{Answer, Call, Client, Marks};
pub use endpoint::{Endpoint, EndpointError};
pub use failure::{Cause, RequestFailure};
pub use sse::{MAX_EVENT_BYTES, SseEvent, SseParser, TooLong};
