//! Plugins of earlier contracts run on this version, and plugins of later ones are refused with what they need.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lm_bench::plugin::build_plugin::{BuildDoor, BuildRequest, build};
use serde_json::Value;
use sha2::{Digest, Sha256};

fn museum() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/museum")
}

/// The folders of the contracts' versions.
fn rooms() -> Vec<PathBuf> {
    let entries = fs::read_dir(museum()).expect("the museum");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let rooms: Vec<PathBuf> = paths.filter(|path| path.is_dir()).collect();
    assert!(rooms.iter().any(|room| room.ends_with("1.0.0")), "{rooms:?}");
    rooms
}

/// Files of a folder with one ending.
fn exhibits(room: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(room).expect("a room");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect()
}

/// Compiles text in the WebAssembly format to a component.
fn component(text: &str, folder: &Path) -> PathBuf {
    let path = folder.join("exhibit.wasm");
    let bytes = wat::parse_str(text).expect("valid text");
    fs::write(&path, bytes).expect("a writable folder");
    path
}

/// Compiles C against the header in a room.
fn library(source: &Path, header: &Path, folder: &Path) -> PathBuf {
    let path = folder.join("exhibit.so");
    let status = Command::new("cc")
        .args(["-std=c11", "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-I"])
        .arg(header)
        .arg("-o")
        .arg(&path)
        .arg(source)
        .status()
        .expect("the C compiler that links Rust programs");
    assert!(status.success(), "{}", source.display());
    path
}

fn replay(recording: &Path, plugin: &Path, flags: &[&str]) -> Output {
    let folder = plugin.parent().expect("a folder");
    Command::new(env!("CARGO_BIN_EXE_lm-bench"))
        .current_dir(folder)
        .env("HOME", folder)
        .env_remove("LM_BENCH_PLUGIN_PATH")
        .arg("replay")
        .arg(recording)
        .arg("--plugin")
        .arg(plugin)
        // Tests run beside compilers; time is not what is tested.
        .args(["--plugin-limit=batch_ms=60000", "--plugin-limit=call_ms=60000"])
        .args(["--no-default-plugins", "--output-format=json"])
        .args(flags)
        .output()
        .expect("the program starts")
}

/// Builds a crate of a room, which finds the SDK of its time beside it.
fn built(dir: &Path, door: BuildDoor, out: &Path) -> PathBuf {
    // CARGO_TARGET_TMPDIR is `tmp` in the target folder; dependencies are shared with the other tests that build plugins.
    let target_dir = match std::env::var_os("LM_BENCH_TEST_TARGET") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("plugins"),
    };
    let request = BuildRequest {
        dir: dir.to_owned(),
        door,
        out: out.to_owned(),
        target_dir: Some(target_dir),
        program: Some(env!("CARGO_BIN_EXE_lm-bench").into()),
    };
    build(&request).unwrap_or_else(|error| panic!("{error}")).path
}

/// Holds the metrics of a replay against those of the exhibit.
fn assert_metrics(source: &Path, plugin: &Path, flags: &[&str]) {
    let output = replay(&source.with_extension("lmrec"), plugin, flags);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{} {flags:?}: {stderr}",
        source.display()
    );
    let record: Value = serde_json::from_slice(&output.stdout).expect("a record");
    let expected = fs::read(source.with_extension("json")).expect("the metrics of the exhibit");
    let expected: Value = serde_json::from_slice(&expected).expect("JSON");
    // Later records may say more of a metric, never less and nothing else.
    let found = record["metrics"].as_array().expect("metrics");
    let expected = expected.as_array().expect("metrics");
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        for (key, value) in expected.as_object().expect("a metric") {
            assert_eq!(
                found[key],
                *value,
                "{} {flags:?}: {key} of {}",
                source.display(),
                expected["name"]
            );
        }
    }
    assert!(stderr.contains("the census begins"), "{stderr}");
}

#[test]
fn components_of_earlier_contracts_run() {
    for source in rooms().iter().flat_map(|room| exhibits(room, "wat")) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let plugin = component(&fs::read_to_string(&source).expect("text"), folder.path());
        for flags in [&[][..], &["--deterministic"]] {
            assert_metrics(&source, &plugin, flags);
        }
    }
}

#[test]
fn libraries_of_earlier_contracts_run() {
    for room in rooms() {
        for source in exhibits(&room, "c") {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let plugin = library(&source, &room, folder.path());
            for flags in [&["--allow-native"][..], &["--allow-native", "--in-process"]] {
                assert_metrics(&source, &plugin, flags);
            }
        }
    }
}

#[test]
fn a_crate_of_sdk_1_0_builds_and_runs() {
    let room = museum().join("1.0.0");
    let (dir, source) = (room.join("rust/token-census"), room.join("token-census"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let component = built(&dir, BuildDoor::Wasm, folder.path());
    assert_metrics(&source, &component, &[]);
    let library = built(&dir, BuildDoor::Dylib, folder.path());
    for flags in [&["--allow-native"][..], &["--allow-native", "--in-process"]] {
        assert_metrics(&source, &library, flags);
    }
}

/// Paths of all files in a folder, below it and with `/`.
fn files(folder: &Path, below: &str, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            files(&entry.path(), &format!("{name}/"), found);
        } else {
            found.insert(name);
        }
    }
}

#[test]
fn no_exhibit_was_edited() {
    for room in rooms() {
        let sums = fs::read_to_string(room.join("SHA256SUMS")).expect("digests");
        let mut listed = BTreeSet::from(["SHA256SUMS".to_owned()]);
        for line in sums.lines() {
            let (sum, name) = line.split_once("  ").expect("a digest and a name");
            let bytes = fs::read(room.join(name)).expect("an exhibit");
            let found: String = Sha256::digest(bytes)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert!(
                found == sum,
                "{name} in {} was edited: an exhibit stays as it was, take the change back",
                room.display()
            );
            listed.insert(name.to_owned());
        }
        let mut names = BTreeSet::new();
        files(&room, "", &mut names);
        assert_eq!(names, listed, "SHA256SUMS lists each file of {}", room.display());
    }
}

/// What the program says to a plugin that it does not run.
fn refusal(plugin: &Path) -> String {
    let recording = museum().join("1.0.0/token-census.lmrec");
    let output = replay(&recording, plugin, &["--allow-native"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(output.stdout.is_empty());
    // Nothing of it ran.
    assert!(!stderr.contains("the census begins"), "{stderr}");
    stderr
}

/// Changes of an exhibit's text that make it one of the future: what is replaced, by what, and what it then needs.
const FUTURES: &[(&str, &str, &str)] = &[
    ("lmb.collector/1", "lmb.collector/2", "interface lmb.collector/2"),
    ("lmb.collector/1", "lmb.telepathy/1", "interface lmb.telepathy/1"),
];

/// Holds a message against its three parts.
fn assert_three_parts(message: &str, needs: &str) {
    let here = format!("this lm-bench ({})", lm_bench::plugin::HOST_VERSION);
    for part in [needs, &here, "update lm-bench, or use an older"] {
        assert!(message.contains(part), "{part:?} is missing in {message}");
    }
}

#[test]
fn components_of_the_future_are_refused_with_what_they_need() {
    let text = fs::read_to_string(museum().join("1.0.0/token-census.wat")).expect("text");
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from));
        let folder = tempfile::tempdir().expect("a temporary folder");
        // A build of the future has a later SDK too, which alone is no reason to refuse it.
        let sdk = r"\22sdk\22:\221.0.0\22";
        assert!(text.contains(sdk));
        let text = text.replace(sdk, r"\22sdk\22:\222.0.0\22").replace(from, to);
        refusal(&component(&text, folder.path()))
    };
    for (from, to, needs) in FUTURES {
        assert_three_parts(&changed(from, to), needs);
    }
    let message = changed("lm-bench:collector/math@1.0.0", "lm-bench:collector/math@2.0.0");
    assert_three_parts(&message, "it needs lm-bench:collector/math@2.0.0");
}

#[test]
fn libraries_of_the_future_are_refused_with_what_they_need() {
    let room = museum().join("1.0.0");
    let text = fs::read_to_string(room.join("token-census.c")).expect("text");
    for (from, to, needs) in FUTURES {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let sdk = r#"\"sdk\":\"1.0.0\""#;
        assert!(text.contains(from) && text.contains(sdk));
        let source = folder.path().join("future.c");
        let changed = text.replace(sdk, r#"\"sdk\":\"2.0.0\""#).replace(from, to);
        fs::write(&source, changed).expect("a writable folder");
        assert_three_parts(&refusal(&library(&source, &room, folder.path())), needs);
    }
}
