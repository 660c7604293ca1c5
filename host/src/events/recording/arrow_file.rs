//! Reads a recording's Arrow files without trusting them.
//!
//! arrow-ipc checks the flatbuffers and the arrays that it builds, but it trusts lengths and offsets on the way: it
//! allocates what a footer says, slices message bodies with offsets from the message, and unwraps conversions. So
//! each length is compared with the bytes that are there before arrow-ipc sees it. What remains runs under
//! `catch_unwind`, because a panic in a decoder of this size cannot be ruled out by reading it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::reader::FileReader;
use arrow_ipc::{
    Block as FooterBlock, Message, MessageHeader, RecordBatch as BatchHeader, root_as_footer, root_as_message,
};
use lm_bench_plugin::KindDef;
use lm_bench_plugin::erased::panic_text;

use super::archive::Member;
use super::columns;

/// `ARROW1`, at both ends of a file.
const MAGIC: &[u8] = b"ARROW1";
/// Footer length and magic at the end of a file.
const TRAILER: u64 = 10;
/// Marks a message of the current format, followed by the length of its header.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Most dictionary batches in a file; lm-bench writes one per symbol column.
const MAX_DICTIONARIES: usize = 1024;

/// An Arrow file of a kind, read from its first batch to its last.
pub(super) struct ArrowFile {
    member: Member,
    reader: FileReader<Member>,
    kind: Arc<KindDef>,
    widths: Vec<u32>,
    blocks: Vec<FooterBlock>,
    next: usize,
}

impl ArrowFile {
    /// Opens a file that must have the given columns.
    ///
    /// # Errors
    /// A text saying what is wrong with the file.
    pub(super) fn open(mut member: Member, kind: &Arc<KindDef>, widths: &[u32]) -> Result<Self, String> {
        let (blocks, dictionaries) = read_footer(&mut member)?;
        for block in &dictionaries {
            check_dictionary(&mut member, block)?;
        }
        let reader = contained(|| FileReader::try_new(member.clone(), None).map_err(one_line))?;
        columns::check_schema(kind, widths, &reader.schema())?;
        Ok(Self {
            member,
            reader,
            kind: Arc::clone(kind),
            widths: widths.to_vec(),
            blocks,
            next: 0,
        })
    }

    /// The kind of the rows.
    pub(super) fn kind(&self) -> &Arc<KindDef> {
        &self.kind
    }

    /// Number of record batches.
    pub(super) fn batches(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Reads the next batch, which must have the given number of rows.
    ///
    /// # Errors
    /// A text saying what is wrong with the batch.
    pub(super) fn next_batch(&mut self, rows: u32) -> Result<RecordBatch, String> {
        let block = self
            .blocks
            .get(self.next)
            .ok_or("there are fewer batches than stream.json says")?;
        check_batch(
            &mut self.member,
            block,
            &Shape {
                kind: &self.kind,
                widths: &self.widths,
                rows,
            },
        )?;
        self.next += 1;
        contained(|| match self.reader.next() {
            Some(batch) => batch.map_err(one_line),
            None => Err("there are fewer batches than stream.json says".to_owned()),
        })
    }
}

/// Runs arrow-ipc on input that is checked but not trusted. What a panic leaves behind is not used again: each
/// error ends the reading of the recording.
fn contained<T>(decode: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|panic| {
        Err(format!(
            "the Arrow reader failed on it: {}",
            one_line(panic_text(&*panic))
        ))
    })
}

/// Verifier errors span several lines.
fn one_line(error: impl std::fmt::Display) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Finds record batches and dictionaries, all within the file and together no larger than it.
fn read_footer(member: &mut Member) -> Result<(Vec<FooterBlock>, Vec<FooterBlock>), String> {
    let size = member.size();
    let no_arrow = || "it is not an Arrow IPC file, or is cut off".to_owned();
    let body = size.checked_sub(TRAILER).ok_or_else(no_arrow)?;
    let trailer = member.bytes_at(body, TRAILER).map_err(one_line)?;
    let (length, magic) = trailer.split_first_chunk::<4>().ok_or_else(no_arrow)?;
    let length = u64::from(u32::from_le_bytes(*length));
    if magic != MAGIC || length > body {
        return Err(no_arrow());
    }
    let bytes = member.bytes_at(body - length, length).map_err(one_line)?;
    let footer =
        root_as_footer(&bytes).map_err(|error| format!("its footer is damaged: {}", one_line(error)))?;
    let batches: Vec<FooterBlock> = footer.recordBatches().into_iter().flatten().copied().collect();
    let dictionaries: Vec<FooterBlock> = footer.dictionaries().into_iter().flatten().copied().collect();
    if dictionaries.len() > MAX_DICTIONARIES {
        return Err(format!(
            "it has {} dictionaries, at most {MAX_DICTIONARIES}",
            dictionaries.len()
        ));
    }
    let mut total = 0_u64;
    for block in batches.iter().chain(&dictionaries) {
        let extent = extent(block).filter(|extent| extent.end <= body);
        let Some(extent) = extent else {
            return Err("its footer points outside the file".to_owned());
        };
        // Blocks that overlap would let a small file stand for a large one.
        total = total.saturating_add(extent.end - extent.start);
    }
    if total > size {
        return Err("its batches overlap".to_owned());
    }
    Ok((batches, dictionaries))
}

/// The bytes of a block, header and body; `None` for lengths that no block has.
fn extent(block: &FooterBlock) -> Option<std::ops::Range<u64>> {
    let start = u64::try_from(block.offset()).ok()?;
    let header = u64::try_from(block.metaDataLength())
        .ok()
        .filter(|&length| length >= 8)?;
    let body = u64::try_from(block.bodyLength()).ok()?;
    Some(start..start.checked_add(header)?.checked_add(body)?)
}

/// Reads the header of a block's message and gives it to `check`, with the size of the block's body.
fn with_message(
    member: &mut Member,
    block: &FooterBlock,
    check: impl FnOnce(&Message<'_>, u64) -> Result<(), String>,
) -> Result<(), String> {
    let range = extent(block).ok_or("its footer points outside the file")?;
    let body = block.bodyLength().unsigned_abs();
    let header = range.end - range.start - body;
    let bytes = member.bytes_at(range.start, header).map_err(one_line)?;
    let message = match bytes.split_first_chunk::<4>() {
        Some((&CONTINUATION, rest)) => rest.get(4..).unwrap_or_default(),
        Some((_, rest)) => rest,
        None => &[],
    };
    let message =
        root_as_message(message).map_err(|error| format!("a message is damaged: {}", one_line(error)))?;
    if message.bodyLength() < 0 || message.bodyLength().unsigned_abs() > body {
        return Err("a message is longer than its block".to_owned());
    }
    check(&message, body)
}

fn check_dictionary(member: &mut Member, block: &FooterBlock) -> Result<(), String> {
    with_message(member, block, |message, body| {
        let header = message
            .header_as_dictionary_batch()
            .and_then(|dictionary| dictionary.data());
        let header = header.ok_or("a dictionary is missing")?;
        let texts = header.length();
        let nodes = header.nodes().map_or(0, |nodes| nodes.len());
        let node = header.nodes().filter(|_| nodes == 1).map(|nodes| *nodes.get(0));
        // Offsets of 4 bytes belong to each text, so the count is bounded by the body.
        if node.is_none_or(|node| node.length() != texts) || texts < 0 || texts.unsigned_abs() > body / 4 {
            return Err("a dictionary has another number of texts than it says".to_owned());
        }
        check_buffers(&header, body)
    })
}

/// What a batch must look like.
struct Shape<'a> {
    kind: &'a KindDef,
    widths: &'a [u32],
    rows: u32,
}

fn check_batch(member: &mut Member, block: &FooterBlock, shape: &Shape<'_>) -> Result<(), String> {
    with_message(member, block, |message, body| {
        if message.header_type() != MessageHeader::RecordBatch {
            return Err("a batch is missing".to_owned());
        }
        let header = message.header_as_record_batch().ok_or("a batch is missing")?;
        let rows = u64::from(shape.rows);
        if header.length() < 0 || header.length().unsigned_abs() != rows {
            return Err(format!(
                "a batch has {} rows, stream.json says {rows}",
                header.length()
            ));
        }
        // One node per column, and one more for the elements of a list column.
        let mut expected = Vec::new();
        for (column, &width) in shape.kind.columns.iter().zip(shape.widths) {
            expected.push(rows);
            if column.list {
                expected.push(rows * u64::from(width));
            }
        }
        let nodes = header.nodes().ok_or("a batch has no columns")?;
        let fits = |(at, &length): (usize, &u64)| {
            let node = nodes.get(at);
            node.null_count() == 0 && u64::try_from(node.length()) == Ok(length)
        };
        if nodes.len() != expected.len() || !expected.iter().enumerate().all(fits) {
            return Err("a batch has nulls or columns of another length than stream.json says".to_owned());
        }
        check_buffers(&header, body)
    })
}

/// All buffers of a message lie within its body and are not compressed.
fn check_buffers(header: &BatchHeader<'_>, body: u64) -> Result<(), String> {
    if header.compression().is_some() {
        return Err("it is compressed; recordings are not".to_owned());
    }
    for buffer in header.buffers().into_iter().flatten() {
        let end = u64::try_from(buffer.offset())
            .ok()
            .zip(u64::try_from(buffer.length()).ok());
        let end = end.and_then(|(offset, length)| offset.checked_add(length));
        if end.is_none_or(|end| end > body) {
            return Err("a column lies outside its batch".to_owned());
        }
    }
    Ok(())
}
