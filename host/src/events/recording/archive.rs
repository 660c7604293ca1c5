//! The tar around a recording's files.

use std::io::{self, Seek, SeekFrom, Write};

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
