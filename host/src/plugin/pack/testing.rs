//! Packs for tests, and archives that no pack may be.

use sha2::{Digest, Sha256};

use super::archive;
use super::content::{Content, ContentLimits, Gathering};
use super::key::SecretKey;
use super::manifest::PackManifest;
use super::name::{MANIFEST, SIGNATURE};
use super::signature::PackSignature;
use super::timestamp::Timestamp;
use crate::plugin::file::hex;

/// A time at which the signatures of these tests hold.
pub(super) const NOW: u64 = 1_796_000_000;

pub(super) fn now() -> Timestamp {
    Timestamp::from_unix(NOW)
}

pub(super) fn secret() -> SecretKey {
    SecretKey::from_seed(&[7; 32])
}

/// The smallest file that identifies itself as the WASM build of a plugin: a component with nothing but its manifest.
pub(super) fn component(id: &str) -> Vec<u8> {
    let json = format!(
        r#"{{"schema":1,"id":"{id}","version":"1.0.0","about":"a","license":"MIT","sdk":"1.0.0",
            "requires":["lmb.collector/1"],"metrics":[]}}"#
    );
    let name = b"lmb:manifest";
    let body = [&[name.len() as u8], name.as_slice(), json.as_bytes()].concat();
    let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
    bytes.push(0);
    // LEB128 of a length below 2^14.
    bytes.extend([body.len() as u8 & 0x7f | 0x80, (body.len() >> 7) as u8]);
    bytes.extend(body);
    bytes
}

/// The content of files.
pub(super) fn content(files: &[(&str, &[u8])]) -> Content {
    let mut gathering = Gathering::new(ContentLimits::default());
    for (name, bytes) in files {
        let name = gathering
            .admit(name.as_bytes(), bytes.len() as u64)
            .expect("an allowed name");
        gathering.fill(name, bytes.to_vec());
    }
    gathering.finish()
}

/// The text of a pack with one plugin.
pub(super) fn manifest_text(version: &str, plugin: &[u8]) -> String {
    format!(
        "schema = 1\nname = \"acme-pack\"\nversion = \"{version}\"\nlicense = \"MIT\"\nabout = \"a\"\n\
         [[plugins]]\nid = \"acme-probe\"\ndoor = \"wasm\"\nfile = \"acme_probe.wasm\"\nsha256 = \"{}\"\nsize = {}\n\
         requires = [\"lmb.collector/1\"]\n[config.acme-probe]\nwindow = 64\n",
        hex(&Sha256::digest(plugin)),
        plugin.len()
    )
}

/// A pack with one plugin, not signed.
pub(super) fn unsigned(version: &str, plugin: &[u8]) -> (Content, PackManifest) {
    let text = manifest_text(version, plugin);
    let manifest = PackManifest::parse(text.as_bytes()).expect("a description");
    let files = [(MANIFEST, text.as_bytes()), ("acme_probe.wasm", plugin)];
    (content(&files), manifest)
}

/// A pack with one plugin, signed now for thirty days.
pub(super) fn signed(version: &str, plugin: &[u8]) -> (Content, PackManifest) {
    let (mut content, manifest) = unsigned(version, plugin);
    let text = content.get(MANIFEST).expect("a description");
    let signature = PackSignature::sign(&secret(), text, now(), now().after_days(30));
    content.set_signature(signature.to_toml().expect("TOML").into_bytes());
    assert!(content.get(SIGNATURE).is_some());
    (content, manifest)
}

/// An archive with entries as a test wants them, whatever a pack may hold.
pub(super) struct EvilArchive(Vec<u8>);

impl EvilArchive {
    /// Starts with the files of a good pack.
    pub(super) fn new() -> Self {
        let (content, _) = signed("1.0.0", &component("acme-probe"));
        let mut archive = Self(Vec::new());
        for (name, bytes) in content.files() {
            archive.add(name.as_bytes(), b'0', bytes);
        }
        archive
    }

    /// Adds an entry with the raw name and type byte.
    pub(super) fn add(&mut self, name: &[u8], kind: u8, bytes: &[u8]) {
        self.add_sized(name, kind, (bytes, bytes.len() as u64));
    }

    /// Adds an entry whose header claims another size than its bytes have.
    pub(super) fn add_sized(&mut self, name: &[u8], kind: u8, (bytes, size): (&[u8], u64)) {
        let mut header = tar::Header::new_ustar();
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_size(size);
        header.set_mode(0o644);
        header.as_old_mut().linkflag[0] = kind;
        if matches!(kind, b'1' | b'2') {
            header.as_old_mut().linkname[..11].copy_from_slice(b"/etc/passwd");
        }
        self.add_header(header, bytes);
    }

    /// Adds a header as it is, with its checksum, and bytes.
    pub(super) fn add_header(&mut self, mut header: tar::Header, bytes: &[u8]) {
        header.set_cksum();
        self.0.extend(header.as_bytes());
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
    }

    /// The tar with its end.
    pub(super) fn tar(mut self) -> Vec<u8> {
        self.0.extend([0; 1_024]);
        self.0
    }

    /// The compressed archive.
    pub(super) fn compressed(self) -> Vec<u8> {
        compress(&self.tar())
    }
}

/// Bytes as one zstd frame with a checksum.
pub(super) fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).expect("an encoder");
    encoder.include_checksum(true).expect("an encoder");
    std::io::Write::write_all(&mut encoder, bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// A good pack's archive.
pub(super) fn good_archive() -> Vec<u8> {
    let (content, _) = signed("1.0.0", &component("acme-probe"));
    archive::write(&content, Vec::new()).expect("memory")
}
