//! `plugin check`: sound plugins pass, and each wrong one fails the check that it violates.

use std::path::Path;

use serde_json::Value;

use crate::program::{BUILT_IN, SMALL, home, lm_bench, output, refusal, stderr, stdout};

/// Limits of time that a machine busy with other tests keeps.
const PATIENT: &[&str] = &["--plugin-limit=batch_ms=20000", "--plugin-limit=call_ms=60000"];

/// The description of the collector in wrong.c.
const PROJECT: &str = r#"language = "c"
source = "wrong.c"
flags = [FLAGS]
id = "wrong"
version = "1.0.0"
about = "Counts steps and samples"
license = "MIT"

[config]
type = "object"
additionalProperties = false
properties.limit = { type = "number", default = 1 }

[[metrics]]
name = "steps"
kind = "counter"
formula = "count(step)"
about = "Steps."

[[metrics]]
name = "samples"
kind = "counter"
formula = "count(gpu)"
about = "Samples."

[[metrics]]
name = "share"
kind = "gauge"
formula = "count(step where phase = 0) / count(step)"
about = "Share of prefill steps."
"#;

/// Writes the collector with a fault, or without one.
fn write_project(home: &Path, fault: &str, change: (&str, &str)) {
    let flags = if fault.is_empty() {
        String::new()
    } else {
        format!("\"-D{fault}\"")
    };
    let folder = home.join("wrong");
    std::fs::create_dir_all(&folder).expect("a folder");
    let text = PROJECT.replace("FLAGS", &flags).replace(change.0, change.1);
    std::fs::write(folder.join("plugin.toml"), text).expect("a written file");
    std::fs::write(folder.join("wrong.c"), include_str!("wrong.c")).expect("a written file");
}

/// The checks of one plugin, from a run that ended with `code`.
fn checks(home: &Path, arguments: &[&str], code: i32) -> Vec<Value> {
    let mut command = lm_bench(home);
    command.args(["plugin", "check", "--output-format=json"]);
    let output = output(command.args(arguments));
    assert_eq!(
        output.status.code(),
        Some(code),
        "{}\n{}",
        stdout(&output),
        stderr(&output)
    );
    let reports: Value = serde_json::from_slice(&output.stdout).expect("stdout is one JSON document");
    let reports = reports.as_array().expect("reports");
    assert_eq!(reports.len(), 1, "{reports:?}");
    reports[0]["checks"].as_array().expect("checks").clone()
}

fn failed(checks: &[Value]) -> Vec<&str> {
    let failed = checks.iter().filter(|check| check["verdict"] == "fail");
    failed.filter_map(|check| check["name"].as_str()).collect()
}

fn find<'a>(checks: &'a [Value], name: &str) -> &'a Value {
    checks.iter().find(|check| check["name"] == name).expect("made")
}

#[test]
fn built_in_collectors_pass() {
    let home = home();
    for id in BUILT_IN {
        let checks = checks(home.path(), &[&[id], PATIENT].concat(), 0);
        assert!(checks.len() > 25, "{id}");
        assert_eq!(find(&checks, "call-order")["verdict"], "pass", "{id}");
    }
}

#[test]
fn a_new_project_in_c_passes_unchanged() {
    let home = home();
    let new = output(lm_bench(home.path()).args(["plugin", "new", "slow-steps", "--lang=c"]));
    assert_eq!(new.status.code(), Some(0), "{}", stderr(&new));
    let made = checks(home.path(), &[&["slow-steps"], PATIENT].concat(), 0);
    assert_eq!(find(&made, "memory")["verdict"], "pass");
    let mut command = lm_bench(home.path());
    let table = stdout(&output(
        command.args(["plugin", "check", "slow-steps"]).args(PATIENT),
    ));
    assert!(table.starts_with("slow-steps 0.1.0, dylib\n"), "{table}");
    assert!(table.contains(" passed, 0 failed, "), "{table}");
}

#[test]
fn each_wrong_collector_fails_the_check_that_it_violates() {
    let home = home();
    write_project(home.path(), "", ("", ""));
    checks(home.path(), &[&["wrong"], PATIENT].concat(), 0);
    /// Kind, row and number of rows that show a fault.
    type Rows = Option<(&'static str, u64, u64)>;
    // The fault, the check, and what shows it, if any rows do.
    let cases: &[(&str, &str, Rows)] = &[
        ("TAKES_ANY_KEY", "config-unknown-key", None),
        ("TAKES_ANY_KEY", "config-wrong-type", None),
        ("ASKS_TWICE", "subscription", None),
        ("NEEDS_ROWS", "empty-run", None),
        // Each other row from the second one on has an unknown code, a greatest value or NaN.
        ("KNOWS_ALL_PHASES", "unknown-codes", Some(("step", 1, 1))),
        ("TRUSTS_TIMES", "huge-values", Some(("step", 1, 1))),
        ("DISLIKES_NAN", "non-finite", Some(("gpu", 1, 1))),
        ("DISLIKES_WEIGHTS", "weights", Some(("step", 0, 1))),
        ("DISLIKES_LOSSES", "lost-rows", None),
        // The first checkpoints are of no rows.
        (
            "FORGETS_AT_CHECKPOINT",
            "checkpoint-repeats",
            Some(("step", 0, 64)),
        ),
        ("FORGETS_AT_CHECKPOINT", "checkpoint-harmless", None),
        ("COUNTS_CHECKPOINTS", "checkpoint-harmless", None),
        // The last of four deliveries, of the kind that comes second.
        ("ADDS_AT_THE_END", "finish", Some(("gpu", 192, 64))),
        ("COUNTS_BATCHES", "batch-cuts", Some(("step", 0, 64))),
        ("SHARES_STATE", "instances", None),
        // After the third batch.
        ("REPORTS_UNDECLARED", "metrics", Some(("step", 64, 64))),
        ("DEPENDS_ON_PROCESS", "determinism", None),
        ("FLOODS_LOG", "log", None),
        // It is given no more memory than it may have.
        ("LARGE_WITH_MANY_ROWS", "full-batch", Some(("step", 0, 1000))),
    ];
    for (fault, check, place) in cases {
        write_project(home.path(), fault, ("", ""));
        let checks = checks(home.path(), &[&["wrong"], PATIENT].concat(), 1);
        let names = failed(&checks);
        assert!(names.contains(check), "{fault}: {names:?}");
        let at = &find(&checks, check)["at"];
        match place {
            Some((kind, row, rows)) => {
                let expected = (&Value::from(*kind), &Value::from(*row), &Value::from(*rows));
                assert_eq!(
                    (&at["kind"], &at["row"], &at["rows"]),
                    expected,
                    "{fault}: {checks:?}"
                );
            }
            None => assert!(at.is_null(), "{fault}: {at}"),
        }
    }
}

#[test]
fn a_fault_of_one_check_leaves_the_others_alone() {
    let home = home();
    write_project(home.path(), "TRUSTS_TIMES", ("", ""));
    let made = checks(home.path(), &[&["wrong"], PATIENT].concat(), 1);
    assert_eq!(failed(&made), ["huge-values"]);
    let values = &find(&made, "huge-values")["at"]["values"];
    let values = values.as_str().expect("the row");
    assert!(values.contains("host_ns=18446744073709551615"), "{values}");

    write_project(home.path(), "SLOW_WITH_MANY_ROWS", ("", ""));
    let limits = ["wrong", "--plugin-limit=batch_ms=2000"];
    let made = checks(home.path(), &limits, 1);
    assert_eq!(failed(&made), ["full-batch", "time"]);
    assert_eq!(find(&made, "time")["at"]["rows"], 1000);
}

#[test]
fn what_a_manifest_lacks_is_told() {
    let home = home();
    let cases = [
        (
            ("about = \"Steps.\"", "about = \"\""),
            "manifest",
            "metric steps: about is empty",
        ),
        (
            ("license = \"MIT\"", "license = \"\""),
            "manifest",
            "no SPDX expression",
        ),
        (("\"1.0.0\"", "\"one\""), "manifest", "version \"one\""),
        (
            ("additionalProperties = false", "additionalProperties = true"),
            "config-schema",
            "allows unknown keys",
        ),
    ];
    for (change, check, text) in cases {
        write_project(home.path(), "", change);
        let made = checks(home.path(), &[&["wrong"], PATIENT].concat(), 1);
        assert_eq!(failed(&made), [check]);
        let what = find(&made, check)["what"].as_str().expect("told");
        assert!(what.contains(text), "{what}");
    }
}

#[test]
fn golden_streams_are_compared_and_only_written_when_told() {
    let home = home();
    write_project(home.path(), "", ("", ""));
    let golden = home.path().join("wrong/golden");
    std::fs::create_dir(&golden).expect("a folder");
    let recording = "--record=wrong/golden/small.lmrec";
    let recorded = output(lm_bench(home.path()).args(SMALL).arg(recording));
    assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
    let run = |code| checks(home.path(), &[&["wrong"], PATIENT].concat(), code);

    let missing = run(1);
    assert_eq!(failed(&missing), ["golden small.lmrec"]);
    assert!(!golden.join("small.metrics.json").exists());
    checks(home.path(), &[&["wrong", "--bless"], PATIENT].concat(), 0);
    let written = std::fs::read_to_string(golden.join("small.metrics.json")).expect("written");
    let expected: Value = serde_json::from_str(&written).expect("JSON");
    assert_eq!(expected[1]["name"], "share", "{expected}");
    run(0);

    write_project(home.path(), "COUNTS_BATCHES", ("", ""));
    assert!(failed(&run(1)).contains(&"golden small.lmrec"));
    let after = std::fs::read_to_string(golden.join("small.metrics.json")).expect("still there");
    assert_eq!(after, written);
}

#[test]
fn what_cannot_be_checked_is_refused() {
    let home = home();
    let check = |arguments: &[&str]| {
        let mut command = lm_bench(home.path());
        command.args(["plugin", "check"]).args(arguments);
        refusal(&mut command)
    };
    assert!(check(&["absent"]).contains("there is no plugin absent"));
    assert!(check(&["latency", "--door=wasm"]).contains("--door is for the folder of a project"));
    assert!(check(&["latency", "--bless"]).contains("--golden"));
    assert!(check(&["latency", "--golden=absent.lmrec"]).contains("absent.lmrec"));
    assert!(check(&["latency", "--plugin-limit=batch_ms=0"]).contains("batch_ms"));
    assert!(check(&["latency", "--plugin-config=other.k=1"]).contains("other"));
    crate::native::compiled(home.path(), &[]);
    assert!(check(&["./written_in_c.so"]).contains("--allow-native"));
}
