//! The tar around a recording's files.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Size of a tar block.
const BLOCK: u64 = 512;

/// Appends a member whose size is known only once it is written: the header is filled in afterwards.
///
/// `E` is whatever the content's writer fails with.
pub(super) fn append<F, E>(
    file: &mut F,
    name: &str,
    content: impl FnOnce(&mut F) -> Result<(), E>,
) -> Result<(), E>
where
    F: Write + Seek,
    E: From<io::Error>,
{
    let header_at = file.stream_position()?;
    file.write_all(&[0; BLOCK as usize])?;
    content(file)?;
    let end = file.stream_position()?;
    let size = end - header_at - BLOCK;
    let padding = size.next_multiple_of(BLOCK) - size;
    file.write_all(&[0; BLOCK as usize][..padding as usize])?;
    file.seek(SeekFrom::Start(header_at))?;
    file.write_all(header(name, size)?.as_bytes())?;
    file.seek(SeekFrom::Start(end + padding))?;
    Ok(())
}

/// Ends an archive: two empty blocks.
pub(super) fn end(file: &mut impl Write) -> io::Result<()> {
    file.write_all(&[0; 2 * BLOCK as usize])
}

/// Owner and time are left out, so that equal events give equal bytes.
fn header(name: &str, size: u64) -> io::Result<tar::Header> {
    let mut header = tar::Header::new_gnu();
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

/// Where a member's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) start: u64,
    pub(super) size: u64,
}

/// Finds the members of a recording. Nothing is ever unpacked; a name only serves to find bytes.
///
/// # Errors
/// A text for a file that is no tar, is cut off, or has members that no recording has.
pub(super) fn list(file: &File) -> Result<HashMap<String, Extent>, String> {
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let mut archive = tar::Archive::new(file);
    // Raw entries: no allocation for long names, no sparse files, no size from an extended header.
    let entries = archive
        .entries_with_seek()
        .map_err(|error| error.to_string())?
        .raw(true);
    let mut members = HashMap::new();
    for entry in entries {
        let entry = entry.map_err(|error| format!("it is not a whole tar archive: {error}"))?;
        let kind = entry.header().entry_type();
        if kind.is_pax_global_extensions() || kind.is_pax_local_extensions() {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if !kind.is_file() || !is_member_name(&name) {
            return Err(format!("member {name:?} does not belong into a recording"));
        }
        let extent = Extent {
            start: entry.raw_file_position(),
            size: entry.size(),
        };
        if extent
            .start
            .checked_add(extent.size)
            .is_none_or(|end| end > length)
        {
            return Err(format!("member {name} is cut off; the file is truncated"));
        }
        if members.insert(name.clone(), extent).is_some() {
            return Err(format!("member {name} is there twice"));
        }
    }
    Ok(members)
}

/// Plain file names alone: no folders, nothing that starts with a dot.
fn is_member_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    !name.is_empty() && !name.starts_with('.') && name.bytes().all(fits)
}

/// The bytes of a member as a file of their own. Several can be read at once: the file's position is not used.
#[derive(Clone, Debug)]
pub(super) struct Member {
    file: Arc<File>,
    extent: Extent,
    position: u64,
}

impl Member {
    pub(super) fn new(file: Arc<File>, extent: Extent) -> Self {
        Self {
            file,
            extent,
            position: 0,
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.extent.size
    }

    /// Reads `size` bytes at an offset; the caller has checked that they lie within the member.
    pub(super) fn bytes_at(&mut self, offset: u64, size: u64) -> io::Result<Vec<u8>> {
        self.position = offset;
        let mut bytes = Vec::new();
        self.take(size).read_to_end(&mut bytes)?;
        if bytes.len() as u64 == size {
            Ok(bytes)
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
}

impl Read for Member {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.extent.size.saturating_sub(self.position);
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self
            .file
            .read_at(&mut buffer[..most], self.extent.start + self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for Member {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(offset) => self.extent.size.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = target
            .filter(|&target| target <= self.extent.size)
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.position)
    }
}
