//! What a check found.

use serde::{Serialize, Serializer};

use crate::plugin::session::Door;

/// What the checks found of one plugin file or built-in collector.
#[derive(Clone, Debug, Serialize)]
pub struct ContractReport {
    /// Id of the plugin.
    pub id: String,
    /// Its version.
    pub version: String,
    /// Its door.
    pub door: Door,
    /// Its file, or the word for built-in ones.
    pub place: String,
    /// One entry per check, in the order in which they were made.
    pub checks: Vec<Check>,
}

impl ContractReport {
    /// Number of checks that failed.
    pub fn failed(&self) -> usize {
        let failed = |check: &&Check| matches!(check.verdict, Verdict::Fail { .. });
        self.checks.iter().filter(failed).count()
    }
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// What it found.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// The contract is kept.
    Pass {
        /// What there is to know; often nothing.
        note: String,
    },
    /// The contract is broken.
    Fail {
        /// How.
        what: String,
        /// The batch that showed it.
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<Place>,
    },
    /// There is nothing to check.
    NotApplicable {
        /// Why.
        reason: String,
    },
}

impl Verdict {
    /// The contract is kept.
    pub(super) fn pass() -> Self {
        Self::noted("")
    }

    /// The contract is kept, and there is something to know.
    pub(super) fn noted(note: impl Into<String>) -> Self {
        Self::Pass { note: note.into() }
    }

    /// The contract is broken.
    pub(super) fn fail(what: impl Into<String>) -> Self {
        Self::Fail {
            what: what.into(),
            at: None,
        }
    }

    /// There is nothing to check.
    pub(super) fn none(reason: impl Into<String>) -> Self {
        Self::NotApplicable {
            reason: reason.into(),
        }
    }
}

/// Rows of one batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Name of their kind.
    pub kind: String,
    /// Number of the first one among all rows of the kind that the plugin was given, from 0.
    #[serde(rename = "row")]
    pub first: u64,
    /// Their number.
    pub rows: u32,
    /// What they hold, column by column, where it is a single one.
    #[serde(serialize_with = "joined", skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

fn joined<S: Serializer>(values: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&values.join(", "))
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            kind, first, rows, ..
        } = self;
        match rows {
            1 => write!(f, "kind {kind}, row {first}")?,
            _ => write!(f, "kind {kind}, rows {first} to {}", first + u64::from(*rows) - 1)?,
        }
        if self.values.is_empty() {
            Ok(())
        } else {
            write!(f, " ({})", self.values.join(", "))
        }
    }
}

/// What went wrong while a plugin was called, and where.
#[derive(Clone, Debug)]
pub(super) struct Trouble {
    /// The call, such as `on_batch`.
    pub(super) call: &'static str,
    /// Why it failed.
    pub(super) failure: crate::plugin::failure::Failure,
    /// The batch that was delivered.
    pub(super) at: Option<Place>,
}

impl Trouble {
    /// As the verdict of a check.
    pub(super) fn into_verdict(self) -> Verdict {
        Verdict::Fail {
            what: format!("{}: {}", self.call, self.failure),
            at: self.at,
        }
    }
}
