//! Keys of vendors: ed25519, as one line of text each.

use std::fmt;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::plugin::file::hex;

const PUBLIC_PREFIX: &str = "lmb-pub-ed25519:";
const SECRET_PREFIX: &str = "lmb-key-ed25519:";
/// A key file is a line and comments.
const KEY_FILE_BYTES: u64 = 4_096;

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Not the text of a public key.
    #[error("it is no public key: expected {PUBLIC_PREFIX} and 44 characters of base64")]
    NoPublicKey,
    /// Not the text of a private key.
    #[error(
        "it is no private key of `lm-bench pack keygen`: expected {SECRET_PREFIX} and 44 characters of base64"
    )]
    NoSecretKey,
    /// A private key where the public one belongs.
    #[error("it is a private key, which nobody but its owner should have; give the public one (NAME.pub)")]
    SecretKey,
    /// A key with which anybody can sign.
    #[error("it is a public key with which anybody can sign")]
    Weak,
    /// Others can read a private key.
    #[error(
        "others can read this private key (mode {0:o}): run `chmod 600` on it, and think of who has read it"
    )]
    Open(u32),
    /// The system does not give random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(String),
    /// The file is there already.
    #[error("it exists, and keys are never overwritten; give another name")]
    Exists,
    /// The file cannot be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A public key.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    fn from_bytes(bytes: &[u8; 32]) -> Result<Self, KeyError> {
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| KeyError::NoPublicKey)?;
        if key.is_weak() {
            return Err(KeyError::Weak);
        }
        Ok(Self(key))
    }

    /// Reads a key's file.
    ///
    /// # Errors
    /// When it cannot be read or holds no public key.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        key_line(File::open(path)?)?.parse()
    }

    /// The key's 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// What people compare: the first 80 bits of the key's SHA-256 as `3f2a-91bc-77d0-e1c2-0a4b`.
    pub fn fingerprint(&self) -> String {
        let digits = hex(&Sha256::digest(self.as_bytes())[..10]);
        let groups: Vec<&str> = (0..5).map(|group| &digits[4 * group..4 * group + 4]).collect();
        groups.join("-")
    }

    /// Whether a signature of a message is this key's. Signatures and keys that other implementations could judge
    /// otherwise are refused.
    pub fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        self.0
            .verify_strict(message, &Signature::from_bytes(signature))
            .is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PUBLIC_PREFIX}{}", BASE64.encode(self.as_bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_string()
    }
}

impl TryFrom<String> for PublicKey {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with(SECRET_PREFIX) {
            return Err(KeyError::SecretKey);
        }
        let bytes = decode(text, PUBLIC_PREFIX).ok_or(KeyError::NoPublicKey)?;
        Self::from_bytes(&bytes)
    }
}

/// A private key. Its bytes are overwritten when it is dropped.
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// Makes a key of the system's random bytes.
    ///
    /// # Errors
    /// When there are none.
    pub fn generate() -> Result<Self, KeyError> {
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(seed.as_mut_slice()).map_err(|error| KeyError::Random(error.to_string()))?;
        Ok(Self(SigningKey::from_bytes(&seed)))
    }

    /// The key of a seed, for tests against published vectors.
    #[cfg(test)]
    pub(super) fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// Reads a key's file.
    ///
    /// # Errors
    /// When others can read it too, or it holds no private key.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let file = File::open(path)?;
        let mode = file.metadata()?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyError::Open(mode));
        }
        let seed = decode(&key_line(file)?, SECRET_PREFIX).ok_or(KeyError::NoSecretKey)?;
        Ok(Self(SigningKey::from_bytes(&Zeroizing::new(seed))))
    }

    /// Writes the private key to a new file that its owner alone can read, and the public key beside it; gives the
    /// public key's path.
    ///
    /// # Errors
    /// When one of the files exists or cannot be written; then neither is left behind.
    pub fn write(&self, path: &Path) -> Result<PathBuf, KeyError> {
        let mut public = path.as_os_str().to_owned();
        public.push(".pub");
        let public = PathBuf::from(public);
        let seed = Zeroizing::new(self.0.to_bytes());
        let secret_text = format!(
            "# Private key of lm-bench packs. Whoever has it can sign in your name.\n{SECRET_PREFIX}{}\n",
            BASE64.encode(seed.as_slice())
        );
        create(&public, 0o644, &format!("{}\n", self.public()))?;
        create(path, 0o600, &secret_text).inspect_err(|_| {
            let _ = fs::remove_file(&public);
        })?;
        Ok(public)
    }

    /// The public key that belongs to it.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs a message.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

fn create(path: &Path, mode: u32, text: &str) -> Result<(), KeyError> {
    let opened = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path);
    let mut file = opened.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => KeyError::Exists,
        _ => KeyError::Io(error),
    })?;
    let written = file
        // Whatever the umask left of it.
        .set_permissions(Permissions::from_mode(mode))
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| file.sync_all());
    written.map_err(|error| {
        let _ = fs::remove_file(path);
        KeyError::Io(error)
    })
}

/// The one line of a key file that is neither empty nor a comment; empty if there is not exactly one.
fn key_line(file: File) -> Result<String, KeyError> {
    let mut text = String::new();
    file.take(KEY_FILE_BYTES).read_to_string(&mut text)?;
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(match (lines.next(), lines.next()) {
        (Some(line), None) => line.to_owned(),
        _ => String::new(),
    })
}

fn decode(text: &str, prefix: &str) -> Option<[u8; 32]> {
    let bytes = BASE64.decode(text.strip_prefix(prefix)?).ok()?;
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8032, section 7.1, test 2: seed, public key, signature of the one byte 0x72.
    const SEED: &str = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
    const PUBLIC: &str = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
    const SIGNATURE: &str = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                             085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";

    fn bytes<const N: usize>(digits: &str) -> [u8; N] {
        std::array::from_fn(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).expect("digits"))
    }

    #[test]
    fn keys_and_signatures_are_those_of_rfc_8032() {
        let secret = SecretKey::from_seed(&bytes(SEED));
        assert_eq!(secret.public().as_bytes(), &bytes::<32>(PUBLIC));
        assert_eq!(secret.sign(&[0x72]), bytes::<64>(SIGNATURE));
        assert!(secret.public().verifies(&[0x72], &bytes(SIGNATURE)));
        assert!(!secret.public().verifies(&[0x73], &bytes(SIGNATURE)));
        let mut other = bytes::<64>(SIGNATURE);
        other[63] ^= 0x20;
        assert!(!secret.public().verifies(&[0x72], &other));
    }

    #[test]
    fn the_fingerprint_is_the_head_of_the_digest() {
        // printf 3d4017c3…4af4660c | xxd -r -p | sha256sum
        let key = SecretKey::from_seed(&bytes(SEED)).public();
        assert_eq!(key.fingerprint(), "39f7-13d0-a644-253f-0452");
    }

    #[test]
    fn a_pair_is_written_once_and_read_again() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("vendor.key");
        let secret = SecretKey::generate().expect("random bytes");
        let public = secret.write(&path).expect("written");
        assert_eq!(public, folder.path().join("vendor.key.pub"));
        let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&public)), (0o600, 0o644));
        assert_eq!(PublicKey::read(&public).expect("a key"), secret.public());
        let again = SecretKey::read(&path).expect("a key");
        assert_eq!(again.public(), secret.public());

        let before = fs::read(&path).expect("a file");
        assert!(matches!(secret.write(&path), Err(KeyError::Exists)));
        fs::remove_file(&public).expect("a file");
        let other = SecretKey::generate().expect("random bytes");
        assert!(matches!(other.write(&path), Err(KeyError::Exists)));
        assert!(!public.exists(), "no half of a pair is left");
        assert_eq!(fs::read(&path).expect("a file"), before);
    }

    #[test]
    fn a_private_key_that_others_can_read_is_not_used() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("key");
        SecretKey::generate()
            .expect("random bytes")
            .write(&path)
            .expect("written");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("own file");
        let error = SecretKey::read(&path).err().expect("refused").to_string();
        assert!(error.contains("640") && error.contains("chmod 600"), "{error}");
    }

    #[test]
    fn what_is_no_public_key_is_told_apart() {
        let error = |text: &str| text.parse::<PublicKey>().expect_err("refused");
        assert!(matches!(error("lmb-key-ed25519:AAAA"), KeyError::SecretKey));
        assert!(matches!(error("ssh-ed25519 AAAA"), KeyError::NoPublicKey));
        assert!(matches!(error("lmb-pub-ed25519:AAAA"), KeyError::NoPublicKey));
        // The neutral element: any signature of a certain form is valid for any message.
        let mut neutral = [0; 32];
        neutral[0] = 1;
        let text = format!("{PUBLIC_PREFIX}{}", BASE64.encode(neutral));
        assert!(matches!(error(&text), KeyError::Weak));
    }
}
