//! `pack …`: what a vendor does, what a user does, and what neither may get past.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lm_bench::plugin::build_plugin::{BuildDoor, BuildRequest, build};
use serde_json::Value;

use crate::program::{SMALL, home, lm_bench, output, record, refusal, stderr, stdout};

pub(crate) const ID: &str = "probe-collector";

/// A plugin's file, built when it is first asked for, in the folder where all tests keep what cargo makes of plugins.
fn built(id: &str, door: BuildDoor) -> PathBuf {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    // A failed build panics in the test that asked for it; the others ask again.
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let key = format!("{id} {door:?}");
    if let Some(path) = built.get(&key) {
        return path.clone();
    }
    let target = std::env::var_os("LM_BENCH_TEST_TARGET").map_or_else(
        || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("plugins"),
        PathBuf::from,
    );
    let request = BuildRequest {
        dir: Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../tests/plugins")
            .join(id),
        door,
        out: target.join("packs"),
        target_dir: Some(target),
        program: Some(env!("CARGO_BIN_EXE_lm-bench").into()),
    };
    let path = build(&request).expect("a built plugin").path;
    built.insert(key, path.clone());
    path
}

fn target() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// A vendor's folder in a home: two builds of one plugin and a readme. Gives the home.
fn vendor(version: &str) -> tempfile::TempDir {
    let home = home();
    let source = home.path().join("source");
    fs::create_dir_all(source.join("native")).expect("a writable folder");
    fs::copy(built(ID, BuildDoor::Wasm), source.join("probe_collector.wasm")).expect("a copy");
    fs::copy(
        built(ID, BuildDoor::Dylib),
        source.join("native/probe_collector.so"),
    )
    .expect("a copy");
    fs::write(source.join("README.md"), "# Acme\n").expect("a writable folder");
    let text = format!(
        "schema = 1\nname = \"acme-metrics\"\nversion = \"{version}\"\nlicense = \"MIT\"\nabout = \"Acme's metrics\"\n\
         [[plugins]]\nid = \"{ID}\"\ndoor = \"wasm\"\nfile = \"probe_collector.wasm\"\n\
         [[plugins]]\nid = \"{ID}\"\ndoor = \"dylib\"\ntarget = \"{}\"\nfile = \"native/probe_collector.so\"\n",
        target()
    );
    fs::write(source.join("pack.toml"), text).expect("a writable folder");
    home
}

/// Runs a command that must succeed; gives its output.
#[track_caller]
pub(crate) fn ok(home: &Path, args: &[&str]) -> String {
    let output = output(lm_bench(home).args(args));
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

/// Runs a command that must be refused; gives the line.
pub(crate) fn refused(home: &Path, args: &[&str]) -> String {
    refusal(lm_bench(home).args(args))
}

/// The state that `verify` tells, with its exit code checked.
fn state(home: &Path, pack: &str) -> String {
    let output = output(lm_bench(home).args(["pack", "verify", pack, "--output-format", "json"]));
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let state = value["state"].as_str().expect("a state").to_owned();
    let code = if state == "trusted" { 0 } else { 1 };
    assert_eq!(output.status.code(), Some(code), "{value}");
    state
}

/// A home with a signed archive `acme.tar.zst` whose vendor is trusted.
pub(crate) fn signed() -> tempfile::TempDir {
    let home = vendor("1.0.0");
    ok(home.path(), &["pack", "keygen", "--out", "acme.key"]);
    ok(home.path(), &["pack", "build", "source", "--out", "acme.tar.zst"]);
    ok(
        home.path(),
        &["pack", "sign", "acme.tar.zst", "--key", "acme.key"],
    );
    ok(home.path(), &["pack", "trust", "add", "acme", "acme.key.pub"]);
    home
}

pub(crate) fn run_args<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let own = ["--no-default-plugins", "--plugin", ID, "--output-format=json"];
    SMALL
        .iter()
        .copied()
        .chain(own)
        .chain(more.iter().copied())
        .collect()
}

#[test]
fn from_a_vendors_folder_to_a_users_run() {
    let home = signed();
    let folder = home.path();
    assert_eq!(state(folder, "acme.tar.zst"), "trusted");
    assert!(ok(folder, &["pack", "install", "acme.tar.zst"]).contains("installed"));
    assert!(ok(folder, &["pack", "install", "acme.tar.zst"]).contains("already"));
    let place = folder.join("data/lm-bench/packs/acme-metrics/1.0.0");
    assert!(place.join("README.md").is_file());
    let list = ok(folder, &["pack", "list"]);
    assert!(
        list.contains("acme-metrics 1.0.0") && list.contains("trusted key acme"),
        "{list}"
    );
    assert!(ok(folder, &["plugin", "list"]).contains("acme-metrics"));

    let record = record(&output(lm_bench(folder).args(run_args(&[]))), 0);
    let plugin = &record["plugins"][0];
    assert_eq!(
        (&plugin["id"], &plugin["door"]),
        (&Value::from(ID), &Value::from("wasm"))
    );

    ok(folder, &["pack", "remove", "acme-metrics"]);
    assert!(ok(folder, &["pack", "list"]).contains("no pack is installed"));
    let line = refused(folder, &run_args(&[]));
    assert!(line.contains("there is no plugin probe-collector"), "{line}");
}

#[test]
fn each_state_of_a_pack_is_told_and_only_a_trusted_one_is_installed() {
    let home = vendor("1.0.0");
    let folder = home.path();
    ok(folder, &["pack", "build", "source", "--out", "acme.tar.zst"]);
    assert_eq!(state(folder, "acme.tar.zst"), "unsigned");
    assert!(refused(folder, &["pack", "install", "acme.tar.zst"]).contains("--allow-unsigned"));
    ok(folder, &["pack", "keygen", "--out", "acme.key"]);
    ok(
        folder,
        &[
            "pack",
            "sign",
            "acme.tar.zst",
            "--key",
            "acme.key",
            "--valid-days",
            "1",
        ],
    );
    assert_eq!(state(folder, "acme.tar.zst"), "unknown-key");
    assert!(refused(folder, &["pack", "install", "acme.tar.zst"]).contains("pack trust add"));
    ok(folder, &["pack", "trust", "add", "acme", "acme.key.pub"]);
    assert_eq!(state(folder, "acme.tar.zst"), "trusted");

    let mut bytes = fs::read(folder.join("acme.tar.zst")).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(folder.join("damaged.tar.zst"), &bytes).expect("a writable folder");
    assert_eq!(state(folder, "damaged.tar.zst"), "broken");
    fs::write(folder.join("cut.tar.zst"), &bytes[..middle]).expect("a writable folder");
    assert_eq!(state(folder, "cut.tar.zst"), "broken");
    for pack in ["damaged.tar.zst", "cut.tar.zst"] {
        assert!(refused(folder, &["pack", "install", pack, "--allow-unsigned"]).contains("broken"));
    }
    assert!(refused(folder, &["pack", "verify", "absent.tar.zst"]).contains("absent.tar.zst"));
    assert!(
        !folder.join("data/lm-bench/packs").exists(),
        "nothing was installed"
    );
}

#[test]
fn an_edit_after_signing_is_seen_in_a_folder_and_after_installing() {
    let home = signed();
    let folder = home.path();
    ok(folder, &["pack", "install", "acme.tar.zst"]);
    let place = folder.join("data/lm-bench/packs/acme-metrics/1.0.0");
    let copy = place.to_string_lossy().into_owned();
    assert_eq!(state(folder, &copy), "trusted");
    let file = place.join("probe_collector.wasm");
    let mut bytes = fs::read(&file).expect("a file");
    // One more custom section: still a component that would run.
    bytes.extend([0, 2, 1, b'x']);
    fs::write(&file, &bytes).expect("a writable file");
    assert_eq!(state(folder, &copy), "edited");
    let line = refused(folder, &run_args(&[]));
    assert!(
        line.contains("acme-metrics 1.0.0") && line.contains("edited"),
        "{line}"
    );
    let list = ok(folder, &["pack", "list"]);
    assert!(list.contains("REFUSED: edited after signing"), "{list}");
    let toml = place.join("pack.toml");
    let text = fs::read_to_string(&toml).expect("a file");
    fs::write(&toml, text.replace("MIT", "MIT ")).expect("a writable file");
    assert_eq!(state(folder, &copy), "edited");
}

#[test]
fn trust_that_ends_ends_the_use_of_installed_packs() {
    let home = signed();
    let folder = home.path();
    ok(folder, &["pack", "install", "acme.tar.zst"]);
    assert!(ok(folder, &["pack", "trust", "list"]).contains("acme"));
    ok(folder, &["pack", "trust", "remove", "acme"]);
    let line = refused(folder, &run_args(&[]));
    assert!(
        line.contains("unknown key") && line.contains("trust add"),
        "{line}"
    );
    assert!(ok(folder, &["pack", "list"]).contains("REFUSED"));
    let again = ok(folder, &["pack", "install", "acme.tar.zst", "--allow-unsigned"]);
    assert!(again.contains("renewed"), "{again}");
    record(&output(lm_bench(folder).args(run_args(&[]))), 0);
    assert!(ok(folder, &["pack", "list"]).contains("allowed by you"));
}

#[test]
fn one_version_has_one_content() {
    let home = signed();
    let folder = home.path();
    ok(folder, &["pack", "install", "acme.tar.zst"]);
    fs::write(folder.join("source/README.md"), "# Acme, again\n").expect("a writable folder");
    ok(folder, &["pack", "build", "source", "--out", "other.tar.zst"]);
    ok(folder, &["pack", "sign", "other.tar.zst", "--key", "acme.key"]);
    assert_eq!(state(folder, "other.tar.zst"), "trusted");
    let line = refused(folder, &["pack", "install", "other.tar.zst"]);
    assert!(
        line.contains("other content") && line.contains("pack remove acme-metrics@1.0.0"),
        "{line}"
    );
}

#[test]
fn equal_folders_give_equal_archives() {
    let (one, two) = (vendor("1.0.0"), vendor("1.0.0"));
    let archive = |home: &Path| {
        ok(home, &["pack", "build", "source", "--out", "acme.tar.zst"]);
        fs::read(home.join("acme.tar.zst")).expect("a file")
    };
    assert_eq!(archive(one.path()), archive(two.path()));
}

#[test]
fn keys_are_private_and_never_overwritten() {
    use std::os::unix::fs::PermissionsExt;
    let home = home();
    let folder = home.path();
    ok(folder, &["pack", "keygen", "--out", "acme.key"]);
    let mode = fs::metadata(folder.join("acme.key"))
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let before = fs::read(folder.join("acme.key")).expect("a file");
    assert!(refused(folder, &["pack", "keygen", "--out", "acme.key"]).contains("never overwritten"));
    assert_eq!(fs::read(folder.join("acme.key")).expect("a file"), before);
    let line = refused(folder, &["pack", "trust", "add", "acme", "acme.key"]);
    assert!(line.contains("private key"), "{line}");
    let secret = String::from_utf8(before).expect("text");
    let secret = secret.lines().last().expect("a line");
    let line = refused(folder, &["pack", "trust", "add", "acme", secret]);
    assert!(line.contains("private key") && !line.contains(secret), "{line}");
}

#[test]
fn the_packs_configuration_lies_below_the_users_own() {
    let home = home();
    let folder = home.path();
    let source = folder.join("source");
    fs::create_dir(&source).expect("a writable folder");
    fs::copy(built("hostile", BuildDoor::Wasm), source.join("hostile.wasm")).expect("a copy");
    let text = "schema = 1\nname = \"acme-metrics\"\nversion = \"1.0.0\"\nlicense = \"MIT\"\nabout = \"a\"\n\
                [[plugins]]\nid = \"hostile\"\ndoor = \"wasm\"\nfile = \"hostile.wasm\"\n\
                [config.hostile]\nafter = 7\nat = \"finish\"\n";
    fs::write(source.join("pack.toml"), text).expect("a writable folder");
    ok(folder, &["pack", "build", "source", "--out", "acme.tar.zst"]);
    ok(folder, &["pack", "install", "acme.tar.zst", "--allow-unsigned"]);
    let config = |more: &[&str]| {
        let own = ["--no-default-plugins", "--plugin=hostile", "--output-format=json"];
        let args = SMALL.iter().copied().chain(own).chain(more.iter().copied());
        let record = record(&output(lm_bench(folder).args(args)), 0);
        record["plugins"][0]["config"].clone()
    };
    assert_eq!(config(&[]), serde_json::json!({"after": 7, "at": "finish"}));
    assert_eq!(
        config(&["--plugin-config=hostile.after=9"]),
        serde_json::json!({"after": 9, "at": "finish"})
    );
}

#[test]
fn two_installations_at_once_are_both_right() {
    let home = signed();
    let folder = home.path();
    let mut children: Vec<_> = (0..4)
        .map(|_| {
            let mut command = lm_bench(folder);
            command
                .args(["pack", "install", "acme.tar.zst"])
                .stdout(std::process::Stdio::null());
            command.spawn().expect("the program starts")
        })
        .collect();
    for child in &mut children {
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
    }
    let packs = folder.join("data/lm-bench/packs");
    let names: Vec<_> = fs::read_dir(&packs)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(names, ["acme-metrics"], "nothing half-made is left");
    assert_eq!(
        state(folder, &packs.join("acme-metrics/1.0.0").to_string_lossy()),
        "trusted"
    );
}

#[test]
fn what_is_no_pack_is_refused_by_each_command() {
    let home = home();
    let folder = home.path();
    ok(folder, &["pack", "keygen", "--out", "acme.key"]);
    fs::write(folder.join("text.tar.zst"), "not an archive").expect("a writable folder");
    fs::create_dir(folder.join("empty")).expect("a writable folder");
    assert_eq!(state(folder, "text.tar.zst"), "broken");
    assert_eq!(state(folder, "empty"), "broken");
    for pack in ["text.tar.zst", "empty"] {
        assert!(refused(folder, &["pack", "install", pack, "--allow-unsigned"]).contains("broken"));
        assert!(refused(folder, &["pack", "sign", pack, "--key", "acme.key"]).contains(pack));
    }
    assert!(refused(folder, &["pack", "build", "empty", "--out", "x.tar.zst"]).contains("pack.toml"));
    assert!(refused(folder, &["pack", "remove", "../acme"]).contains("no pack"));
    assert!(
        refused(
            folder,
            &["pack", "sign", "empty", "--key", "acme.key", "--valid-days", "0"]
        )
        .contains("0")
    );
    assert!(!folder.join("x.tar.zst").exists());
}
