//! Reading and replacing single files.

use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, open};

/// Whether a symbolic link is read through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    /// The user named the file.
    Follow,
    /// The file is part of a pack.
    Refuse,
}

/// Opens a regular file; never waits for a pipe.
///
/// # Errors
/// When it is no regular file or cannot be opened.
pub(super) fn open_regular(path: &Path, links: Links) -> io::Result<File> {
    let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    if links == Links::Refuse {
        flags |= OFlags::NOFOLLOW;
    }
    let file = open(path, flags, Mode::empty()).map_err(|error| match error {
        rustix::io::Errno::LOOP => io::Error::other("it is a symbolic link, which a pack must not hold"),
        error => error.into(),
    })?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file.into())
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// When it is larger, no regular file, or cannot be read.
pub(super) fn read_regular(path: &Path, links: Links, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than allowed tells a file that is too large, or grows while it is read.
    open_regular(path, links)?
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("it has more than {limit} bytes")));
    }
    Ok(bytes)
}

/// Writes a file that appears, or replaces another one, in one step.
///
/// # Errors
/// When its folder cannot be written to.
pub(super) fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new()
        .prefix(".lm-bench-")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(folder)?.sync_all()
}
