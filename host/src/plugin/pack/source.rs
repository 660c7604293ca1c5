//! A pack that a path names: an archive or a folder, read once and whole.

use std::fs;
use std::io;
use std::path::Path;

use super::content::{Content, ContentError, ContentLimits};
use super::error::PackError;
use super::files::{Links, open_regular};
use super::{archive, folder};

/// Reads a pack into memory. All that follows looks at these bytes, never at the path again.
///
/// # Errors
/// When it cannot be read, is damaged, passes a limit, or holds what no pack holds.
pub(super) fn read(path: &Path) -> Result<Content, PackError> {
    let limits = ContentLimits::default();
    let unreadable = |error: io::Error| PackError::content(path)(ContentError::Unreadable(error));
    let is_folder = fs::metadata(path).map_err(unreadable)?.is_dir();
    let content = if is_folder {
        folder::read(path, limits)
    } else {
        let file = open_regular(path, Links::Follow).map_err(unreadable)?;
        archive::read(file, limits)
    };
    content.map_err(PackError::content(path))
}
