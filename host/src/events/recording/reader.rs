//! Reads and replays recordings.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::events::collection::Watch;
use crate::events::delivery::{Delivery, EventSink, SinkError, Totals, shielded};
use crate::events::kind_table::KindTable;
use crate::events::symbols::SymbolTable;

use super::archive::{self, Member};
use super::arrow_file::ArrowFile;
use super::check::{self, Refusal};
use super::{BatchEntry, MAX_STREAM_BYTES, RecordingError, STREAM_FILE, StreamFile, columns};

/// A recording that was opened and whose description was checked.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    file: Arc<File>,
    members: std::collections::HashMap<String, archive::Extent>,
    stream: StreamFile,
    kinds: KindTable,
    symbols: Arc<SymbolTable>,
    totals: Totals,
}

impl Recording {
    /// Opens a recording. The file is not unpacked and its rows are not read yet.
    ///
    /// # Errors
    /// When the file cannot be read, is no recording, is truncated, is of a newer version, or its description does
    /// not agree with itself or with the members.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let io = |source| RecordingError::Io {
            action: "read",
            path: path.to_owned(),
            source,
        };
        let malformed = |what| RecordingError::Malformed {
            path: path.to_owned(),
            what,
        };
        // Asked before opening, which would wait for the writer of a pipe.
        if !std::fs::metadata(path).map_err(io)?.is_file() {
            return Err(malformed("it is not a regular file".to_owned()));
        }
        let file = File::open(path).map_err(io)?;
        let members = archive::list(&file).map_err(malformed)?;
        let file = Arc::new(file);
        let Some(&extent) = members.get(STREAM_FILE) else {
            return Err(malformed(format!("{STREAM_FILE} is missing")));
        };
        if extent.size > MAX_STREAM_BYTES {
            return Err(malformed(format!(
                "{STREAM_FILE} has {} bytes, at most {MAX_STREAM_BYTES}",
                extent.size
            )));
        }
        let bytes = Member::new(Arc::clone(&file), extent)
            .bytes_at(0, extent.size)
            .map_err(io)?;
        let (stream, kinds) = check::parse(&bytes).map_err(|refusal| match refusal {
            Refusal::Version(version) => RecordingError::Version {
                path: path.to_owned(),
                version,
            },
            Refusal::Malformed(what) => malformed(what),
        })?;
        for entry in stream.kinds.iter().flat_map(|kind| &kind.files) {
            if !members.contains_key(&entry.name) {
                return Err(malformed(format!("{} is missing", entry.name)));
            }
        }
        let symbols = SymbolTable::new();
        for text in &stream.symbols {
            symbols.intern(text);
        }
        let totals = check::ordered_totals(&stream.totals, &kinds);
        let symbols = Arc::new(symbols);
        Ok(Self {
            path: path.to_owned(),
            file,
            members,
            stream,
            kinds,
            symbols,
            totals,
        })
    }

    /// Facts about the run, as they were given to [`RecordingWriter::finish`](super::RecordingWriter::finish).
    pub fn run(&self) -> &serde_json::Value {
        &self.stream.run
    }

    /// Program that wrote the recording.
    pub fn created_by(&self) -> &str {
        &self.stream.created_by
    }

    /// The kinds: the built-in ones, with the columns that the recording has, and those that only it has.
    pub fn kinds(&self) -> &KindTable {
        &self.kinds
    }

    /// The symbols, with the ids that they had in the recorded run.
    pub fn symbols(&self) -> &Arc<SymbolTable> {
        &self.symbols
    }

    /// The account of rows of the recorded run.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Gives a sink all batches as they were delivered in the recorded run, and tells it of the losses after them.
    ///
    /// # Errors
    /// When an Arrow file does not hold what the description says, or the sink fails.
    pub fn replay(&self, sink: &mut dyn EventSink) -> Result<(), RecordingError> {
        self.replay_watched(sink, |_, _| Watch::GoOn).map(drop)
    }

    /// As [`replay`](Recording::replay), and asks `watch` before each batch whether to go on; it is told how many batches
    /// the sink has had, of how many. Gives the rows of the batches that the sink was not given. After a cut it learns of no
    /// further losses.
    ///
    /// # Errors
    /// As [`replay`](Recording::replay).
    pub fn replay_watched(
        &self,
        sink: &mut dyn EventSink,
        mut watch: impl FnMut(u64, u64) -> Watch,
    ) -> Result<u64, RecordingError> {
        let mut files = self.open_files()?;
        let mut next_row = vec![0_u64; self.stream.kinds.len()];
        let mut told = vec![0_u64; self.kinds.len()];
        let batches = &self.stream.batches;
        for (at, batch) in batches.iter().enumerate() {
            if watch(at as u64, batches.len() as u64) == Watch::Cut {
                let rest = batches[at..].iter().map(|batch| u64::from(batch.rows));
                return Ok(rest.sum());
            }
            let (kind, file) = (batch.kind as usize, batch.file as usize);
            let name = &self.stream.kinds[kind].files[file].name;
            let mut delivery = self
                .read(&mut files[kind][file], batch)
                .map_err(|what| self.malformed(format!("{name}: {what}")))?;
            // What a single producer has counted; the check of the totals excludes an overflow.
            next_row[kind] += batch.lost_before;
            delivery.block.first_row = next_row[kind];
            next_row[kind] += u64::from(batch.rows);
            told[delivery.kind] += batch.lost_before;
            self.give(|| {
                sink.accept(&delivery, &self.symbols)?;
                sink.tick();
                Ok(())
            })?;
        }
        // The totals of the table's kinds come first, in its order.
        for (kind, (totals, told)) in self.totals.kinds.iter().zip(told).enumerate() {
            let untold = totals.lost.saturating_sub(told);
            if untold > 0 {
                self.give(|| sink.lost(kind, untold))?;
            }
        }
        Ok(0)
    }

    fn give(&self, call: impl FnOnce() -> Result<(), SinkError>) -> Result<(), RecordingError> {
        shielded(call).map_err(|source| RecordingError::Sink {
            path: self.path.clone(),
            source,
        })
    }

    fn open_files(&self) -> Result<Vec<Vec<ArrowFile>>, RecordingError> {
        let mut all = Vec::with_capacity(self.stream.kinds.len());
        for kind in &self.stream.kinds {
            let mut files = Vec::with_capacity(kind.files.len());
            for entry in &kind.files {
                let wrong = |what| self.malformed(format!("{}: {what}", entry.name));
                let extent = self
                    .members
                    .get(&entry.name)
                    .ok_or_else(|| wrong("it is missing".to_owned()))?;
                let def = self
                    .kinds
                    .find(&kind.def.name)
                    .ok_or_else(|| wrong("its kind is missing".to_owned()))?;
                let member = Member::new(Arc::clone(&self.file), *extent);
                let file = ArrowFile::open(member, def, &entry.widths).map_err(wrong)?;
                if file.batches() != entry.batches {
                    return Err(wrong(format!(
                        "{} batches, stream.json says {}",
                        file.batches(),
                        entry.batches
                    )));
                }
                files.push(file);
            }
            all.push(files);
        }
        Ok(all)
    }

    fn read(&self, file: &mut ArrowFile, entry: &BatchEntry) -> Result<Delivery, String> {
        let batch = file.next_batch(entry.rows)?;
        let mut block = columns::to_block(&batch, file.kind(), &|text| self.symbols.intern(text))?;
        block.weight = entry.weight;
        let kind = self.kinds.index(&file.kind().name).ok_or("its kind is missing")?;
        Ok(Delivery {
            kind,
            block,
            seq: entry.seq,
            lost_before: entry.lost_before,
        })
    }

    fn malformed(&self, what: String) -> RecordingError {
        RecordingError::Malformed {
            path: self.path.clone(),
            what,
        }
    }
}
