//! Names of files in a pack: relative, plain, the same file on every system.

/// The pack's own description.
pub(super) const MANIFEST: &str = "pack.toml";
/// The signature over it.
pub(super) const SIGNATURE: &str = "pack.sig";
/// Longest name in bytes: what a tar header holds without extensions.
const NAME_BYTES: usize = 100;
/// Folders around a file, and the file itself.
const PARTS: usize = 4;

/// Why a name is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing.
    #[error("is empty")]
    Empty,
    /// It starts at the root.
    #[error("is absolute")]
    Absolute,
    /// It leaves its folder, or walks on the spot.
    #[error("has a part . or ..")]
    Dots,
    /// Separators of another system.
    #[error("has a backslash")]
    Backslash,
    /// A zero byte, after which readers disagree.
    #[error("has a zero byte")]
    Nul,
    /// Not text.
    #[error("is not UTF-8")]
    Text,
    /// An empty part: `a//b`, `a/`.
    #[error("has an empty part")]
    EmptyPart,
    /// Longer than a tar header holds.
    #[error("is longer than {NAME_BYTES} bytes")]
    Long,
    /// Too many folders.
    #[error("has more than {PARTS} parts")]
    Deep,
    /// Anything else.
    #[error("has a character other than A-Z, a-z, 0-9, _, - and ., or a part that starts with - or .")]
    Character,
}

/// Checks the name of a file in a pack and gives it as text.
///
/// # Errors
/// Saying what is wrong with it; the caller says of which name.
pub(super) fn check(bytes: &[u8]) -> Result<&str, NameError> {
    let first = bytes.first().ok_or(NameError::Empty)?;
    if bytes.contains(&0) {
        return Err(NameError::Nul);
    }
    let name = std::str::from_utf8(bytes).map_err(|_| NameError::Text)?;
    if name.contains('\\') {
        return Err(NameError::Backslash);
    }
    if *first == b'/' {
        return Err(NameError::Absolute);
    }
    if name.split('/').any(|part| part == "." || part == "..") {
        return Err(NameError::Dots);
    }
    if name.split('/').any(str::is_empty) {
        return Err(NameError::EmptyPart);
    }
    if bytes.len() > NAME_BYTES {
        return Err(NameError::Long);
    }
    if name.split('/').count() > PARTS {
        return Err(NameError::Deep);
    }
    if name.split('/').all(is_plain) {
        Ok(name)
    } else {
        Err(NameError::Character)
    }
}

fn is_plain(part: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    !part.starts_with(['-', '.']) && part.bytes().all(fits)
}

/// Whether a file is text for the people who use a pack: a readme, a licence, a notice or a list of changes beside
/// `pack.toml`.
pub(super) fn is_document(name: &str) -> bool {
    let stem = name.split(['.', '-']).next().unwrap_or(name);
    !name.contains('/') && ["README", "LICENSE", "LICENCE", "NOTICE", "CHANGELOG"].contains(&stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_relative_names_are_taken() {
        for name in [
            "pack.toml",
            "acme_probe.wasm",
            "x86_64-unknown-linux-gnu/a.so",
            "LICENSE-MIT",
        ] {
            assert_eq!(check(name.as_bytes()), Ok(name));
        }
        assert_eq!(check("a".repeat(100).as_bytes()).map(str::len), Ok(100));
    }

    #[test]
    fn each_bad_name_is_told_what_is_wrong() {
        let long = "a".repeat(101);
        let cases: [(&[u8], NameError); 17] = [
            (b"", NameError::Empty),
            (b"/etc/passwd", NameError::Absolute),
            (b"..", NameError::Dots),
            (b"a/../b", NameError::Dots),
            (b"./a", NameError::Dots),
            (b"a\\b", NameError::Backslash),
            (b"C:\\a", NameError::Backslash),
            (b"a\0b", NameError::Nul),
            (b"a\xff", NameError::Text),
            (b"a//b", NameError::EmptyPart),
            (b"a/", NameError::EmptyPart),
            (long.as_bytes(), NameError::Long),
            (b"a/b/c/d/e", NameError::Deep),
            ("ä.wasm".as_bytes(), NameError::Character),
            (b"a b", NameError::Character),
            (b".hidden", NameError::Character),
            (b"-rf", NameError::Character),
        ];
        for (name, error) in cases {
            assert_eq!(check(name), Err(error), "{}", String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn documents_lie_beside_the_description() {
        for name in ["README", "README.md", "LICENSE", "LICENSE-MIT", "NOTICE.txt"] {
            assert!(is_document(name), "{name}");
        }
        for name in ["docs/README.md", "READMEX", "readme", "a.wasm"] {
            assert!(!is_document(name), "{name}");
        }
    }
}
