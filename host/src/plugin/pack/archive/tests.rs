use std::io::Cursor;

use proptest::prelude::*;

use super::super::testing::{EvilArchive, component, compress, good_archive, signed};
use super::*;

fn read_bytes(bytes: &[u8]) -> Result<Content, ContentError> {
    read(Cursor::new(bytes), ContentLimits::default())
}

fn refusal(bytes: &[u8]) -> String {
    let error = read_bytes(bytes).expect_err("refused").to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

#[test]
fn what_is_written_is_read_and_equal_content_gives_equal_bytes() {
    let (content, _) = signed("1.0.0", &component("acme-probe"));
    let bytes = good_archive();
    assert_eq!(read_bytes(&bytes).expect("a pack"), content);
    assert_eq!(bytes, good_archive());
}

#[test]
fn the_tar_has_no_times_and_owners_and_its_files_are_in_order() {
    let tar = zstd::stream::decode_all(Cursor::new(good_archive())).expect("a frame");
    let mut archive = tar::Archive::new(Cursor::new(tar));
    let names: Vec<String> = archive
        .entries()
        .expect("a tar")
        .map(|entry| {
            let entry = entry.expect("an entry");
            let header = entry.header();
            assert_eq!(header.mtime().expect("a number"), 0);
            assert_eq!(
                (header.uid().expect("a number"), header.gid().expect("a number")),
                (0, 0)
            );
            assert_eq!(header.mode().expect("a number"), 0o644);
            assert_eq!(
                (header.username_bytes(), header.groupname_bytes()),
                (Some(&b""[..]), Some(&b""[..]))
            );
            entry.path().expect("a name").display().to_string()
        })
        .collect();
    assert_eq!(names, ["pack.toml", "pack.sig", "acme_probe.wasm"]);
}

/// A good pack with one more entry.
fn with(name: &[u8], kind: u8) -> Vec<u8> {
    let mut archive = EvilArchive::new();
    archive.add(name, kind, b"");
    archive.compressed()
}

#[test]
fn entries_that_no_pack_holds_are_refused_by_name() {
    let cases: &[(&[u8], u8, &str)] = &[
        (b"../../.bashrc", b'0', "a part . or .."),
        (b"a/../../b", b'0', "a part . or .."),
        (b"./a", b'0', "a part . or .."),
        (b"/etc/passwd", b'0', "absolute"),
        (b"a\\b", b'0', "backslash"),
        (b"a\0b", b'0', "zero byte"),
        (b"", b'0', "empty"),
        (b"a//b", b'0', "an empty part"),
        (b"a\xff\xfe", b'0', "not UTF-8"),
        ("ﬁle".as_bytes(), b'0', "a character other than"),
        (b"a b", b'0', "a character other than"),
        (b".bashrc", b'0', "a character other than"),
        (b"a/b/c/d/e", b'0', "more than 4 parts"),
        (b"link", b'2', "link is a symbolic link"),
        (b"link", b'1', "link is a hard link"),
        (b"device", b'3', "device is a character device"),
        (b"device", b'4', "device is a block device"),
        (b"pipe", b'6', "pipe is a named pipe"),
        (b"folder", b'5', "folder is a folder"),
        (b"folder/", b'5', "a folder"),
        (b"folder/", b'\0', "an empty part"),
        (b"sparse", b'S', "sparse is a sparse file"),
        (b"long", b'L', "longer than 100 bytes"),
        (b"long", b'K', "longer than 100 bytes"),
        (b"extended", b'x', "extended header"),
        (b"extended", b'g', "extended header"),
        (b"contiguous", b'7', "unknown kind"),
        (b"unknown", b'Z', "unknown kind"),
        (b"pack.toml", b'0', "pack.toml is there twice"),
        (b"acme_probe.wasm", b'0', "acme_probe.wasm is there twice"),
        (
            b"Pack.TOML",
            b'0',
            "Pack.TOML and pack.toml cannot lie side by side",
        ),
        (b"ACME_probe.wasm", b'0', "cannot lie side by side"),
        (b"pack.toml/a", b'0', "cannot lie side by side"),
    ];
    for (name, kind, words) in cases {
        let error = refusal(&with(name, *kind));
        let name = String::from_utf8_lossy(name);
        assert!(error.contains(words), "{name:?} of type {kind}: {error}");
    }
}

#[test]
fn a_name_that_goes_on_in_the_prefix_field_is_refused() {
    let mut header = tar::Header::new_ustar();
    header.as_old_mut().name[0] = b'a';
    header.as_ustar_mut().expect("ustar").prefix[..2].copy_from_slice(b"..");
    header.set_size(0);
    header.set_mode(0o644);
    let mut archive = EvilArchive::new();
    archive.add_header(header, b"");
    assert!(refusal(&archive.compressed()).contains("longer than 100 bytes"));
}

#[test]
fn too_many_entries_are_refused() {
    let mut archive = EvilArchive::new();
    for number in 0..1_000 {
        archive.add(format!("f{number}").as_bytes(), b'0', b"x");
    }
    assert_eq!(refusal(&archive.compressed()), "it has more than 1000 files");
}

#[test]
fn a_size_that_the_archive_does_not_have_takes_no_memory() {
    for size in [u64::MAX, 1 << 62, (256 << 20) + 1] {
        let mut archive = EvilArchive::new();
        archive.add_sized(b"large", b'0', (b"x", size));
        let error = refusal(&archive.compressed());
        // tar itself refuses a size that does not fit into a position.
        assert!(
            error == "it unpacks to more than 268435456 bytes" || error.contains("size overflow"),
            "{size}: {error}"
        );
    }
    let mut archive = EvilArchive::new();
    archive.add_sized(b"large", b'0', (b"x", 100 << 20));
    assert!(refusal(&archive.compressed()).contains("no whole .tar.zst archive"));
}

/// A source that tells how much of it was read.
fn read_counted(bytes: &[u8], limits: ContentLimits) -> (String, u64) {
    let taken = Rc::new(Cell::new(0));
    let source = Counted {
        source: Cursor::new(bytes),
        taken: Rc::clone(&taken),
    };
    let error = read(source, limits).expect_err("refused").to_string();
    (error, taken.get())
}

#[test]
fn bombs_are_stopped_while_they_are_unpacked() {
    let mut archive = EvilArchive::new();
    archive.add(b"bomb", b'0', &vec![0; 64 << 20]);
    let bomb = archive.compressed();
    assert!(bomb.len() < 64 << 10, "{}", bomb.len());
    assert!(refusal(&bomb).contains("more than 100 times its size"));

    // Zeros behind the end of the tar are bounded as well.
    let mut tar = EvilArchive::new().tar();
    tar.resize(tar.len() + (64 << 20), 0);
    let error = refusal(&compress(&tar));
    assert!(
        error.contains("something else") || error.contains("100 times"),
        "{error}"
    );

    // What does not compress is stopped by its size, before it is read.
    let limits = ContentLimits {
        bytes: 1 << 20,
        ..ContentLimits::default()
    };
    let mut state = 1_u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(8 << 20)
    .collect();
    let mut archive = EvilArchive::new();
    archive.add(b"large", b'0', &noise);
    let bytes = archive.compressed();
    let (error, taken) = read_counted(&bytes, limits);
    assert_eq!(error, "it unpacks to more than 1048576 bytes");
    assert!(
        taken < bytes.len() as u64 / 4,
        "{taken} of {} bytes were read",
        bytes.len()
    );
}

#[test]
fn an_archive_that_is_cut_off_anywhere_is_refused() {
    let bytes = good_archive();
    for length in 0..bytes.len() {
        refusal(&bytes[..length]);
    }
    // The same below the compression: at each block, and within blocks.
    let tar = EvilArchive::new().tar();
    for length in (0..tar.len()).step_by(256) {
        refusal(&compress(&tar[..length]));
    }
}

#[test]
fn nothing_may_follow_the_pack() {
    let mut bytes = good_archive();
    bytes.push(0);
    assert!(refusal(&bytes).contains("something follows"));
    let twice = [good_archive(), good_archive()].concat();
    assert!(refusal(&twice).contains("something follows"));
    let mut tar = EvilArchive::new().tar();
    tar.extend([1; 512]);
    assert!(refusal(&compress(&tar)).contains("something else"));
}

#[test]
fn other_forms_of_archives_are_refused() {
    for bytes in [
        b"".as_slice(),
        b"PK\x03\x04",
        b"\x1f\x8b\x08\0",
        &EvilArchive::new().tar(),
    ] {
        assert!(refusal(bytes).contains("no whole .tar.zst archive"));
    }
    // A skippable frame, then a pack.
    let skippable = [b"\x50\x2a\x4d\x18\x04\0\0\0abcd".as_slice(), &good_archive()].concat();
    refusal(&skippable);
    // A frame header that asks for a window of 2 GiB (exponent 21 in the upper five bits: 2^31).
    let window = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 0x01, 0x00, 0x00];
    assert!(refusal(&window).contains("no whole .tar.zst archive"));
}

#[test]
fn a_wrong_checksum_is_refused() {
    let mut tar = EvilArchive::new().tar();
    tar[0] = b'q';
    assert!(refusal(&compress(&tar)).contains("checksum"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..4_096)) {
        let _ = read_bytes(&bytes);
        let _ = read_bytes(&compress(&bytes));
    }

    #[test]
    fn a_damaged_archive_is_refused_or_read_as_it_was(at in any::<prop::sample::Index>(), bit in 0..8_u32) {
        let mut bytes = good_archive();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        if let Ok(content) = read_bytes(&bytes) {
            prop_assert_eq!(content, signed("1.0.0", &component("acme-probe")).0);
        }
    }

    #[test]
    fn a_damaged_tar_is_refused_or_its_names_are_allowed(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut tar = EvilArchive::new().tar();
        let at = at.index(tar.len());
        tar[at] = byte;
        if let Ok(content) = read_bytes(&compress(&tar)) {
            for (name, _) in content.files() {
                prop_assert!(super::super::name::check(name.as_bytes()).is_ok());
            }
        }
    }

    #[test]
    fn content_is_the_same_after_it_was_written_and_read(
        files in proptest::collection::btree_map("[a-z]{1,8}(/[a-z]{9,12})?", proptest::collection::vec(any::<u8>(), 0..2_000), 0..20)
    ) {
        let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
        let mut gathering = Gathering::new(ContentLimits::default());
        for (name, bytes) in files {
            if let Ok(name) = gathering.admit(name.as_bytes(), bytes.len() as u64) {
                gathering.fill(name, bytes.to_vec());
            }
        }
        let content = gathering.finish();
        let bytes = write(&content, Vec::new()).expect("memory");
        prop_assert_eq!(read_bytes(&bytes).expect("a pack"), content);
    }
}
