use super::super::testing::{component, now, secret};
use super::super::verify::PackState;
use super::*;

const DRAFT: &str = "schema = 1\nname = \"acme-pack\"\nversion = \"1.0.0\"\nlicense = \"MIT\"\nabout = \"a\"\n\
    [[plugins]]\nid = \"acme-probe\"\ndoor = \"wasm\"\nfile = \"wasm/acme_probe.wasm\"\n";

fn folder(draft: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write =
        |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect("a written file");
    fs::create_dir(folder.path().join("wasm")).expect("a folder");
    write("pack.toml", draft.as_bytes());
    write("wasm/acme_probe.wasm", &component("acme-probe"));
    write("README.md", b"# Acme\n");
    write("LICENSE", b"MIT\n");
    write("notes.txt", b"not for others");
    folder
}

fn error(draft: &str) -> String {
    let folder = folder(draft);
    let out = folder.path().join("out.tar.zst");
    let error = build(folder.path(), &out).expect_err("refused").to_string();
    assert!(!out.exists());
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

#[test]
fn what_the_text_leaves_out_is_filled_in_and_documents_are_taken_along() {
    let folder = folder(DRAFT);
    let out = folder.path().join("acme-1.0.0.tar.zst");
    let built = build(folder.path(), &out).expect("built");
    let plugin = &built.manifest.plugins[0];
    assert_eq!(plugin.sha256, hex(&Sha256::digest(component("acme-probe"))));
    assert_eq!(plugin.size, component("acme-probe").len() as u64);
    assert_eq!(plugin.requires, ["lmb.collector/1"]);
    let content = source::read(&out).expect("a pack");
    let names: Vec<&str> = content.files().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        ["LICENSE", "README.md", "pack.toml", "wasm/acme_probe.wasm"]
    );
    let (verdict, manifest) = verify(&content, &TrustStore::default(), now());
    assert_eq!(verdict.state, PackState::Unsigned);
    assert_eq!(manifest, Some(built.manifest));
}

#[test]
fn equal_folders_give_equal_archives() {
    let archive = |folder: &tempfile::TempDir| {
        let out = folder.path().join("out.tar.zst");
        build(folder.path(), &out).expect("built");
        fs::read(out).expect("a file")
    };
    assert_eq!(archive(&folder(DRAFT)), archive(&folder(DRAFT)));
}

#[test]
fn a_plugin_that_is_not_what_the_text_says_is_refused() {
    let cases = [
        (
            DRAFT.replace("acme-probe", "acme-other"),
            "holds plugin acme-probe, pack.toml says acme-other",
        ),
        (
            DRAFT.replace("\"wasm\"", "\"dylib\"\ntarget = \"x86_64-unknown-linux-gnu\""),
            "NAME.so",
        ),
        (
            DRAFT.replace("wasm/acme_probe.wasm", "acme_probe.wasm"),
            "No such file",
        ),
        (
            format!("{DRAFT}sha256 = \"{}\"\n", "0".repeat(64)),
            "pack.toml says otherwise",
        ),
        (format!("{DRAFT}size = 1\n"), "pack.toml says otherwise"),
        (
            format!("{DRAFT}requires = [\"lmb.probe/1\"]\n"),
            "requires lmb.collector/1, pack.toml says lmb.probe/1",
        ),
        (DRAFT.replace("schema = 1", "schema = 3"), "layout 3"),
    ];
    for (draft, words) in cases {
        let error = error(&draft);
        assert!(error.contains(words), "{words:?} is not in: {error}");
    }
}

#[test]
fn links_and_other_files_than_plugins_are_refused() {
    let folder = folder(DRAFT);
    let out = folder.path().join("out.tar.zst");
    let plugin = folder.path().join("wasm/acme_probe.wasm");
    let refused = || build(folder.path(), &out).expect_err("refused").to_string();
    fs::write(&plugin, b"\0asm\x01\0\0\0").expect("a written file");
    assert!(refused().contains("core WebAssembly module"));
    fs::write(&plugin, b"").expect("a written file");
    assert!(refused().contains("empty"));
    fs::remove_file(&plugin).expect("a file");
    std::os::unix::fs::symlink("/etc/hostname", &plugin).expect("a link");
    assert!(refused().contains("symbolic link"));
    fs::write(folder.path().join("pack.sig"), b"").expect("a written file");
    assert!(refused().contains("pack.sig"));
    let misnamed = build(folder.path(), &folder.path().join("out.tar.gz")).expect_err("refused");
    assert!(misnamed.to_string().contains(".tar.zst"));
}

#[test]
fn archives_and_folders_are_signed_and_signed_again() {
    let folder = folder(DRAFT);
    let out = folder.path().join("out.tar.zst");
    build(folder.path(), &out).expect("built");
    let unsigned = source::read(&out).expect("a pack");
    let judged = |path: &Path| {
        verify(
            &source::read(path).expect("a pack"),
            &TrustStore::default(),
            now(),
        )
        .0
    };
    let first = sign(&out, &secret(), now(), 30).expect("signed");
    assert_eq!(first.expires, now().after_days(30));
    assert_eq!(judged(&out).state, PackState::UnknownKey);
    let second = sign(&out, &secret(), now(), 60).expect("signed");
    assert_eq!(judged(&out).signer.expect("a signer").expires, second.expires);

    let unpacked = tempfile::tempdir().expect("a temporary folder");
    for (name, bytes) in unsigned.files() {
        let path = unpacked.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, bytes).expect("a written file");
    }
    sign(unpacked.path(), &secret(), now(), 30).expect("signed");
    assert_eq!(judged(unpacked.path()).state, PackState::UnknownKey);
}

#[test]
fn what_is_no_whole_pack_is_not_signed() {
    let folder = folder(DRAFT);
    // The author's own folder: digests are missing.
    let error = sign(folder.path(), &secret(), now(), 30)
        .expect_err("refused")
        .to_string();
    assert!(error.contains("pack build"), "{error}");
    assert!(!folder.path().join("pack.sig").exists());
    let file = folder.path().join("x.tar.zst");
    fs::write(&file, b"no archive").expect("a written file");
    sign(&file, &secret(), now(), 30).expect_err("refused");
    assert_eq!(fs::read(&file).expect("a file"), b"no archive");
}
