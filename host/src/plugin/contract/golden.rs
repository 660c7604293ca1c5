//! Golden streams: a recording, and beside it the metrics that are expected of it.

use std::path::{Path, PathBuf};

use lm_bench_plugin::{Metric, RunInfo};

use super::ContractError;
use super::compare::{Tolerance, difference};
use super::play::How;
use super::stream::Stream;
use super::subject::Subject;
use super::verdict::Verdict;
use crate::events::{Delivery, EventSink, KindTable, Recording, SinkError, SymbolTable};

/// Languages differ in the last digits.
const ROUNDING: Tolerance = Tolerance::Relative(1e-12);

/// A recording with what is expected of it.
#[derive(Debug)]
pub(super) struct Golden {
    /// Its name in the list of checks.
    pub(super) name: String,
    expected: PathBuf,
    stream: Stream,
    kinds: KindTable,
    run: RunInfo,
}

/// Takes all that a recording holds.
#[derive(Debug, Default)]
struct Gathered {
    deliveries: Vec<Delivery>,
    lost_after: Vec<(usize, u64)>,
}

impl EventSink for Gathered {
    fn accept(&mut self, delivery: &Delivery, _: &SymbolTable) -> Result<(), SinkError> {
        self.deliveries.push(delivery.clone());
        Ok(())
    }

    fn lost(&mut self, kind: usize, rows: u64) -> Result<(), SinkError> {
        self.lost_after.push((kind, rows));
        Ok(())
    }
}

impl Golden {
    /// Reads a recording.
    ///
    /// # Errors
    /// When it is none, or tells no facts of its run.
    pub(super) fn open(path: &Path) -> Result<Self, ContractError> {
        let recording = Recording::open(path)?;
        let mut gathered = Gathered::default();
        recording.replay(&mut gathered)?;
        let facts = recording.run().get("run_info").cloned().unwrap_or_default();
        let run = serde_json::from_value(facts).map_err(|error| ContractError::Facts {
            path: path.to_owned(),
            error,
        })?;
        let symbols = SymbolTable::new();
        for text in recording.symbols().texts() {
            symbols.intern(&text);
        }
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(Self {
            name: format!("golden {file}"),
            expected: path.with_extension("metrics.json"),
            stream: Stream {
                deliveries: gathered.deliveries,
                symbols,
                lost_after: gathered.lost_after,
            },
            kinds: recording.kinds().clone(),
            run,
        })
    }

    /// Replays it and compares the metrics with the expected ones, or writes them as the expected ones.
    ///
    /// # Errors
    /// When the file of the expected metrics cannot be read, is none, or cannot be written.
    pub(super) fn check(&self, subject: &Subject<'_>, bless: bool) -> Result<Verdict, ContractError> {
        let how = How {
            run: self.run.clone(),
            kinds: Some(self.kinds.clone()),
            ..How::default()
        };
        let played = match subject.play(&self.stream, &how) {
            Ok(played) => played,
            Err(trouble) => return Ok(trouble.into_verdict()),
        };
        if bless {
            self.write(&played.metrics)?;
            return Ok(Verdict::noted(format!("written to {}", self.expected.display())));
        }
        let Some(expected) = self.read()? else {
            return Ok(Verdict::fail(format!(
                "there is no {}: look at the metrics and write them with --bless",
                self.expected.display()
            )));
        };
        let names = ("in the expected metrics", "now");
        let found = difference(&expected, &played.metrics, names, ROUNDING);
        Ok(found.map_or_else(Verdict::pass, Verdict::fail))
    }

    fn failed(&self, error: std::io::Error) -> ContractError {
        let path = self.expected.clone();
        ContractError::Expected { path, error }
    }

    fn read(&self) -> Result<Option<Vec<Metric>>, ContractError> {
        let text = match std::fs::read(&self.expected) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed(error)),
        };
        let metrics = serde_json::from_slice(&text).map_err(std::io::Error::from);
        metrics.map(Some).map_err(|error| self.failed(error))
    }

    fn write(&self, metrics: &[Metric]) -> Result<(), ContractError> {
        let text = serde_json::to_string_pretty(metrics).map_err(std::io::Error::from);
        text.and_then(|text| std::fs::write(&self.expected, text + "\n"))
            .map_err(|error| self.failed(error))
    }
}
