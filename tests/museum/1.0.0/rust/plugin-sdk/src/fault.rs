//! The one error type that crosses the plugin boundary.

use serde::{Deserialize, Serialize};

/// Why a call failed, by cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u32)]
pub enum FaultCode {
    /// The user's configuration or the run does not suit the collector.
    Config = 1,
    /// The events contradict themselves or what was promised.
    Data = 2,
    /// Host or collector broke the calling contract.
    Contract = 3,
    /// The collector panicked.
    Panic = 4,
}

impl FaultCode {
    /// Reads the number that crosses a door; unknown numbers count as broken contract.
    pub const fn from_number(number: u32) -> Self {
        match number {
            1 => Self::Config,
            2 => Self::Data,
            4 => Self::Panic,
            _ => Self::Contract,
        }
    }
}

/// Why a call failed: plain data, so that it reads the same through every door.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Cause.
    pub code: FaultCode,
    /// What was wrong and what to do, in one line.
    pub message: String,
}

impl Fault {
    /// The configuration or the run does not suit the collector.
    pub fn config(message: impl Into<String>) -> Self {
        Self {
            code: FaultCode::Config,
            message: message.into(),
        }
    }

    /// The events contradict themselves or what was promised.
    pub fn data(message: impl Into<String>) -> Self {
        Self {
            code: FaultCode::Data,
            message: message.into(),
        }
    }

    /// Host or collector broke the calling contract.
    pub fn contract(message: impl Into<String>) -> Self {
        Self {
            code: FaultCode::Contract,
            message: message.into(),
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}
