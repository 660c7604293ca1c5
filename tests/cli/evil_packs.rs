//! Packs that somebody made to do harm. Each is refused with exit code 1 and one line, even by a user who allows packs
//! without a signature, and nothing is written: not into the folder of packs, and not outside of it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use lm_bench::plugin::pack::{SecretKey, Timestamp, sign};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::program::{SMALL, home, lm_bench, output, refusal};

/// The smallest file that identifies itself as the WASM build of `acme-probe`: a component with nothing but its manifest.
fn component() -> Vec<u8> {
    let json = r#"{"schema":1,"id":"acme-probe","version":"1.0.0","about":"a","license":"MIT","sdk":"1.0.0",
        "requires":["lmb.collector/1"],"metrics":[]}"#;
    let name = b"lmb:manifest";
    let body = [&[name.len() as u8], name.as_slice(), json.as_bytes()].concat();
    // The length in LEB128, below 2^14.
    let length = [body.len() as u8 & 0x7f | 0x80, (body.len() >> 7) as u8];
    [b"\0asm\x0d\0\x01\0\0".as_slice(), &length, &body].concat()
}

fn description() -> String {
    let component = component();
    let digest: String = Sha256::digest(&component)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!(
        "schema = 1\nname = \"acme-pack\"\nversion = \"1.0.0\"\nlicense = \"MIT\"\nabout = \"a\"\n[[plugins]]\n\
         id = \"acme-probe\"\ndoor = \"wasm\"\nfile = \"acme_probe.wasm\"\nsha256 = \"{digest}\"\nsize = {}\n",
        component.len()
    )
}

/// An entry with the raw name and type byte, as far as a tar header can hold them.
fn entry(name: &[u8], kind: u8, bytes: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.as_old_mut().linkflag[0] = kind;
    if matches!(kind, b'1' | b'2') {
        header.as_old_mut().linkname[..9].copy_from_slice(b"../victim");
    }
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    let mut entry = [header.as_bytes().as_slice(), bytes].concat();
    entry.resize(entry.len().next_multiple_of(512), 0);
    entry
}

fn archive(entries: &[Vec<u8>]) -> Vec<u8> {
    let tar = [entries.concat(), vec![0; 1_024]].concat();
    zstd::stream::encode_all(tar.as_slice(), 3).expect("memory")
}

/// A good pack with more entries.
fn with(more: &[(&[u8], u8, &[u8])]) -> Vec<u8> {
    let own = [
        entry(b"pack.toml", b'0', description().as_bytes()),
        entry(b"acme_probe.wasm", b'0', &component()),
    ];
    let more = more.iter().map(|(name, kind, bytes)| entry(name, *kind, bytes));
    archive(&own.into_iter().chain(more).collect::<Vec<_>>())
}

/// A pack with another description.
fn described(part: &str, other: &str) -> Vec<u8> {
    let text = description().replace(part, other);
    assert_ne!(text, description());
    archive(&[
        entry(b"pack.toml", b'0', text.as_bytes()),
        entry(b"acme_probe.wasm", b'0', &component()),
    ])
}

/// All that lies below a folder, with the bytes of files.
fn everything(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(everything(&path));
        }
        let bytes = if path.is_file() {
            fs::read(&path).expect("a file")
        } else {
            Vec::new()
        };
        found.push((path, bytes));
    }
    found.sort();
    found
}

/// Verifies and installs a pack that must be refused for a reason with these words.
#[track_caller]
fn refused(home: &Path, bytes: &[u8], words: &str) {
    fs::write(home.join("evil.tar.zst"), bytes).expect("a writable folder");
    let before = everything(home);
    let verified = output(lm_bench(home).args(["pack", "verify", "evil.tar.zst", "--output-format=json"]));
    assert_eq!(verified.status.code(), Some(1), "{words}");
    let verdict: Value = serde_json::from_slice(&verified.stdout).expect("JSON");
    assert_eq!(verdict["state"], "broken", "{words}: {verdict}");
    let line = refusal(lm_bench(home).args(["pack", "install", "evil.tar.zst", "--allow-unsigned"]));
    assert!(line.contains(words), "{words:?} is not in: {line}");
    assert_eq!(everything(home), before, "{words}: something was written");
}

#[test]
fn entries_that_reach_out_or_are_no_files() {
    let home = home();
    fs::write(home.path().join("victim"), "untouched").expect("a writable folder");
    let cases: &[(&[u8], u8, &str)] = &[
        (b"../victim", b'0', "a part . or .."),
        (b"a/../../victim", b'0', "a part . or .."),
        (b"/tmp/victim", b'0', "absolute"),
        (b"a\\..\\victim", b'0', "backslash"),
        (b"victim\0.wasm", b'0', "zero byte"),
        (b"", b'0', "empty"),
        (b"a\xff", b'0', "not UTF-8"),
        (b".bashrc", b'0', "a part that starts with"),
        (b"link", b'2', "symbolic link"),
        (b"link", b'1', "hard link"),
        (b"device", b'3', "character device"),
        (b"device", b'4', "block device"),
        (b"pipe", b'6', "named pipe"),
        (b"folder", b'5', "a folder"),
        (b"long", b'L', "longer than 100 bytes"),
        (b"extended", b'x', "extended header"),
        (b"pack.toml", b'0', "there twice"),
        (b"PACK.toml", b'0', "cannot lie side by side"),
        (b"Acme_Probe.wasm", b'0', "cannot lie side by side"),
        (b"acme_probe.wasm/a", b'0', "cannot lie side by side"),
        (b"install.sh", b'0', "not in its pack.toml"),
    ];
    for (name, kind, words) in cases {
        refused(home.path(), &with(&[(name, *kind, b"")]), words);
    }
}

#[test]
fn a_link_that_a_later_entry_would_write_through() {
    let home = home();
    let bytes = with(&[(b"link", b'2', b""), (b"link/victim", b'0', b"overwritten")]);
    refused(home.path(), &bytes, "symbolic link");
}

#[test]
fn bombs_and_too_many_files() {
    let home = home();
    let zeros = vec![0; 48 << 20];
    refused(
        home.path(),
        &with(&[(b"zeros", b'0', &zeros)]),
        "100 times its size",
    );
    let names: Vec<String> = (0..1_000).map(|number| format!("f{number}")).collect();
    let many: Vec<(&[u8], u8, &[u8])> = names
        .iter()
        .map(|name| (name.as_bytes(), b'0', b"x".as_slice()))
        .collect();
    refused(home.path(), &with(&many), "more than 1000 files");
}

#[test]
fn an_archive_that_is_cut_off_or_goes_on() {
    let home = home();
    let good = with(&[]);
    for length in [0, 1, 4, 9, good.len() / 2, good.len() - 4, good.len() - 1] {
        refused(home.path(), &good[..length], "no whole .tar.zst archive");
    }
    refused(
        home.path(),
        &[good.as_slice(), b"x"].concat(),
        "no whole .tar.zst archive",
    );
    refused(home.path(), &archive(&[]), "no pack.toml");
}

#[test]
fn descriptions_that_lie() {
    let home = home();
    refused(home.path(), &described("acme-pack", "../../victim"), "not valid");
    refused(
        home.path(),
        &described("1.0.0", "1.0.0/../../victim"),
        "cannot be read",
    );
    refused(
        home.path(),
        &described("sha256 = \"", "sha256 = \"0000"),
        "64 digits",
    );
    refused(home.path(), &described("size = ", "size = 1"), "sha256 and size");
    refused(
        home.path(),
        &described("file = \"acme_probe", "file = \"acme_prone"),
        "not in its pack.toml",
    );
    refused(
        home.path(),
        &described("acme-probe", "acme-other"),
        "holds plugin acme-probe",
    );
}

#[test]
fn signatures_that_do_not_hold() {
    let home = home();
    let folder = home.path();
    let secret = SecretKey::generate().expect("random bytes");
    secret.write(&folder.join("acme.key")).expect("written");
    let state = || {
        let verified = output(lm_bench(folder).args(["pack", "verify", "p.tar.zst", "--output-format=json"]));
        assert_eq!(verified.status.code(), Some(1));
        let verdict: Value = serde_json::from_slice(&verified.stdout).expect("JSON");
        verdict["state"].as_str().expect("a state").to_owned()
    };
    let install = |more: &[&str]| refusal(lm_bench(folder).args(["pack", "install", "p.tar.zst"]).args(more));
    let trusted = lm_bench(folder)
        .args(["pack", "trust", "add", "acme", "acme.key.pub"])
        .status();
    assert!(trusted.expect("the program starts").success());
    fs::write(folder.join("p.tar.zst"), with(&[])).expect("a writable folder");
    let pack = folder.join("p.tar.zst");

    let other = SecretKey::generate().expect("random bytes");
    let past = Timestamp::from_unix(1_600_000_000);
    let future = past.after_days(36_500);
    sign(&pack, &secret, past, 30).expect("signed");
    assert_eq!(state(), "expired");
    assert!(install(&["--allow-unsigned"]).contains("expired at 2020-10-13T12:26:40Z"));
    sign(&pack, &secret, future, 30).expect("signed");
    assert_eq!(state(), "not-yet-valid");
    assert!(install(&["--allow-unsigned"]).contains("begins at"));
    sign(&pack, &other, past, 30_000).expect("signed");
    assert_eq!(state(), "unknown-key");
    assert!(install(&[]).contains("unknown key"));

    // What was signed, and another description.
    let signed = with(&[(b"pack.sig", b'0', &signature(folder, &secret))]);
    fs::write(&pack, signed).expect("a writable folder");
    assert_eq!(state(), "edited");
    assert!(install(&["--allow-unsigned"]).contains("edited after signing"));
    assert!(!folder.join("data").exists(), "nothing was installed");
}

/// A signature over a description with another word in it.
fn signature(folder: &Path, secret: &SecretKey) -> Vec<u8> {
    let other = folder.join("other.tar.zst");
    fs::write(&other, described("about = \"a\"", "about = \"b\"")).expect("a writable folder");
    sign(&other, secret, Timestamp::from_unix(1_600_000_000), 36_500).expect("signed");
    let tar = zstd::stream::decode_all(fs::File::open(&other).expect("a file")).expect("a frame");
    let mut archive = tar::Archive::new(tar.as_slice());
    let mut entries = archive
        .entries()
        .expect("a tar")
        .map(|entry| entry.expect("an entry"));
    let mut found = entries
        .find(|entry| entry.path_bytes().as_ref() == b"pack.sig")
        .expect("a signature");
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut found, &mut bytes).expect("memory");
    bytes
}

#[test]
fn a_folder_with_links_is_no_pack() {
    let home = home();
    let source = home.path().join("source");
    fs::create_dir(&source).expect("a writable folder");
    fs::write(source.join("pack.toml"), description()).expect("a writable folder");
    fs::write(home.path().join("outside.wasm"), component()).expect("a writable folder");
    symlink("../outside.wasm", source.join("acme_probe.wasm")).expect("a link");
    for args in [["pack", "install", "source"], ["pack", "verify", "source"]] {
        assert_eq!(output(lm_bench(home.path()).args(args)).status.code(), Some(1));
    }
    let line = refusal(lm_bench(home.path()).args(["pack", "install", "source", "--allow-unsigned"]));
    assert!(line.contains("acme_probe.wasm is a symbolic link"), "{line}");
    let line = refusal(lm_bench(home.path()).args(["pack", "build", "source", "--out", "x.tar.zst"]));
    assert!(line.contains("symbolic link"), "{line}");
}

#[test]
fn a_file_that_is_swapped_after_installing_is_not_run() {
    let home = home();
    let folder = home.path();
    fs::write(folder.join("p.tar.zst"), with(&[])).expect("a writable folder");
    let installed = lm_bench(folder)
        .args(["pack", "install", "p.tar.zst", "--allow-unsigned"])
        .status();
    assert!(installed.expect("the program starts").success());
    let run = || refusal(lm_bench(folder).args(SMALL).args(["--plugin=acme-probe"]));
    let file = folder.join("data/lm-bench/packs/acme-pack/1.0.0/acme_probe.wasm");
    fs::write(&file, [component(), vec![0, 2, 1, b'x']].concat()).expect("a writable file");
    assert!(run().contains("edited after installing"));
    fs::remove_file(&file).expect("a file");
    fs::write(folder.join("outside.wasm"), component()).expect("a writable folder");
    symlink(folder.join("outside.wasm"), &file).expect("a link");
    assert!(run().contains("symbolic link"));
}
