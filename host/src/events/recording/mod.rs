//! Recordings: the event stream of a run in one file, `NAME.lmrec`.
//!
//! The file is an uncompressed tar. Its first member, `stream.json` ([`StreamFile`]), holds the format version, the
//! kinds with their columns, the order of the batches, the symbols and facts about the run. Each kind that has rows
//! has an Arrow IPC file, `<kind>.arrow`, with one record batch per delivered batch: scalar columns as primitive
//! arrays, list columns as `FixedSizeList`, symbols as `Dictionary(UInt32, Utf8)`, no nulls, no compression. An
//! Arrow file has one schema, so rows whose lists have other lengths are in a further file of the kind,
//! `<kind>.2.arrow` and so on, each with its own `FixedSizeList` sizes.

mod archive;
mod arrow_file;
mod check;
mod columns;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use std::path::PathBuf;

use lm_bench_plugin::KindDef;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::delivery::Totals;

pub use reader::Recording;
pub use writer::RecordingWriter;

/// Version of the format that this program writes, and the newest one that it reads.
pub const FORMAT_VERSION: u32 = 1;
/// What `format` says in `stream.json`.
const FORMAT: &str = "lm-bench recording";
/// Name of the first member.
const STREAM_FILE: &str = "stream.json";
/// Most files of one kind, that is, most combinations of list lengths.
const MAX_FILES_PER_KIND: usize = 64;
/// Most bytes of `stream.json`; a batch takes about 100.
const MAX_STREAM_BYTES: u64 = 512 << 20;

/// The content of `stream.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamFile {
    /// Always `lm-bench recording`.
    pub format: String,
    /// Version of the format.
    pub version: u32,
    /// Program that wrote the file.
    pub created_by: String,
    /// Facts about the run, as the driver gave them.
    pub run: serde_json::Value,
    /// Kinds that have rows.
    pub kinds: Vec<KindEntry>,
    /// All batches in the order of delivery.
    pub batches: Vec<BatchEntry>,
    /// Texts by symbol id.
    pub symbols: Vec<String>,
    /// The account of rows of the recorded run.
    pub totals: Totals,
}

/// A kind and where its rows are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindEntry {
    /// Name, level and columns.
    #[serde(flatten)]
    pub def: KindDef,
    /// The kind's Arrow files.
    pub files: Vec<FileEntry>,
}

/// An Arrow file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Name of the member.
    pub name: String,
    /// Values per row of each column, 1 for scalar columns.
    pub widths: Vec<u32>,
    /// Record batches in the file.
    pub batches: u64,
    /// Rows in the file.
    pub rows: u64,
}

/// A batch: the next record batch of its file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchEntry {
    /// Index into the kinds of this file.
    pub kind: u32,
    /// Index into the kind's files.
    pub file: u32,
    /// Rows.
    pub rows: u32,
    /// Number of the batch within its kind.
    pub seq: u64,
    /// How many events each row stands for.
    pub weight: f64,
    /// Rows that were dropped just before the batch.
    pub lost_before: u64,
}

/// Why a recording cannot be written or read.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// The file cannot be created, written or read.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The events cannot be stored.
    #[error("cannot record to {}: {what}", path.display())]
    Encode {
        /// The recording.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The file is of a version that this program does not read.
    #[error("{} has recording format version {version}, this lm-bench reads up to {FORMAT_VERSION}; use a newer lm-bench", path.display())]
    Version {
        /// The recording.
        path: PathBuf,
        /// Its version.
        version: u64,
    },
    /// The file is not a usable recording.
    #[error("{} is not a usable recording: {what}", path.display())]
    Malformed {
        /// The recording.
        path: PathBuf,
        /// What is wrong, and in which member.
        what: String,
    },
    /// The sink that the events were replayed to failed.
    #[error("replay of {} stopped: {source}", path.display())]
    Sink {
        /// The recording.
        path: PathBuf,
        /// What the sink says.
        source: super::SinkError,
    },
}
