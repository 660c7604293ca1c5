//! `plugin doctor`: one test for each reason why a plugin would not run. The reason must be the one that a run gives.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::native::compiled;
use crate::packs::{ID, ok, signed};
use crate::program::{SMALL, home, lm_bench, output, refusal, stderr, stdout};

/// Where the header of an ELF file has the machine.
const ELF_MACHINE: usize = 18;

/// What the doctor says; its exit code must be `code`.
#[track_caller]
fn doctor(home: &Path, args: &[&str], code: i32) -> Value {
    let output = output(lm_bench(home).args(["plugin", "doctor", "--json"]).args(args));
    assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The doctor's reason and advice for a plugin that a run refuses for the same reason.
#[track_caller]
fn refused(home: &Path, args: &[&str]) -> (String, String) {
    let told = doctor(home, args, 1);
    let text = |key: &str| told[key].as_str().expect("a text").to_owned();
    let mut run = lm_bench(home);
    run.args(SMALL)
        .args(["--no-default-plugins", "--plugin"])
        .args(args);
    assert_eq!(refusal(&mut run), format!("error: {}", text("problem")));
    (text("problem"), text("advice"))
}

/// The doctor's reason and advice for a file of these bytes.
#[track_caller]
fn refused_file(name: &str, bytes: &[u8]) -> (String, String) {
    let home = home();
    fs::write(home.path().join(name), bytes).expect("a writable folder");
    refused(home.path(), &[&format!("./{name}"), "--allow-native"])
}

fn library() -> Vec<u8> {
    let home = home();
    compiled(home.path(), &[]);
    fs::read(home.path().join("written_in_c.so")).expect("it was compiled")
}

/// What is said of a file in the places of a diagnosis.
fn state<'a>(told: &'a Value, file: &str) -> &'a str {
    let places = told["places"].as_array().expect("places").iter();
    let mut files = places.flat_map(|place| place["files"].as_array().expect("files"));
    let found = files.find(|found| found["path"].as_str().expect("a path").ends_with(file));
    found.expect(file)["state"].as_str().expect("a state")
}

#[test]
fn a_plugin_that_would_run_is_told_with_its_identity() {
    let home = home();
    let told = doctor(home.path(), &["latency"], 0);
    assert_eq!(
        (&told["problem"], &told["plugin"]["door"]),
        (&Value::Null, &"built-in".into())
    );
    compiled(home.path(), &[]);
    let told = doctor(home.path(), &["./written_in_c.so", "--allow-native"], 0);
    assert_eq!(told["plugin"]["id"], "written-in-c");
    let text = stdout(&output(
        lm_bench(home.path()).args(["plugin", "doctor", "latency"]),
    ));
    assert_eq!(text.lines().last(), Some("verdict: latency would run"), "{text}");
}

#[test]
fn places_are_told_in_order_with_what_is_there() {
    let home = home();
    let file = home.path().join("file");
    fs::write(&file, "").expect("a writable folder");
    fs::create_dir(home.path().join("empty")).expect("a writable folder");
    let mut command = lm_bench(home.path());
    command.env("LM_BENCH_PLUGIN_PATH", format!("{}:/absent", file.display()));
    let told = output(command.args(["plugin", "doctor", "absent-one", "--json", "--plugin-dir=empty"]));
    let told: Value = serde_json::from_slice(&told.stdout).expect("JSON");
    let places = told["places"].as_array().expect("places").iter();
    let places: Vec<(&str, &str)> = places
        .map(|place| {
            (
                place["origin"].as_str().unwrap(),
                place["state"].as_str().unwrap(),
            )
        })
        .collect();
    let variable = "LM_BENCH_PLUGIN_PATH";
    assert_eq!(places[0], ("built in", "none of this id"));
    assert_eq!(places[1], ("--plugin-dir", "nothing of this id"));
    assert!(
        places[2].0 == variable && places[2].1.starts_with("cannot be read"),
        "{places:?}"
    );
    assert_eq!(places[3], (variable, "no such folder"));
    let rest: Vec<&str> = places[4..].iter().map(|(origin, _)| *origin).collect();
    assert_eq!(rest, ["project", "user", "packs", "system"]);
}

#[test]
fn an_unknown_id() {
    let home = home();
    let (problem, advice) = refused(home.path(), &["absent-one"]);
    assert!(problem.contains("there is no plugin absent-one"), "{problem}");
    assert!(
        advice.contains("--plugin-dir") && advice.contains("LM_BENCH_PLUGIN_PATH"),
        "{advice}"
    );
}

#[test]
fn neither_an_id_nor_a_path() {
    let home = home();
    let (problem, advice) = refused(home.path(), &["Some_Thing"]);
    assert!(
        problem.contains("is no plugin") && advice.contains("./"),
        "{advice}"
    );
}

#[test]
fn a_folder_that_is_named_and_not_there() {
    let home = home();
    let (problem, _) = refused(home.path(), &["latency", "--plugin-dir=absent"]);
    assert!(problem.contains("--plugin-dir absent"), "{problem}");
}

#[test]
fn files_with_names_that_are_not_searched_for() {
    let home = home();
    compiled(home.path(), &[]);
    let folder = home.path().join("made");
    let project = home.path().join(".lm-bench/plugins");
    fs::create_dir_all(&project).expect("a writable folder");
    fs::create_dir(&folder).expect("a writable folder");
    let library = home.path().join("written_in_c.so");
    fs::copy(&library, project.join("written_in_c.so")).expect("a copy");
    fs::copy(&library, folder.join("libwritten_in_c.so")).expect("a copy");
    let args = ["written-in-c", "--plugin-dir=made"];
    let told = doctor(home.path(), &args, 1);
    assert!(state(&told, "made/libwritten_in_c.so").contains("looks for written_in_c.so"));
    assert!(state(&told, "plugins/written_in_c.so").contains("native code is not taken"));
    assert!(state(&told, "./written_in_c.so").contains("give its path"));
    let (_, advice) = refused(home.path(), &args);
    assert!(
        advice.starts_with("give the path made/libwritten_in_c.so"),
        "{advice}"
    );
}

#[test]
fn a_file_behind_a_built_in_collector_or_another_file_is_shadowed() {
    let home = home();
    compiled(home.path(), &[]);
    let library = home.path().join("written_in_c.so");
    for folder in ["a", "b"] {
        fs::create_dir(home.path().join(folder)).expect("a writable folder");
        fs::copy(&library, home.path().join(folder).join("written_in_c.so")).expect("a copy");
        fs::copy(&library, home.path().join(folder).join("latency.so")).expect("a copy");
    }
    let dirs = ["--plugin-dir=a", "--plugin-dir=b", "--allow-native"];
    let told = doctor(home.path(), &[&["written-in-c"], &dirs[..]].concat(), 0);
    assert!(state(&told, "a/written_in_c.so").starts_with("taken: written-in-c"));
    assert!(state(&told, "b/written_in_c.so").starts_with("shadowed by a/written_in_c.so"));
    let told = doctor(home.path(), &[&["latency"], &dirs[..]].concat(), 0);
    assert!(state(&told, "a/latency.so").starts_with("shadowed by the built-in collector"));
}

#[test]
fn a_file_that_holds_another_plugin() {
    let home = home();
    compiled(home.path(), &[]);
    fs::create_dir(home.path().join("a")).expect("a writable folder");
    fs::copy(
        home.path().join("written_in_c.so"),
        home.path().join("a/other_one.so"),
    )
    .expect("a copy");
    let (_, advice) = refused(home.path(), &["other-one", "--plugin-dir=a"]);
    assert!(advice.contains("ask for written-in-c"), "{advice}");
}

#[test]
fn files_that_are_no_plugin() {
    let cases: [(&[u8], &str, &str); 4] = [
        (b"", "is empty", "again"),
        (b"#!/bin/sh\n", "is neither a native library", "plugin build"),
        (
            b"\0asm\x01\0\0\0",
            "core WebAssembly module, not a component",
            "plugin build",
        ),
        (b"\x7fELF\x02\x01\x01\xc8", "precompiled", "component"),
    ];
    for (bytes, problem, advice) in cases {
        let told = refused_file("it.wasm", bytes);
        assert!(told.0.contains(problem) && told.1.contains(advice), "{told:?}");
    }
}

#[test]
fn a_missing_file_and_a_link() {
    let home = home();
    let (problem, _) = refused(home.path(), &["./absent.so"]);
    assert!(problem.contains("No such file"), "{problem}");
    std::os::unix::fs::symlink("absent.so", home.path().join("link.so")).expect("a link");
    let (problem, advice) = refused(home.path(), &["./link.so"]);
    assert!(
        problem.contains("symbolic link") && advice.contains("points to"),
        "{problem}"
    );
}

#[test]
fn a_truncated_component() {
    // A component's first bytes, then the beginning of a section that has no end.
    let (problem, advice) = refused_file("cut.wasm", b"\0asm\x0d\0\x01\0\x00\x7f");
    assert!(problem.contains("not a valid WebAssembly component"), "{problem}");
    assert!(advice.contains("cut short"), "{advice}");
}

#[test]
fn a_truncated_library_and_one_for_another_machine() {
    let mut bytes = library();
    let (problem, advice) = refused_file("cut.so", &bytes[..bytes.len() / 2]);
    assert!(
        problem.contains("damaged or truncated") && advice.contains("cut short"),
        "{problem}"
    );
    // RISC-V, for which no test machine is.
    bytes[ELF_MACHINE] = 243;
    bytes[ELF_MACHINE + 1] = 0;
    let (problem, advice) = refused_file("other.so", &bytes);
    assert!(
        problem.contains("RISC-V") && problem.contains("this machine needs"),
        "{problem}"
    );
    assert!(advice.contains("WASM build"), "{advice}");
}

#[test]
fn a_library_without_a_manifest() {
    let home = home();
    fs::write(home.path().join("plain.c"), "int answer(void) { return 42; }\n").expect("a writable folder");
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-o", "plain.so", "plain.c"])
        .current_dir(home.path())
        .status();
    assert!(made.expect("the C compiler").success());
    let (problem, advice) = refused(home.path(), &["./plain.so", "--allow-native"]);
    assert!(
        problem.contains("has no manifest") && advice.contains("plugin build"),
        "{problem}"
    );
}

#[test]
fn a_plugin_that_needs_a_later_interface_is_told_what_it_needs_what_this_is_and_what_to_do() {
    let (mut bytes, needle) = (library(), b"lmb.collector/1");
    let places: Vec<usize> = (0..bytes.len() - needle.len())
        .filter(|at| bytes[*at..].starts_with(needle))
        .collect();
    assert!(!places.is_empty());
    places.iter().for_each(|at| bytes[at + needle.len() - 1] = b'9');
    let (problem, advice) = refused_file("later.so", &bytes);
    assert!(problem.contains("needs interface lmb.collector/9"), "{problem}");
    assert!(
        problem.contains("this lm-bench (") && problem.contains("offers lmb.collector/1"),
        "{problem}"
    );
    assert!(advice.contains("update lm-bench"), "{advice}");
}

#[test]
fn native_code_without_permission() {
    let home = home();
    compiled(home.path(), &[]);
    let (problem, advice) = refused(home.path(), &["./written_in_c.so"]);
    assert!(
        problem.contains("is native code") && advice.contains("--allow-native"),
        "{problem}"
    );
}

#[test]
fn native_code_in_a_deterministic_run() {
    let home = home();
    compiled(home.path(), &[]);
    let (problem, advice) = refused(
        home.path(),
        &["./written_in_c.so", "--allow-native", "--deterministic"],
    );
    assert!(
        problem.contains("written_in_c.so") && advice.contains("WASM build"),
        "{problem}"
    );
}

#[test]
fn a_file_other_than_the_pinned_one_and_a_lock_file_that_is_none() {
    let home = home();
    compiled(home.path(), &[]);
    ok(home.path(), &["plugin", "lock", "./written_in_c.so"]);
    // Pinned native code needs no other permission.
    doctor(home.path(), &["./written_in_c.so"], 0);
    compiled(home.path(), &["SILENT_FAULT"]);
    let (problem, advice) = refused(home.path(), &["./written_in_c.so", "--allow-native"]);
    assert!(problem.contains("is pinned in lm-bench.lock"), "{problem}");
    assert!(advice.contains("plugin lock"), "{advice}");
    fs::write(home.path().join("lm-bench.lock"), "nonsense").expect("a writable folder");
    let (problem, advice) = refused(home.path(), &["./written_in_c.so", "--allow-native"]);
    assert!(
        problem.contains("cannot be read") && advice.contains("--lock"),
        "{problem}"
    );
}

#[test]
fn a_pack_whose_key_is_not_trusted_any_more_and_one_that_was_changed() {
    let home = signed();
    let folder = home.path();
    ok(folder, &["pack", "install", "acme.tar.zst"]);
    let told = doctor(folder, &[ID], 0);
    assert!(state(&told, "probe_collector.wasm").starts_with("taken"));
    ok(folder, &["pack", "trust", "remove", "acme"]);
    let (problem, advice) = refused(folder, &[ID]);
    assert!(
        problem.contains("pack acme-metrics 1.0.0, which is refused"),
        "{problem}"
    );
    assert!(advice.contains("pack trust"), "{advice}");
    ok(folder, &["pack", "trust", "add", "acme", "acme.key.pub"]);
    let packed = folder.join("data/lm-bench/packs/acme-metrics/1.0.0/probe_collector.wasm");
    let mut bytes = fs::read(&packed).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let mut permissions = fs::metadata(&packed).expect("a file").permissions();
    #[expect(clippy::permissions_set_readonly_false, reason = "the test's own file")]
    permissions.set_readonly(false);
    fs::set_permissions(&packed, permissions).expect("the test's own file");
    fs::write(&packed, bytes).expect("the test's own file");
    refused(folder, &[ID]);
}
