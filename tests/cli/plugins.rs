//! `plugin list`, `plugin inspect` and the policy of loading.

use serde_json::Value;

use crate::program::{BUILT_IN, home, lm_bench, output, record, refusal, stderr, stdout};

#[test]
fn the_list_names_the_built_in_collectors() {
    let home = home();
    let output = output(lm_bench(home.path()).args(["plugin", "list"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let list = stdout(&output);
    for id in BUILT_IN {
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

#[test]
fn a_new_plugin_is_started_once_and_under_a_proper_name() {
    let home = home();
    let new = |arguments: &[&str]| {
        let mut command = lm_bench(home.path());
        command.args(["plugin", "new"]).args(arguments);
        command
    };
    let created = output(&mut new(&["slow-steps", "--lang=c"]));
    assert_eq!(created.status.code(), Some(0), "{}", stderr(&created));
    assert!(stdout(&created).starts_with("slow-steps\n"));
    assert!(home.path().join("slow-steps/plugin.toml").is_file());
    let again = refusal(&mut new(&["slow-steps", "--lang=c"]));
    assert!(again.contains("slow-steps exists already"), "{again}");
    let name = refusal(&mut new(&["Slow_Steps", "--lang=c"]));
    assert!(name.contains("\"Slow_Steps\" cannot be a plugin's id"), "{name}");
    let sdk = refusal(&mut new(&["other-steps", "--lang=rust", "--sdk=slow-steps"]));
    assert!(
        sdk.contains("slow-steps is not the folder of lm-bench's SDK"),
        "{sdk}"
    );
    for lang in ["js", "python", "rust", "c"] {
        let missing = refusal(new(&["other-steps", "--lang", lang]).env("PATH", home.path()));
        assert!(missing.contains("cannot be run: install"), "{missing}");
    }
    assert!(!home.path().join("other-steps").exists());
}

#[test]
fn a_project_is_built_for_the_doors_of_its_language() {
    let home = home();
    let new = output(lm_bench(home.path()).args(["plugin", "new", "slow-steps", "--lang=c"]));
    assert_eq!(new.status.code(), Some(0), "{}", stderr(&new));
    let build = |door: &str| {
        let mut command = lm_bench(home.path());
        command.args(["plugin", "build", "slow-steps", "--out=out", "--door", door]);
        command
    };
    let built = output(&mut build("dylib"));
    assert_eq!(built.status.code(), Some(0), "{}", stderr(&built));
    let inspected = output(lm_bench(home.path()).args(["plugin", "inspect", "out/slow_steps.so", "--json"]));
    let inspected: Value = serde_json::from_slice(&inspected.stdout).expect("JSON");
    assert_eq!(inspected["manifest"]["id"], "slow-steps");
    assert_eq!(
        inspected["description"]["config"]["properties"]["slow_ms"]["default"],
        50
    );
    let new = output(lm_bench(home.path()).args(["plugin", "new", "in-js", "--lang=js"]));
    assert_eq!(new.status.code(), Some(0), "{}", stderr(&new));
    let mut command = lm_bench(home.path());
    let door = refusal(command.args(["plugin", "build", "in-js", "--out=out", "--door=dylib"]));
    assert!(door.contains("build it with --door wasm"), "{door}");
}
