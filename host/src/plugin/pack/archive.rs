//! The archive form of a pack: one zstd frame around a tar of regular files.
//!
//! Nothing is unpacked to disk here, and no size that a file claims decides how much memory is taken.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::rc::Rc;

use super::content::{Content, ContentError, ContentLimits, Gathering};
use super::name::{MANIFEST, NameError, SIGNATURE};

/// Size of a tar block.
const BLOCK: usize = 512;
/// Zeros after the last file; tar itself pads to 10 KiB.
const PADDING: usize = 64 << 10;
/// Largest window of the compressor that is accepted, as a power of two: a header must not ask for more memory.
const WINDOW_LOG: u32 = 25;
/// Level of the compressor: its window is well below [`WINDOW_LOG`], and plugins are compressed once.
const LEVEL: i32 = 12;

/// Reads an archive under limits, which are kept while it is unpacked and not afterwards.
///
/// # Errors
/// When it is damaged, truncated, passes a limit, or holds what no pack holds.
pub(super) fn read(source: impl Read, limits: ContentLimits) -> Result<Content, ContentError> {
    let taken = Rc::new(Cell::new(0));
    let counted = Counted {
        source,
        taken: Rc::clone(&taken),
    };
    let mut decoder = zstd::stream::read::Decoder::new(counted)
        .map_err(ContentError::Unreadable)?
        .single_frame();
    decoder
        .window_log_max(WINDOW_LOG)
        .map_err(ContentError::Unreadable)?;
    let stopped = Rc::new(Cell::new(None));
    let bounded = Bounded {
        source: decoder,
        taken,
        given: 0,
        limits,
        stopped: Rc::clone(&stopped),
    };
    let result = read_tar(bounded, limits);
    // Whatever the layers above made of it, this is why reading ended.
    match stopped.get() {
        Some(Stop::Bytes) => Err(ContentError::Bytes(limits.bytes)),
        Some(Stop::Ratio) => Err(ContentError::Ratio(limits.ratio)),
        None => result,
    }
}

type Decoder<R> = zstd::stream::read::Decoder<'static, io::BufReader<Counted<R>>>;

fn read_tar<R: Read>(bounded: Bounded<Decoder<R>>, limits: ContentLimits) -> Result<Content, ContentError> {
    let mut gathering = Gathering::new(limits);
    let mut archive = tar::Archive::new(bounded);
    // Raw entries: long names, sparse files and sizes in extended headers are not interpreted but refused.
    let entries = archive.entries().map_err(damaged)?.raw(true);
    for entry in entries {
        let mut entry = entry.map_err(damaged)?;
        let raw = entry_name(entry.header())?;
        if let Some(kind) = other_kind(entry.header()) {
            let name = String::from_utf8_lossy(&raw).into_owned();
            return Err(ContentError::Kind { name, kind });
        }
        let size = entry.size();
        let name = gathering.admit(&raw, size)?;
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(damaged)?;
        if bytes.len() as u64 != size {
            return Err(ContentError::Archive(format!("{name} is cut off")));
        }
        gathering.fill(name, bytes);
    }
    check_end(archive.into_inner())?;
    Ok(gathering.finish())
}

/// The name's bytes as they stand in the header.
fn entry_name(header: &tar::Header) -> Result<Vec<u8>, ContentError> {
    let refuse = |raw: &[u8], error| ContentError::Name {
        name: String::from_utf8_lossy(raw).into_owned(),
        error,
    };
    let field = &header.as_old().name;
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    let (name, rest) = field.split_at(end);
    // Some readers take the name to end at the first zero, others do not.
    if rest.iter().any(|&byte| byte != 0) {
        return Err(refuse(name, NameError::Nul));
    }
    if let Some(ustar) = header.as_ustar()
        && ustar.prefix.iter().any(|&byte| byte != 0)
    {
        return Err(refuse(name, NameError::Long));
    }
    Ok(name.to_vec())
}

/// What an entry is, where it is no regular file.
fn other_kind(header: &tar::Header) -> Option<&'static str> {
    use tar::EntryType as Type;
    match header.entry_type() {
        Type::Regular => None,
        Type::Link => Some("a hard link"),
        Type::Symlink => Some("a symbolic link"),
        Type::Char => Some("a character device"),
        Type::Block => Some("a block device"),
        Type::Directory => Some("a folder"),
        Type::Fifo => Some("a named pipe"),
        Type::GNUSparse => Some("a sparse file"),
        Type::GNULongName | Type::GNULongLink => Some("a name longer than 100 bytes"),
        Type::XGlobalHeader | Type::XHeader => Some("an extended header"),
        _ => Some("an entry of an unknown kind"),
    }
}

/// Checks what follows the last file: at least the second of two empty blocks, nothing but zeros, the end of the frame,
/// the end of the file.
fn check_end<R: Read>(mut bounded: Bounded<Decoder<R>>) -> Result<(), ContentError> {
    let mut rest = Vec::new();
    (&mut bounded)
        .take(PADDING as u64 + 1)
        .read_to_end(&mut rest)
        .map_err(damaged)?;
    if rest.len() < BLOCK || rest.len() > PADDING || rest.iter().any(|&byte| byte != 0) {
        let text = "its end is missing or followed by something else";
        return Err(ContentError::Archive(text.to_owned()));
    }
    let mut source = bounded.source.finish();
    match source.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(ContentError::Archive(
            "something follows the compressed data".to_owned(),
        )),
        Err(error) => Err(ContentError::Unreadable(error)),
    }
}

fn damaged(error: io::Error) -> ContentError {
    ContentError::Archive(error.to_string())
}

/// Counts the bytes that are taken from the file.
struct Counted<R> {
    source: R,
    taken: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.taken.set(self.taken.get() + read as u64);
        Ok(read)
    }
}

#[derive(Clone, Copy, Debug)]
enum Stop {
    Bytes,
    Ratio,
}

/// Stops a stream that gives more than a pack may hold, or more than its source can have held.
struct Bounded<R> {
    source: R,
    taken: Rc<Cell<u64>>,
    given: u64,
    limits: ContentLimits,
    stopped: Rc<Cell<Option<Stop>>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.given += read as u64;
        // Headers and padding come on top of the files' own bytes.
        let headers = (self.limits.entries as u64 + 1) * 2 * BLOCK as u64 + PADDING as u64;
        let by_ratio = self.taken.get().saturating_mul(self.limits.ratio);
        let stop = if self.given > self.limits.bytes.saturating_add(headers) {
            Stop::Bytes
        } else if self.given > self.limits.free.saturating_add(by_ratio) {
            Stop::Ratio
        } else {
            return Ok(read);
        };
        self.stopped.set(Some(stop));
        Err(io::Error::other("unpacks to too much"))
    }
}

/// Writes an archive. Equal content gives equal bytes: `pack.toml` first, then `pack.sig`, then the other files by name;
/// no times, no owners.
///
/// # Errors
/// When the target cannot be written.
pub(super) fn write<W: Write>(content: &Content, target: W) -> io::Result<W> {
    let mut encoder = zstd::stream::write::Encoder::new(target, LEVEL)?;
    encoder.include_checksum(true)?;
    let mut archive = tar::Builder::new(encoder);
    archive.mode(tar::HeaderMode::Deterministic);
    let own = [MANIFEST, SIGNATURE];
    let first = own
        .iter()
        .filter_map(|name| content.get(name).map(|bytes| (*name, bytes)));
    let others = content.files().filter(|(name, _)| !own.contains(name));
    for (name, bytes) in first.chain(others) {
        archive.append(&header(name, bytes.len() as u64)?, bytes)?;
    }
    archive.into_inner()?.finish()
}

fn header(name: &str, size: u64) -> io::Result<tar::Header> {
    let mut header = tar::Header::new_ustar();
    header.set_path(name)?;
    header.set_size(size);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_entry_type(tar::EntryType::Regular);
    header.set_cksum();
    Ok(header)
}

#[cfg(test)]
mod tests;
