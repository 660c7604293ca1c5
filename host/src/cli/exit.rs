//! Exit codes, as documented in the README.

use std::process::ExitCode;

/// How the program ends. If several hold, the order is usage, failure, invalid, quarantined, regression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The result is valid.
    Valid = 0,
    /// Usage, configuration or input cannot be used.
    Unusable = 1,
    /// The run failed.
    Failed = 2,
    /// The result is valid, but a plugin was quarantined.
    Quarantined = 3,
    /// There is a result, and it is not valid.
    Invalid = 4,
    /// The user interrupted the run.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command ends without a result: one line for the user and the exit code that goes with it.
#[derive(Debug)]
pub(super) struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What was wrong, where, and what to do.
    pub message: String,
}

impl Failure {
    /// Usage, configuration or input cannot be used.
    pub(super) fn unusable(error: impl std::fmt::Display) -> Self {
        Self {
            exit: Exit::Unusable,
            message: error.to_string(),
        }
    }

    /// The run failed.
    pub(super) fn failed(error: impl std::fmt::Display) -> Self {
        Self {
            exit: Exit::Failed,
            message: error.to_string(),
        }
    }
}
