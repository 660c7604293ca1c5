//! Why a request did not succeed.

use std::fmt;

/// Class of a failure: the word that reports count by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// No connection: name unknown, refused, no port or file descriptor left.
    Connect,
    /// The connection broke before the answer was complete.
    Broken,
    /// No complete answer in time.
    Timeout,
    /// A status other than 2xx.
    Status(u16),
    /// An answer of another type or encoding than asked for.
    ContentType,
    /// A piece of the answer that is not what the interface says.
    Malformed,
    /// The server reported an error inside a stream that began with 200.
    ErrorEvent,
    /// A stream without its terminal marker.
    Truncated,
    /// A complete answer without a token.
    NoTokens,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connect",
            Self::Broken => "broken",
            Self::Timeout => "timeout",
            Self::Status(status) => return write!(f, "http_{status}"),
            Self::ContentType => "content_type",
            Self::Malformed => "malformed",
            Self::ErrorEvent => "error_event",
            Self::Truncated => "truncated",
            Self::NoTokens => "no_tokens",
        })
    }
}

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}: {text}")]
pub struct RequestFailure {
    /// Its class.
    pub cause: Cause,
    /// What happened, for people; holds no key.
    pub text: String,
}

impl RequestFailure {
    pub(super) fn new(cause: Cause, text: impl fmt::Display) -> Self {
        Self {
            cause,
            text: text.to_string(),
        }
    }
}
