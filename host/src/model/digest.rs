//! Which weights these are: their hash.

use std::fmt::Write;
use std::io;
use std::os::unix::fs::FileExt;

use sha2::{Digest, Sha256};

use super::open::OpenError;
use super::weights::Weights;

/// Bytes read at a time.
const CHUNK: usize = 1 << 20;

impl Weights {
    /// SHA-256 of the weight files in lower-case hexadecimal. Several files are hashed as one, in order of their names:
    /// `cat model-*.safetensors | sha256sum` gives the same. `None` for weights without files, and when `give_up`, asked
    /// after each MiB, says so.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn sha256(&self, give_up: impl Fn() -> bool) -> Result<Option<String>, OpenError> {
        let mut hash = Sha256::new();
        let mut chunk = vec![0; CHUNK];
        for (path, file) in self.files() {
            let mut offset = 0;
            loop {
                if give_up() {
                    return Ok(None);
                }
                let read = match file.read_at(&mut chunk, offset) {
                    Ok(0) => break,
                    Ok(read) => read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(source) => {
                        return Err(OpenError::Io {
                            path: path.clone(),
                            source,
                        });
                    }
                };
                hash.update(&chunk[..read]);
                offset += read as u64;
            }
        }
        Ok((self.files().len() > 0).then(|| hexadecimal(&hash.finalize())))
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all text");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::model::{Model, preset};

    fn weights(contents: &[&[u8]]) -> (tempfile::TempDir, Weights) {
        let folder = tempfile::tempdir().expect("temporary folder");
        let mut weights = Weights::empty(0);
        for (number, bytes) in contents.iter().enumerate() {
            let path = folder.path().join(number.to_string());
            std::fs::write(&path, bytes).expect("write");
            weights.add_file(&path, File::open(&path).expect("there"));
        }
        (folder, weights)
    }

    #[test]
    fn files_are_hashed_as_one() {
        // FIPS 180-2, appendix B.1: the hash of "abc".
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        for contents in [&[&b"abc"[..]][..], &[b"ab", b"", b"c"]] {
            let (_folder, weights) = weights(contents);
            assert_eq!(weights.sha256(|| false).expect("readable").as_deref(), Some(abc));
        }
        // Appendix B.3: a million times "a".
        let million = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
        let (_folder, large) = weights(&[&[b'a'; 17], &vec![b'a'; 999_983]]);
        assert_eq!(
            large.sha256(|| false).expect("readable").as_deref(),
            Some(million)
        );
        let (_folder, larger) = weights(&[&vec![b'a'; CHUNK + 1]]);
        // Python: hashlib.sha256(b"a" * 1_048_577).hexdigest()
        assert_eq!(
            larger.sha256(|| false).expect("readable").as_deref(),
            Some("4a3f0c0c213adea174f9a3d4c13177315b588bdb2e9c1012d3d0bf0453ca0f6a")
        );
    }

    #[test]
    fn weights_without_files_have_no_hash_and_one_can_give_up() {
        let dummy = Model::dummy(preset("tiny-llama").expect("preset"), 0);
        assert_eq!(dummy.weights.sha256(|| false).expect("nothing to read"), None);
        let (_folder, weights) = weights(&[b"abc"]);
        assert_eq!(weights.sha256(|| true).expect("given up"), None);
    }
}
