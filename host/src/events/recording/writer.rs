//! Writes recordings.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::StringArray;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{ArrowError, Schema};
use lm_bench_plugin::KindDef;
use tempfile::TempDir;

use crate::events::delivery::{Delivery, EventSink, SinkError, Totals};
use crate::events::kind_table::KindTable;
use crate::events::symbols::SymbolTable;

use super::columns::{self, Symbols};
use super::{
    BatchEntry, FORMAT, FORMAT_VERSION, FileEntry, KindEntry, MAX_FILES_PER_KIND, RecordingError,
    STREAM_FILE, StreamFile, archive,
};

/// Writes a recording as events arrive. Nothing appears under the final name before
/// [`finish`](RecordingWriter::finish); a writer that is dropped removes what it wrote.
///
/// While events arrive, each kind goes to an Arrow stream with symbol ids in a temporary folder beside the target.
/// `finish` copies the streams into the archive with the complete dictionary, which the Arrow file format wants
/// ahead of the rows, and which is not known before the last row.
pub struct RecordingWriter {
    target: PathBuf,
    folder: TempDir,
    kinds: KindTable,
    spools: Vec<Spool>,
    by_shape: HashMap<(usize, Vec<u32>), usize>,
    batches: Vec<SpooledBatch>,
    /// Symbols that the batches so far can refer to.
    texts: Vec<Arc<str>>,
}

/// Rows of one kind with the same list lengths.
struct Spool {
    kind: usize,
    widths: Vec<u32>,
    path: PathBuf,
    schema: Arc<Schema>,
    writer: StreamWriter<BufWriter<File>>,
    batches: u64,
    rows: u64,
}

/// A batch before the numbers of kinds within the file are known.
#[derive(Debug)]
struct SpooledBatch {
    spool: usize,
    entry: BatchEntry,
}

impl RecordingWriter {
    /// Prepares a recording of a run with the given kinds. An existing file of that name stays until the new one
    /// replaces it.
    ///
    /// # Errors
    /// When the target is a folder, or its folder does not exist or is not writable.
    pub fn create(target: &Path, kinds: &KindTable) -> Result<Self, RecordingError> {
        let failed = |source| RecordingError::Io {
            action: "create",
            path: target.to_owned(),
            source,
        };
        if target.is_dir() {
            return Err(failed(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        let parent = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let folder = tempfile::Builder::new()
            .prefix(".lmrec-")
            .tempdir_in(parent)
            .map_err(failed)?;
        Ok(Self {
            target: target.to_owned(),
            folder,
            kinds: kinds.clone(),
            spools: Vec::new(),
            by_shape: HashMap::new(),
            batches: Vec::new(),
            texts: Vec::new(),
        })
    }

    /// Where the recording will be.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Completes the recording under its final name and gives its size in bytes. `run` is kept as it is for
    /// whoever replays the recording.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing stands under the final name that was not there before.
    pub fn finish(mut self, run: serde_json::Value, totals: &Totals) -> Result<u64, RecordingError> {
        let texts = std::mem::take(&mut self.texts);
        let stream = self.describe(run, totals, &texts)?;
        let assembled = self.folder.path().join("assembled");
        let size = self
            .assemble(&assembled, &stream, &texts)
            .map_err(|error| self.describe_error("write", error))?;
        std::fs::rename(&assembled, &self.target).map_err(|source| RecordingError::Io {
            action: "create",
            path: self.target.clone(),
            source,
        })?;
        Ok(size)
    }

    fn describe(
        &self,
        run: serde_json::Value,
        totals: &Totals,
        texts: &[Arc<str>],
    ) -> Result<StreamFile, RecordingError> {
        let mut kinds: Vec<KindEntry> = Vec::new();
        let mut places = Vec::with_capacity(self.spools.len());
        for spool in &self.spools {
            let def = self.kind(spool.kind)?;
            let at = kinds
                .iter()
                .position(|entry| entry.def.name == def.name)
                .unwrap_or_else(|| {
                    kinds.push(KindEntry {
                        def: KindDef::clone(def),
                        files: Vec::new(),
                    });
                    kinds.len() - 1
                });
            let files = &mut kinds[at].files;
            places.push((at as u32, files.len() as u32));
            files.push(FileEntry {
                name: file_name(&def.name, files.len()),
                widths: spool.widths.clone(),
                batches: spool.batches,
                rows: spool.rows,
            });
        }
        let batches = self.batches.iter().map(|batch| {
            let (kind, file) = places[batch.spool];
            BatchEntry {
                kind,
                file,
                ..batch.entry
            }
        });
        Ok(StreamFile {
            format: FORMAT.to_owned(),
            version: FORMAT_VERSION,
            created_by: concat!("lm-bench ", env!("CARGO_PKG_VERSION")).to_owned(),
            run,
            kinds,
            batches: batches.collect(),
            symbols: texts.iter().map(ToString::to_string).collect(),
            totals: totals.clone(),
        })
    }

    fn assemble(&mut self, path: &Path, stream: &StreamFile, texts: &[Arc<str>]) -> Result<u64, ArrowError> {
        let texts = StringArray::from_iter_values(texts);
        let mut file = BufWriter::new(File::create_new(path)?);
        archive::append(&mut file, STREAM_FILE, |file| {
            serde_json::to_writer_pretty(file, stream).map_err(io::Error::from)
        })?;
        let mut counts: HashMap<usize, usize> = HashMap::new();
        for spool in &mut self.spools {
            spool.writer.finish()?;
            spool.writer.flush()?;
            let Some(kind) = self.kinds.get(spool.kind) else {
                continue;
            };
            let number = counts.entry(spool.kind).or_default();
            archive::append(&mut file, &file_name(&kind.name, *number), |file| {
                spool.copy_to(file, kind, &texts)
            })?;
            *number += 1;
        }
        archive::end(&mut file)?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(file.metadata()?.len())
    }

    fn kind(&self, index: usize) -> Result<&Arc<KindDef>, RecordingError> {
        self.kinds.get(index).ok_or_else(|| RecordingError::Encode {
            path: self.target.clone(),
            what: format!("event kind {index} does not belong to the run"),
        })
    }

    fn write(&mut self, delivery: &Delivery) -> Result<(), RecordingError> {
        let spool = self.spool(delivery)?;
        self.spools[spool]
            .write(delivery)
            .map_err(|error| self.describe_error("write", error))?;
        self.batches.push(SpooledBatch {
            spool,
            entry: BatchEntry {
                kind: 0,
                file: 0,
                rows: delivery.block.rows(),
                seq: delivery.seq,
                weight: delivery.block.weight,
                lost_before: delivery.lost_before,
            },
        });
        Ok(())
    }

    fn spool(&mut self, delivery: &Delivery) -> Result<usize, RecordingError> {
        let shape = (delivery.kind, columns::widths(&delivery.block));
        if let Some(&spool) = self.by_shape.get(&shape) {
            return Ok(spool);
        }
        let kind = self.kind(delivery.kind)?;
        if self
            .spools
            .iter()
            .filter(|spool| spool.kind == delivery.kind)
            .count()
            >= MAX_FILES_PER_KIND
        {
            return Err(RecordingError::Encode {
                path: self.target.clone(),
                what: format!(
                    "kind {} has lists of more than {MAX_FILES_PER_KIND} different lengths",
                    kind.name
                ),
            });
        }
        let path = self.folder.path().join(format!("spool-{}", self.spools.len()));
        let spool =
            Spool::create(path, kind, &shape).map_err(|error| self.describe_error("create", error))?;
        self.spools.push(spool);
        self.by_shape.insert(shape, self.spools.len() - 1);
        Ok(self.spools.len() - 1)
    }

    fn describe_error(&self, action: &'static str, error: ArrowError) -> RecordingError {
        let path = self.target.clone();
        match error {
            ArrowError::IoError(_, source) => RecordingError::Io { action, path, source },
            error => RecordingError::Encode {
                path,
                what: error.to_string(),
            },
        }
    }
}

impl fmt::Debug for RecordingWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingWriter")
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl EventSink for RecordingWriter {
    fn accept(&mut self, delivery: &Delivery, symbols: &SymbolTable) -> Result<(), SinkError> {
        if symbols.len() > self.texts.len() {
            self.texts = symbols.texts();
        }
        self.write(delivery)
            .map_err(|error| SinkError::Failed(error.to_string()))
    }
}

impl Spool {
    fn create(path: PathBuf, kind: &KindDef, shape: &(usize, Vec<u32>)) -> Result<Self, ArrowError> {
        let schema = columns::schema(kind, &shape.1, Symbols::Ids);
        let writer = StreamWriter::try_new(BufWriter::new(File::create_new(&path)?), &schema)?;
        Ok(Self {
            kind: shape.0,
            widths: shape.1.clone(),
            path,
            schema,
            writer,
            batches: 0,
            rows: 0,
        })
    }

    fn write(&mut self, delivery: &Delivery) -> Result<(), ArrowError> {
        self.writer
            .write(&columns::to_batch(&delivery.block, &self.schema)?)?;
        self.batches += 1;
        self.rows += u64::from(delivery.block.rows());
        Ok(())
    }

    /// Copies the rows as an Arrow file with dictionaries.
    fn copy_to(
        &self,
        file: &mut BufWriter<File>,
        kind: &KindDef,
        texts: &StringArray,
    ) -> Result<(), ArrowError> {
        let schema = columns::schema(kind, &self.widths, Symbols::Dictionary);
        let mut writer = FileWriter::try_new(file, &schema)?;
        for batch in StreamReader::try_new(BufReader::new(File::open(&self.path)?), None)? {
            writer.write(&columns::with_dictionary(&batch?, kind, texts, &schema)?)?;
        }
        writer.finish()
    }
}

/// Name of a kind's Arrow file; the first has no number.
fn file_name(kind: &str, number: usize) -> String {
    match number {
        0 => format!("{kind}.arrow"),
        _ => format!("{kind}.{}.arrow", number + 1),
    }
}
