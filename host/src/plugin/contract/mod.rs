//! Checks whether a plugin keeps the contract: drives it through its own door with the limits of a run, over streams that
//! are made up from the table of kinds, and starts it anew for each, so that a crash in one check leaves the others alone.

mod checks;
mod compare;
mod golden;
mod play;
mod relations;
mod stream;
mod subject;
mod values;
mod verdict;

use std::cell::RefCell;
use std::path::PathBuf;

use serde_json::Value;

use super::collectors::{Loader, Requests, configuration, find};
use super::error::PluginError;
use super::limits::Policy;
use super::registry::Found;
use crate::clock::Clock;
use crate::events::{KindTable, RecordingError};
use golden::Golden;
use subject::{Seen, Subject};
use verdict::Trouble;
pub use verdict::{Check, ContractReport, Place, Verdict};

/// What to check.
#[derive(Clone, Debug, Default)]
pub struct ContractRequest {
    /// The plugin, with its configuration.
    pub requests: Requests,
    /// Recordings to replay; the metrics that are expected stand beside each, in a file `NAME.metrics.json`.
    pub golden: Vec<PathBuf>,
    /// Whether the metrics that the plugin reports become the expected ones.
    pub bless: bool,
}

/// Why a plugin cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum ContractError {
    /// It cannot be found or loaded, or may not.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// A golden stream is no recording.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A recording tells no facts of its run.
    #[error("{}: the facts of its run cannot be read: {error}", .path.display())]
    Facts {
        /// The recording.
        path: PathBuf,
        /// Why.
        error: serde_json::Error,
    },
    /// The expected metrics cannot be read or written.
    #[error("{}: {error}; write the expected metrics with --bless", .path.display())]
    Expected {
        /// Their file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

/// Checks the requested plugins one after the other.
///
/// # Errors
/// When one cannot be found or loaded, may not be loaded, or a golden stream cannot be used. What a plugin does wrong is part
/// of the report.
pub fn check(request: &ContractRequest, policy: &Policy) -> Result<Vec<ContractReport>, ContractError> {
    let golden = request.golden.iter().map(|path| Golden::open(path));
    let golden = golden.collect::<Result<Vec<_>, _>>()?;
    let found = find(&request.requests, policy)?;
    let loader = Loader::new(&found, policy)?;
    let mut reports = Vec::new();
    for found in &found {
        let config = match configuration(found, &request.requests) {
            Value::Object(config) => config,
            _ => serde_json::Map::new(),
        };
        let subject = Subject {
            found,
            loader: &loader,
            limits: &policy.limits,
            config,
            kinds: KindTable::builtin(),
            clock: Clock::start(),
            seen: RefCell::new(Seen::default()),
        };
        // What cannot be loaded at all is no matter of the contract.
        loader.session(found)?.end();
        // The expected metrics come from the first one, if they are to be written.
        let bless = request.bless && reports.is_empty();
        reports.push(report(&subject, found, (&golden, bless))?);
    }
    Ok(reports)
}

fn report(
    subject: &Subject<'_>,
    found: &Found,
    (golden, bless): (&[Golden], bool),
) -> Result<ContractReport, ContractError> {
    let entry = |name: &str, verdict| Check {
        name: name.to_owned(),
        verdict,
    };
    let mut made = Vec::new();
    for golden in golden {
        made.push(entry(&golden.name, golden.check(subject, bless)?));
    }
    let all = checks::CHECKS.iter().map(|(name, check)| {
        let verdict = check(subject).unwrap_or_else(Trouble::into_verdict);
        entry(name, verdict)
    });
    let mut checks: Vec<Check> = all.collect();
    checks.extend(made);
    Ok(ContractReport {
        id: found.manifest.id.clone(),
        version: found.manifest.version.clone(),
        door: found.door(),
        place: found.place(),
        checks,
    })
}
