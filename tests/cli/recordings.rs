//! `--record` and `replay`.

use std::fs;

use serde_json::Value;

use crate::program::{SMALL, home, lm_bench, output, record, refusal};

#[test]
fn a_replay_gives_the_metrics_of_the_live_run() {
    let home = home();
    for mode in ["live", "after"] {
        let file = format!("{mode}.lmrec");
        let flags = [
            "run",
            "--record",
            &file,
            "--collect",
            mode,
            "--output-format=json",
        ];
        let live = record(&output(lm_bench(home.path()).args(flags)), 0);
        let replayed = record(
            &output(lm_bench(home.path()).args(["replay", &file, "--output-format=json"])),
            0,
        );
        assert!(live["metrics"].as_array().expect("metrics").len() > 50);
        assert_eq!(live["metrics"], replayed["metrics"], "{mode}");
    }
}

#[test]
fn a_replay_can_run_other_plugins() {
    let home = home();
    assert!(
        output(lm_bench(home.path()).args(SMALL).args(["--record", "r.lmrec"]))
            .status
            .success()
    );
    let flags = [
        "replay",
        "r.lmrec",
        "--no-default-plugins",
        "--plugin=throughput",
        "--output-format=json",
    ];
    let replayed = record(&output(lm_bench(home.path()).args(flags)), 0);
    let plugins: Vec<_> = replayed["plugins"]
        .as_array()
        .expect("plugins")
        .iter()
        .map(|p| &p["id"])
        .collect();
    assert_eq!(plugins, [&Value::from("throughput")]);
}

#[test]
fn damaged_recordings_are_refused() {
    let home = home();
    assert!(
        output(lm_bench(home.path()).args(SMALL).args(["--record", "r.lmrec"]))
            .status
            .success()
    );
    let whole = fs::read(home.path().join("r.lmrec")).expect("the recording");
    let replay = |bytes: &[u8]| {
        fs::write(home.path().join("cut.lmrec"), bytes).expect("a writable folder");
        refusal(lm_bench(home.path()).args(["replay", "cut.lmrec"]))
    };
    for cut in [0, 100, 512, 2000, whole.len() / 2] {
        assert!(replay(&whole[..cut]).contains("cut.lmrec"), "cut at {cut}");
    }
    assert!(replay(b"something else entirely").contains("cut.lmrec"));
    let absent = refusal(lm_bench(home.path()).args(["replay", "absent.lmrec"]));
    assert!(absent.contains("absent.lmrec"));
}

#[test]
fn a_deterministic_replay_says_so_in_its_record() {
    let home = home();
    let flags = ["--record", "r.lmrec", "--deterministic", "--output-format=json"];
    let recorded = record(&output(lm_bench(home.path()).args(SMALL).args(flags)), 0);
    assert_eq!(recorded["plan"]["deterministic"], true);
    let replayed = |flags: &[&str]| {
        let mut command = lm_bench(home.path());
        command
            .args(["replay", "r.lmrec", "--output-format=json"])
            .args(flags);
        record(&output(&mut command), 0)
    };
    let fuelled = replayed(&["--deterministic", "--plugin-limit=fuel_per_ms=2000000"]);
    assert_eq!(fuelled["plan"]["deterministic"], true);
    assert_eq!(fuelled["plan"]["plugin_limits"]["fuel_per_ms"], 2_000_000);
    // The built-in collectors are trusted: no fuel ends them.
    assert_eq!(fuelled["plugins"][0]["fuel"], Value::Null);
    let timed = replayed(&[]);
    assert_eq!(timed["plan"]["deterministic"], false);
    assert_eq!(timed["plan"]["plugin_limits"]["fuel_per_ms"], 1_000_000);
    assert_eq!(timed["metrics"], fuelled["metrics"]);
}
