//! Whether a `stream.json` agrees with itself.

use std::collections::HashMap;

use serde::Deserialize;

use crate::events::delivery::{KindTotals, Totals};
use crate::events::kind_table::KindTable;
use crate::events::recorder::MAX_LIST_WIDTH;

use super::{FORMAT, FORMAT_VERSION, FileEntry, KindEntry, MAX_FILES_PER_KIND, StreamFile};

/// Why a `stream.json` is refused.
pub(super) enum Refusal {
    Version(u64),
    Malformed(String),
}

impl From<String> for Refusal {
    fn from(what: String) -> Self {
        Self::Malformed(what)
    }
}

/// The part of `stream.json` that all versions share.
#[derive(Deserialize)]
struct Header {
    format: String,
    version: u64,
}

/// Parses `stream.json` and gives the kinds of the run.
pub(super) fn parse(bytes: &[u8]) -> Result<(StreamFile, KindTable), Refusal> {
    let json = |error: serde_json::Error| format!("stream.json: {error}");
    let header: Header = serde_json::from_slice(bytes).map_err(json)?;
    if header.format != FORMAT {
        return Err(format!("stream.json: format is {:?}, expected {FORMAT:?}", header.format).into());
    }
    if header.version != u64::from(FORMAT_VERSION) {
        return Err(Refusal::Version(header.version));
    }
    let stream: StreamFile = serde_json::from_slice(bytes).map_err(json)?;
    let defs = stream.kinds.iter().map(|kind| kind.def.clone()).collect();
    let kinds = KindTable::with(defs).map_err(|error| format!("stream.json: {error}"))?;
    for kind in &stream.kinds {
        check_files(kind)?;
    }
    check_batches(&stream)?;
    check_totals(&stream)?;
    Ok((stream, kinds))
}

fn check_files(kind: &KindEntry) -> Result<(), String> {
    let name = &kind.def.name;
    if !(1..=MAX_FILES_PER_KIND).contains(&kind.files.len()) {
        return Err(format!(
            "stream.json: kind {name} has {} files, 1 to {MAX_FILES_PER_KIND} expected",
            kind.files.len()
        ));
    }
    for FileEntry {
        name: file, widths, ..
    } in &kind.files
    {
        let fits = |(list, &width): (bool, &u32)| match list {
            true => (1..=MAX_LIST_WIDTH).contains(&(width as usize)),
            false => width == 1,
        };
        let columns = kind.def.columns.iter().map(|column| column.list);
        if widths.len() != kind.def.columns.len() || !columns.zip(widths).all(fits) {
            return Err(format!(
                "stream.json: the widths of {file} do not fit the columns of kind {name}"
            ));
        }
    }
    Ok(())
}

/// Rows and batches so far.
#[derive(Clone, Copy, Default)]
struct Count {
    batches: u64,
    rows: u64,
    lost: u64,
}

impl Count {
    fn add(&mut self, rows: u32, lost: u64) -> Option<()> {
        self.batches += 1;
        self.rows = self.rows.checked_add(u64::from(rows))?;
        self.lost = self.lost.checked_add(lost)?;
        Some(())
    }
}

fn check_batches(stream: &StreamFile) -> Result<(), String> {
    let mut by_file: HashMap<(u32, u32), Count> = HashMap::new();
    let mut by_kind = vec![Count::default(); stream.kinds.len()];
    for (at, batch) in stream.batches.iter().enumerate() {
        let wrong = |what: &str| format!("stream.json: batch {at} {what}");
        let kind = by_kind
            .get_mut(batch.kind as usize)
            .ok_or_else(|| wrong("is of a kind that is not listed"))?;
        if batch.file as usize >= stream.kinds[batch.kind as usize].files.len() {
            return Err(wrong("is in a file that is not listed"));
        }
        if batch.rows == 0 || !(batch.weight.is_finite() && batch.weight > 0.0) {
            return Err(wrong("has no rows or an impossible weight"));
        }
        if batch.seq != kind.batches {
            return Err(wrong(&format!(
                "has number {}, expected {}",
                batch.seq, kind.batches
            )));
        }
        let file = by_file.entry((batch.kind, batch.file)).or_default();
        kind.add(batch.rows, batch.lost_before)
            .and_then(|()| file.add(batch.rows, 0))
            .ok_or_else(|| wrong("has an impossible number of rows"))?;
    }
    for (kind, entry) in stream.kinds.iter().enumerate() {
        for (at, file) in entry.files.iter().enumerate() {
            let count = by_file
                .get(&(kind as u32, at as u32))
                .copied()
                .unwrap_or_default();
            if (count.batches, count.rows) != (file.batches, file.rows) {
                return Err(format!(
                    "stream.json: {} has {} batches and {} rows, its batches add up to {} and {}",
                    file.name, file.batches, file.rows, count.batches, count.rows
                ));
            }
        }
        check_kind_totals(stream, entry, by_kind[kind])?;
    }
    Ok(())
}

fn check_kind_totals(stream: &StreamFile, entry: &KindEntry, count: Count) -> Result<(), String> {
    let totals = stream.totals.kind(&entry.def.name);
    let agrees = |totals: &KindTotals| totals.delivered == count.rows && totals.lost >= count.lost;
    if totals.is_some_and(agrees) {
        return Ok(());
    }
    Err(format!(
        "stream.json: the totals of kind {} do not agree with its batches",
        entry.def.name
    ))
}

fn check_totals(stream: &StreamFile) -> Result<(), String> {
    let mut sum = 0_u64;
    for totals in &stream.totals.kinds {
        let known = stream.kinds.iter().any(|kind| kind.def.name == totals.kind);
        let adds_up = totals.delivered.checked_add(totals.lost) == Some(totals.recorded);
        sum = sum
            .checked_add(totals.recorded)
            .ok_or("stream.json: the totals are impossible")?;
        if !adds_up || (!known && totals.delivered > 0) {
            return Err(format!(
                "stream.json: the totals of kind {} do not add up",
                totals.kind
            ));
        }
    }
    Ok(())
}

/// The totals in the order of the kinds, those of kinds that the table does not have last.
pub(super) fn ordered_totals(stored: &Totals, kinds: &KindTable) -> Totals {
    let mut rest: Vec<KindTotals> = stored.kinds.clone();
    let mut ordered = Totals::new(kinds).kinds;
    for totals in &mut ordered {
        if let Some(at) = rest.iter().position(|stored| stored.kind == totals.kind) {
            *totals = rest.remove(at);
        }
    }
    ordered.append(&mut rest);
    Totals {
        kinds: ordered,
        ..stored.clone()
    }
}
