//! `plugin list`, `plugin inspect` and the policy of loading.

use serde_json::Value;

use crate::program::{home, lm_bench, output, record, refusal, stderr, stdout};

#[test]
fn the_list_names_the_built_in_collectors() {
    let home = home();
    let output = output(lm_bench(home.path()).args(["plugin", "list"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let list = stdout(&output);
    for id in [
        "attention-efficiency",
        "fp8-error",
        "kv-cache",
        "latency",
        "memory",
        "moe-utilization",
        "throughput",
    ] {
        assert!(list.contains(id), "{id} is not in:\n{list}");
    }
}

#[test]
fn inspect_shows_identity_and_metrics() {
    let home = home();
    let output = output(lm_bench(home.path()).args(["plugin", "inspect", "moe-utilization"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    for word in [
        "moe-utilization",
        "built-in",
        "expert_utilization_ratio",
        "lmb.collector/1",
    ] {
        assert!(text.contains(word), "{word} is not in:\n{text}");
    }
}

#[test]
fn a_folder_that_is_named_must_be_readable() {
    let home = home();
    std::fs::write(home.path().join("file"), "").expect("a writable folder");
    let commands: [&[&str]; 5] = [
        &["plugin", "list"],
        &["plugin", "inspect", "latency"],
        &["plugin", "lock", "latency"],
        // Neither a model nor a recording is looked at.
        &["run", "--model=absent"],
        &["replay", "absent.lmrec"],
    ];
    for command in commands {
        for folder in ["absent", "file"] {
            let line = refusal(lm_bench(home.path()).args(command).args(["--plugin-dir", folder]));
            assert!(
                line.contains(&format!("--plugin-dir {folder}: ")),
                "{command:?}: {line}"
            );
        }
    }
}

#[test]
fn without_default_plugins_only_the_named_one_runs() {
    let home = home();
    let flags = [
        "run",
        "--num-iters=2",
        "--no-default-plugins",
        "--plugin=moe-utilization",
        "--output-format=json",
    ];
    let record = record(&output(lm_bench(home.path()).args(flags)), 0);
    let plugins: Vec<_> = record["plugins"]
        .as_array()
        .expect("plugins")
        .iter()
        .map(|p| &p["id"])
        .collect();
    assert_eq!(plugins, [&Value::from("moe-utilization")]);
}
