//! `pack.sig`: who vouches for a pack, and until when.
//!
//! What is signed is a text with the key, both times and then `pack.toml` byte by byte, so that none of them can be
//! changed alone:
//!
//! ```text
//! lm-bench pack signature 1
//! key lmb-pub-ed25519:…
//! created 2026-12-01T17:30:00Z
//! expires 2027-12-01T17:30:00Z
//!
//! <the bytes of pack.toml>
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use super::key::{PublicKey, SecretKey};
use super::manifest::read_layout;
use super::timestamp::Timestamp;

const SCHEMA: u32 = 1;
/// A signature is a few lines.
pub(super) const SIGNATURE_BYTES: usize = 4_096;

/// Why a `pack.sig` cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("its pack.sig cannot be read: {0}")]
pub struct SignatureError(String);

/// A signature over a `pack.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackSignature {
    schema: u32,
    /// The key it was made with.
    pub key: PublicKey,
    /// When it was made.
    pub created: Timestamp,
    /// When it ends.
    pub expires: Timestamp,
    signature: String,
}

impl PackSignature {
    /// Signs the bytes of a `pack.toml` for a time.
    pub fn sign(secret: &SecretKey, manifest: &[u8], created: Timestamp, expires: Timestamp) -> Self {
        let mut signature = Self {
            schema: SCHEMA,
            key: secret.public(),
            created,
            expires,
            signature: String::new(),
        };
        signature.signature = BASE64.encode(secret.sign(&signature.message(manifest)));
        signature
    }

    /// Reads a `pack.sig`.
    ///
    /// # Errors
    /// When it is none of this layout.
    pub fn parse(bytes: &[u8]) -> Result<Self, SignatureError> {
        if bytes.len() > SIGNATURE_BYTES {
            return Err(SignatureError(format!(
                "it has more than {SIGNATURE_BYTES} bytes"
            )));
        }
        let read: Self = read_layout(bytes, SCHEMA, |read: &Self| read.schema).map_err(SignatureError)?;
        match read.raw() {
            Some(_) => Ok(read),
            None => Err(SignatureError(
                "its signature is not 64 bytes in base64".to_owned(),
            )),
        }
    }

    /// The text of a `pack.sig`.
    ///
    /// # Errors
    /// Never for a signature that was made or read here.
    pub fn to_toml(&self) -> Result<String, SignatureError> {
        toml::to_string(self).map_err(|error| SignatureError(error.to_string()))
    }

    /// Whether it was made over these bytes with the key that it names.
    pub fn matches(&self, manifest: &[u8]) -> bool {
        self.raw()
            .is_some_and(|raw| self.key.verifies(&self.message(manifest), &raw))
    }

    fn raw(&self) -> Option<[u8; 64]> {
        BASE64.decode(&self.signature).ok()?.try_into().ok()
    }

    fn message(&self, manifest: &[u8]) -> Vec<u8> {
        let head = format!(
            "lm-bench pack signature {SCHEMA}\nkey {}\ncreated {}\nexpires {}\n\n",
            self.key, self.created, self.expires
        );
        [head.as_bytes(), manifest].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed() -> PackSignature {
        let secret = SecretKey::from_seed(&[7; 32]);
        let created = Timestamp::from_unix(1_796_000_000);
        PackSignature::sign(&secret, b"name = \"acme\"", created, created.after_days(30))
    }

    #[test]
    fn a_signature_is_the_same_after_it_was_written_and_read() {
        let text = signed().to_toml().expect("TOML");
        let read = PackSignature::parse(text.as_bytes()).expect("a signature");
        assert_eq!(read, signed());
        assert!(read.matches(b"name = \"acme\""));
    }

    #[test]
    fn nothing_that_is_signed_can_be_changed() {
        let bytes = b"name = \"acme\"";
        assert!(!signed().matches(b"name = \"acne\""));
        let later = PackSignature {
            expires: signed().expires.after_days(365),
            ..signed()
        };
        assert!(!later.matches(bytes), "the end of its time");
        let created = PackSignature {
            created: Timestamp::from_unix(0),
            ..signed()
        };
        assert!(!created.matches(bytes), "the time it was made");
        let key = SecretKey::from_seed(&[8; 32]).public();
        assert!(!PackSignature { key, ..signed() }.matches(bytes), "the key");
    }

    #[test]
    fn what_is_no_signature_is_refused_with_one_line() {
        let text = signed().to_toml().expect("TOML");
        let cases = [
            String::new(),
            "x".repeat(5_000),
            text.replace("schema = 1", "schema = 2"),
            text.replace("lmb-pub", "lmb-key"),
            text.replace("signature = \"", "signature = \"A"),
            format!("{text}extra = 1\n"),
        ];
        for case in cases {
            let error = PackSignature::parse(case.as_bytes())
                .expect_err("refused")
                .to_string();
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        assert!(PackSignature::parse(&[0xff]).is_err());
    }
}
