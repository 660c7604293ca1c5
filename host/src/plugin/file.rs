//! Plugin files: opened once, read once, hashed. All that follows looks at these bytes, never at the path again.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use sha2::{Digest, Sha256};

use super::limits::Limits;
use super::session::Door;

/// A plugin file as it was when it was read.
#[derive(Debug)]
pub(crate) struct PluginFile {
    /// Where it was read.
    pub(crate) path: PathBuf,
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
    /// Its digest, in lower-case hexadecimal digits.
    pub(crate) sha256: String,
    /// The door that its content belongs to.
    pub(crate) door: Door,
}

/// Why a file cannot be a plugin.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It could not be opened or read.
    #[error("{}: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// Links are not followed, so that the file that is checked is the file that is named.
    #[error("{} is a symbolic link: name the file that it points to", .0.display())]
    Link(PathBuf),
    /// A folder, a pipe, a device.
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// It holds nothing.
    #[error("{} is empty", .0.display())]
    Empty(PathBuf),
    /// It is larger than a plugin may be.
    #[error("{} has {size} bytes, a plugin of this form may have {limit}", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// The largest size allowed.
        limit: u64,
    },
    /// A core module instead of a component.
    #[error(
        "{} is a core WebAssembly module, not a component: build it with `lm-bench plugin build DIR --door wasm --out FOLDER`",
        .0.display()
    )]
    CoreModule(PathBuf),
    /// Compiled code of wasmtime, which cannot be checked.
    #[error(
        "{} holds precompiled WebAssembly, which cannot be checked: give the component it was made from",
        .0.display()
    )]
    Precompiled(PathBuf),
    /// Something else.
    #[error("{} is neither a native library (ELF) nor a WebAssembly component", .0.display())]
    Unknown(PathBuf),
}

/// Reads a plugin file.
///
/// # Errors
/// When it is not a readable regular file of a known form and size.
pub(crate) fn read(path: &Path, limits: &Limits) -> Result<PluginFile, FileError> {
    let unreadable = |error| FileError::Unreadable {
        path: path.to_owned(),
        error,
    };
    // NONBLOCK: opening a pipe that nobody writes to would wait for ever.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = open(path, flags, Mode::empty()).map_err(|error| match error {
        rustix::io::Errno::LOOP => FileError::Link(path.to_owned()),
        error => unreadable(error.into()),
    })?;
    let facts = fstat(&file).map_err(|error| unreadable(error.into()))?;
    if FileType::from_raw_mode(facts.st_mode) != FileType::RegularFile {
        return Err(FileError::NotAFile(path.to_owned()));
    }
    let largest = limits.component_bytes.max(limits.library_bytes);
    // One byte more than allowed tells a file that grows after the check.
    let mut bytes = Vec::new();
    File::from(file)
        .take(largest + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    let door = door(&bytes, path)?;
    let limit = match door {
        Door::Wasm => limits.component_bytes,
        Door::Dylib | Door::Builtin => limits.library_bytes,
    };
    let size = bytes.len() as u64;
    if size > limit {
        return Err(FileError::TooLarge {
            path: path.to_owned(),
            size,
            limit,
        });
    }
    let sha256 = hex(&Sha256::digest(&bytes));
    Ok(PluginFile {
        path: path.to_owned(),
        bytes,
        sha256,
        door,
    })
}

/// Tells the door from the first bytes; the path serves messages.
///
/// # Errors
/// When they are the beginning of no plugin.
pub(crate) fn door(bytes: &[u8], path: &Path) -> Result<Door, FileError> {
    const WASM: &[u8] = b"\0asm";
    if bytes.is_empty() {
        return Err(FileError::Empty(path.to_owned()));
    }
    if bytes.starts_with(b"\x7fELF") {
        // wasmtime's own compiled code is an ELF file with this value where systems have their number.
        const WASMTIME_OS_ABI: u8 = 200;
        return match bytes.get(7) {
            Some(&WASMTIME_OS_ABI) => Err(FileError::Precompiled(path.to_owned())),
            _ => Ok(Door::Dylib),
        };
    }
    if bytes.starts_with(WASM) {
        // Bytes 4 and 5 are the version, 6 and 7 the layer: 0 a module, 1 a component.
        return match bytes.get(6) {
            Some(0) => Err(FileError::CoreModule(path.to_owned())),
            _ => Ok(Door::Wasm),
        };
    }
    Err(FileError::Unknown(path.to_owned()))
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_bytes(bytes: &[u8], limits: &Limits) -> Result<PluginFile, FileError> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("plugin");
        std::fs::write(&path, bytes).expect("a written file");
        read(&path, limits)
    }

    #[test]
    fn forms_are_told_by_their_first_bytes() {
        let limits = Limits::default();
        assert_eq!(
            read_bytes(b"\0asm\x0d\0\x01\0", &limits)
                .expect("a component")
                .door,
            Door::Wasm
        );
        assert_eq!(
            read_bytes(b"\x7fELF\x02\x01\x01\0", &limits)
                .expect("a library")
                .door,
            Door::Dylib
        );
        let core = read_bytes(b"\0asm\x01\0\0\0", &limits);
        assert!(matches!(core, Err(FileError::CoreModule(_))), "{core:?}");
        assert!(matches!(read_bytes(b"", &limits), Err(FileError::Empty(_))));
        assert!(matches!(
            read_bytes(b"hello", &limits),
            Err(FileError::Unknown(_))
        ));
        let precompiled = read_bytes(b"\x7fELF\x02\x01\x01\xc8", &limits);
        assert!(
            matches!(precompiled, Err(FileError::Precompiled(_))),
            "{precompiled:?}"
        );
    }

    #[test]
    fn the_digest_is_sha256() {
        // printf '\177ELF' | sha256sum
        let file = read_bytes(b"\x7fELF", &Limits::default()).expect("a library");
        assert_eq!(
            file.sha256,
            "3bdbb4fe8397cd2b842430b39ccff01a8663c751945ef5e9a09e267fb8b1d359"
        );
    }

    #[test]
    fn a_file_over_the_limit_is_refused() {
        let limits = Limits {
            component_bytes: 8,
            library_bytes: 8,
            ..Limits::default()
        };
        let error = read_bytes(b"\0asm\x0d\0\x01\0\0", &limits).expect_err("nine bytes");
        assert!(
            matches!(
                error,
                FileError::TooLarge {
                    size: 9,
                    limit: 8,
                    ..
                }
            ),
            "{error}"
        );
    }

    #[test]
    fn links_folders_and_pipes_are_refused_without_waiting() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let limits = Limits::default();
        assert!(matches!(
            read(folder.path(), &limits),
            Err(FileError::NotAFile(_))
        ));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/etc/hostname", &link).expect("a link");
        assert!(matches!(read(&link, &limits), Err(FileError::Link(_))));
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a pipe");
        assert!(matches!(read(&pipe, &limits), Err(FileError::NotAFile(_))));
        let missing = read(&folder.path().join("none"), &limits).expect_err("no file");
        assert!(missing.to_string().contains("No such file"), "{missing}");
    }
}
