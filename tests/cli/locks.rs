//! `plugin lock` and what a lock file does to a run.

use std::fs;

use crate::packs::{ID, ok, refused, run_args, signed};
use crate::program::{SMALL, lm_bench, output, record};

#[test]
fn a_lock_file_holds_plugins_to_their_bytes() {
    let home = signed();
    let folder = home.path();
    ok(folder, &["pack", "install", "acme.tar.zst"]);
    ok(folder, &["plugin", "lock", ID]);
    let lock = folder.join("lm-bench.lock");
    let text = fs::read_to_string(&lock).expect("a file");
    assert!(text.contains("pack acme-metrics@1.0.0"), "{text}");
    record(&output(lm_bench(folder).args(run_args(&[]))), 0);

    let (before, digest) = text.split_once("sha256 = \"").expect("a digest");
    let other = format!("{before}sha256 = \"{}{}", "0".repeat(64), &digest[64..]);
    fs::rename(&lock, folder.join("good.lock")).expect("renamed");
    fs::write(&lock, &other).expect("a writable folder");
    let line = refused(folder, &run_args(&[]));
    assert!(
        line.contains("lm-bench.lock") && line.contains(&"0".repeat(64)),
        "{line}"
    );
    record(
        &output(lm_bench(folder).args(run_args(&["--lock", "good.lock"]))),
        0,
    );
    assert!(refused(folder, &run_args(&["--lock", "absent.lock"])).contains("absent.lock"));
    fs::write(&lock, "nonsense").expect("a writable folder");
    assert!(refused(folder, &run_args(&[])).contains("lm-bench.lock"));
    fs::remove_file(&lock).expect("a file");
    assert!(refused(folder, &["plugin", "lock", "latency"]).contains("built in"));
    assert!(!lock.exists());
}

#[test]
fn a_native_library_needs_a_permission_or_a_lock_entry() {
    let home = signed();
    let folder = home.path();
    ok(folder, &["pack", "install", "acme.tar.zst"]);
    let library = folder.join("data/lm-bench/packs/acme-metrics/1.0.0/native/probe_collector.so");
    let library = library.to_string_lossy().into_owned();
    let args: Vec<&str> = SMALL
        .iter()
        .copied()
        .chain([
            "--no-default-plugins",
            "--output-format=json",
            "--plugin",
            &library,
        ])
        .collect();
    assert!(refused(folder, &args).contains("--allow-native"));
    ok(folder, &["plugin", "lock", &library]);
    let by_path = record(&output(lm_bench(folder).args(args)), 0);
    assert_eq!(by_path["plugins"][0]["door"], "dylib");
    // By its id, too, the pinned one is taken: the component of the same pack is not it.
    let by_id = record(&output(lm_bench(folder).args(run_args(&[]))), 0);
    assert_eq!(by_id["plugins"][0]["door"], "dylib");
    assert_eq!(by_id["plugins"][0]["sha256"], by_path["plugins"][0]["sha256"]);
}
