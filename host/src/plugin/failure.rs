//! Why a call of a plugin did not succeed.

use std::time::Duration;

use lm_bench_plugin::{Fault, FaultCode};
use serde::{Deserialize, Serialize};

/// Why a call of a plugin did not succeed. Each ends the plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub(crate) enum Failure {
    /// The plugin said so itself.
    #[error("{0}")]
    Fault(Fault),
    /// The plugin panicked; the text is its own.
    #[error("{0}")]
    Panic(String),
    /// The plugin was interrupted.
    #[error("took longer than the time limit of {} ms and was interrupted", .0.as_millis())]
    TimeLimit(Duration),
    /// The plugin used up its fuel in a deterministic run.
    #[error(
        "used up its {fuel} units of fuel, which stand for the time limit of {} ms in a deterministic run",
        .limit.as_millis()
    )]
    Fuel {
        /// Fuel of the call.
        fuel: u64,
        /// Time limit that it stands for.
        limit: Duration,
    },
    /// The plugin was interrupted in a deterministic run, with fuel left.
    #[error(
        "was interrupted after {} s with fuel left: this outcome depends on the machine, less fuel_per_ms would not",
        .0.as_secs()
    )]
    SafetyNet(Duration),
    /// A call in this process came back too late; it could not be interrupted.
    #[error(
        "took {} ms where {} ms are allowed; a plugin in this process cannot be interrupted, only stopped afterwards",
        .took.as_millis(), .limit.as_millis()
    )]
    Late {
        /// Time that the call took.
        took: Duration,
        /// Time that it may take.
        limit: Duration,
    },
    /// The plugin asked for more memory than it may have.
    #[error("asked for {wanted} bytes of memory where {limit} are allowed")]
    MemoryLimit {
        /// Memory it would have had.
        wanted: usize,
        /// Memory it may have.
        limit: usize,
    },
    /// The plugin's process ended, or cannot be reached.
    #[error("{0}")]
    Died(String),
    /// The plugin's stack was exhausted.
    #[error("exhausted its stack: it recurses too deeply")]
    Stack,
    /// The sandbox stopped the plugin.
    #[error("trapped: {0}")]
    Trap(String),
    /// The plugin broke the calling contract or reported what it may not.
    #[error("{0}")]
    Contract(String),
}

impl Failure {
    /// Whether the user's configuration is to blame, which ends the run before it starts.
    pub(crate) fn is_configuration(&self) -> bool {
        matches!(self, Self::Fault(fault) if fault.code == FaultCode::Config)
    }

    /// A fault as a plugin reported it, its text cut to `max` bytes. A fault that stands for a panic becomes one.
    pub(crate) fn reported(code: FaultCode, message: &str, max: usize) -> Self {
        let message = one_line(message, max);
        match code {
            FaultCode::Panic => Self::Panic(message),
            code => Self::Fault(Fault { code, message }),
        }
    }

    /// A broken contract.
    pub(crate) fn contract(message: impl Into<String>) -> Self {
        Self::Contract(message.into())
    }
}

/// Text of a plugin as one line of at most `max` bytes: control characters become spaces.
pub(crate) fn one_line(text: &str, max: usize) -> String {
    let mut line = String::new();
    for character in text.trim().chars() {
        if line.len() + character.len_utf8() > max {
            line.push('…');
            break;
        }
        line.push(if character.is_control() { ' ' } else { character });
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_at_a_character_and_loses_control_characters() {
        assert_eq!(one_line("a\nb\u{1b}[31mc\n", 100), "a b [31mc");
        // "ä" takes two bytes: the third one does not fit into five bytes.
        assert_eq!(one_line("äää", 5), "ää…");
        assert_eq!(one_line("äää", 6), "äää");
    }

    #[test]
    fn a_reported_panic_is_no_fault() {
        let panic = Failure::reported(FaultCode::Panic, "panicked: told to", 100);
        assert_eq!(panic, Failure::Panic("panicked: told to".to_owned()));
        assert!(Failure::reported(FaultCode::Config, "x", 9).is_configuration());
        assert!(!Failure::reported(FaultCode::Data, "x", 9).is_configuration());
    }
}
