//! The one shape of a loaded probe, whether in this process or in one of its own.

use lm_bench_plugin::ColumnBuf;
use serde::{Deserialize, Serialize};

use crate::plugin::failure::Failure;
use crate::plugin::log::LogBook;

/// Rows of one kind as a probe handed them over, not yet held against its declaration.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProbeRows {
    /// Place of the kind in the manifest.
    pub(crate) kind: u32,
    /// Number of rows.
    pub(crate) rows: u32,
    /// Values per row and values of each column.
    pub(crate) columns: Vec<(u32, ColumnBuf)>,
}

/// What one sample gave.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Rows in the order in which they came.
    pub(crate) rows: Vec<ProbeRows>,
    /// Texts of the probe's symbols after those of earlier samples: the first text of all is symbol 0.
    pub(crate) symbols: Vec<String>,
}

/// A loaded probe, its code ready to be called.
///
/// The caller keeps the order `describe? open start sample* stop`, and calls nothing after a [`Failure`].
pub(crate) trait ProbeSession: Send {
    /// JSON schema of the configuration.
    ///
    /// # Errors
    /// When the call fails.
    fn describe(&mut self) -> Result<String, Failure>;

    /// Creates the probe; arguments are configuration and run facts as JSON.
    ///
    /// # Errors
    /// When the call fails.
    fn open(&mut self, config: &str, run: &str) -> Result<(), Failure>;

    /// Tells it that the measured part begins.
    ///
    /// # Errors
    /// When the call fails.
    fn start(&mut self) -> Result<(), Failure>;

    /// Takes a sample.
    ///
    /// # Errors
    /// When the call fails.
    fn sample(&mut self) -> Result<Sample, Failure>;

    /// Tells it that the measured part is over.
    ///
    /// # Errors
    /// When the call fails.
    fn stop(&mut self) -> Result<(), Failure>;

    /// Its log.
    fn log(&self) -> &LogBook;

    /// Most memory that it held, where it can be told.
    fn peak_memory(&self) -> Option<u64>;

    /// Whether a call that exceeds its time limit is interrupted.
    fn interrupts(&self) -> bool;

    /// Lets go of the code. Called once, after the last call; the log may still grow.
    fn end(&mut self);
}
