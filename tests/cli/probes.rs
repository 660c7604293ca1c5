//! Probes as a user runs them: their rows reach collectors and recordings, and what they do wrong ends them alone.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::program::{SMALL, home, lm_bench, output, record, refusal, stderr};

const PROBE: &str = "--plugin=./probe.so";
const READER: &str = "--plugin=./reader.so";
/// A run of some dozen steps, so that there is time for several samples.
const LONG: &[&str] = &[
    "run",
    "--model=tiny-llama",
    "--seq-len=8",
    "--output-len=8",
    "--num-iters=4",
    "--no-default-plugins",
];
/// A busy machine is no fault of the probe.
const PATIENT: &str = "--plugin-limit=batch_ms=60000";
const JSON: &str = "--output-format=json";

/// Compiles the probe, or with the macro READER the collector, into a home.
fn compile(home: &Path, file: &str, defines: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let status = Command::new("cc")
        .args(["-std=c11", "-O1", "-shared", "-fPIC"])
        .args(defines.iter().map(|define| format!("-D{define}")))
        .arg("-I")
        .arg(root.join("plugin-sdk/include"))
        .args(["-o", file])
        .arg(root.join("tests/doors/probe.c"))
        .current_dir(home)
        .status()
        .expect("the C compiler that links Rust programs");
    assert!(status.success());
}

/// A run of both that samples each millisecond.
fn run(home: &Path, more: &[&str]) -> Command {
    let mut command = lm_bench(home);
    command
        .args(LONG)
        .args([PROBE, READER, JSON, "--allow-native", "--probe-period=1ms"])
        .args(more);
    command
}

fn metric<'a>(record: &'a Value, name: &str) -> &'a Value {
    let mut metrics = record["metrics"].as_array().expect("metrics").iter();
    metrics
        .find(|metric| metric["plugin"] == "reader-in-c" && metric["name"] == name)
        .expect("declared")
}

#[test]
fn rows_of_a_probe_reach_collectors_and_a_replay_needs_no_probe() {
    let home = home();
    compile(home.path(), "probe.so", &[]);
    compile(home.path(), "reader.so", &["READER"]);
    for flags in [&["--in-process"][..], &["--record=probed.lmrec"]] {
        let record = record(
            &output(&mut run(home.path(), &[flags, &[PATIENT][..]].concat())),
            0,
        );
        let probe = &record["probes"][0];
        let samples = probe["samples"].as_u64().expect("a number");
        assert!(samples > 0, "{probe}");
        assert_eq!(probe["rows"], samples);
        assert_eq!(probe["isolated"], flags[0] != "--in-process");
        assert_eq!(metric(&record, "samples")["value"], samples);
        assert_eq!(metric(&record, "sum")["value"], samples * (samples + 1) / 2);
        assert_eq!(record["events"]["vendor.example.count"]["rows"], samples);
        if flags[0] == "--in-process" {
            continue;
        }
        let replay = |plugins: &[&str]| {
            let mut command = lm_bench(home.path());
            command
                .args(["replay", "probed.lmrec", JSON, "--allow-native"])
                .args(plugins);
            command
        };
        let replayed = crate::program::record(&output(&mut replay(&[READER])), 0);
        for name in ["samples", "sum"] {
            assert_eq!(metric(&replayed, name), metric(&record, name));
        }
        assert_eq!(replayed["probes"][0], *probe, "the account of the recorded run");
        let line = refusal(&mut replay(&[PROBE]));
        assert!(line.contains("probe-in-c is a probe"), "{line}");
    }
}

#[test]
fn a_probe_that_misbehaves_is_ended_and_named_and_the_run_completes() {
    let home = home();
    compile(home.path(), "reader.so", &["READER"]);
    let end = "ended by SIGABRT";
    for (misdeed, reason) in [
        ("MISDEED=abort()", end),
        ("MISDEED=for (;;) {}", "longer than the time limit"),
        ("MISDEED=exit(0)", "exit status 0"),
        ("MISDEED=return 1", "without a reason"),
        (
            "MISDEED=give(host, state, 100000, 1)",
            "100001 rows in one sample",
        ),
        ("MISDEED=give(host, state, 2, 1)", "1 values in column number"),
        ("MISDEED=give(host, state, 0, 0)", "0 rows"),
        ("MISDEED=give(host, state, 1, 1ull << 60)", "bytes in one sample"),
        ("MISDEED=give(host, 0, 1, 1)", "without an aligned address"),
        ("WRONG_SYMBOL", "symbol 7"),
    ] {
        compile(home.path(), "probe.so", &[misdeed]);
        let limit = if misdeed.contains("for") {
            "--plugin-limit=batch_ms=1000"
        } else {
            PATIENT
        };
        let output = output(&mut run(home.path(), &[limit]));
        let record = record(&output, 3);
        let probe = &record["probes"][0];
        let fault = probe["faults"][0].as_str().expect("a fault");
        assert!(fault.contains(reason), "{misdeed}: {fault}");
        let warnings = record["warnings"].to_string();
        assert!(warnings.contains("probe probe-in-c was ended"), "{warnings}");
        let kept = if misdeed == "WRONG_SYMBOL" { 0 } else { 2 };
        assert_eq!(probe["samples"], kept, "{misdeed}");
        let value = &metric(&record, "samples")["value"];
        assert_eq!(value.as_u64().unwrap_or(0), kept, "{misdeed}");
    }
}

#[test]
fn a_probe_that_does_not_open_leaves_a_run_without_its_kinds() {
    let home = home();
    compile(home.path(), "probe.so", &["NO_OPEN"]);
    compile(home.path(), "reader.so", &["READER"]);
    let output = output(&mut run(home.path(), &[]));
    let text = stderr(&output);
    assert!(
        text.contains("reader-in-c: this run has no events vendor.example.count"),
        "{text}"
    );
    let record = record(&output, 3);
    assert_eq!(metric(&record, "samples")["value"], Value::Null);
}

#[test]
fn a_kind_that_is_no_vendors_and_a_period_without_a_unit_are_refused() {
    let home = home();
    compile(home.path(), "reader.so", &["READER"]);
    compile(home.path(), "probe.so", &["KIND=\"step\""]);
    let line = refusal(&mut run(home.path(), &[]));
    assert!(line.contains("not named vendor.NAME.KIND"), "{line}");
    let mut wrong = lm_bench(home.path());
    let output = output(wrong.args(SMALL).arg("--probe-period=0ms"));
    assert!(stderr(&output).contains("1ms to 3600s"), "{}", stderr(&output));
}
