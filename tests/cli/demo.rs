//! `run` and its results.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::program::{BUILT_IN, SMALL, home, lm_bench, output, record, stderr, stdout};

fn metrics<'a>(record: &'a Value, name: &str) -> Vec<&'a Value> {
    let all = record["metrics"].as_array().expect("metrics");
    all.iter().filter(|metric| metric["name"] == name).collect()
}

/// The one value of a metric that carries exactly these labels.
fn value(record: &Value, name: &str, labels: &Value) -> Value {
    let found: Vec<_> = metrics(record, name)
        .into_iter()
        .filter(|metric| &metric["labels"] == labels)
        .collect();
    assert_eq!(found.len(), 1, "{name} {labels}: {found:?}");
    found[0]["value"].clone()
}

#[test]
fn the_demo_gives_each_collector_data() {
    let home = home();
    let record = record(
        &output(lm_bench(home.path()).args(["run", "--output-format", "json"])),
        0,
    );
    assert_eq!(record["verdict"]["valid"], true, "{}", record["verdict"]);
    assert!(record["prefill_latency_ms"].as_f64().expect("a number") > 0.0);
    assert!(record["decode_latency_per_token_ms"].as_f64().expect("a number") > 0.0);
    assert!(record["total_tokens_per_second"].as_f64().expect("a number") > 0.0);
    assert_eq!(record["peak_gpu_mem_gb"], Value::Null);
    let plugins = record["plugins"].as_array().expect("plugins");
    let ids: BTreeSet<_> = plugins
        .iter()
        .map(|plugin| plugin["id"].as_str().expect("an id"))
        .collect();
    assert_eq!(ids, BUILT_IN.into());
    for plugin in plugins {
        assert!(plugin["rows"].as_u64().expect("a count") > 0, "{plugin}");
        assert_eq!(plugin["lost"], 0, "{plugin}");
        assert_eq!(plugin["faults"], Value::Array(Vec::new()), "{plugin}");
    }
    for name in [
        "expert_utilization_ratio",
        "quantization_error_l2",
        "attention_flops_per_second",
    ] {
        assert!(
            metrics(&record, name)
                .iter()
                .any(|metric| metric["value"].is_number()),
            "{name}"
        );
    }
    assert_eq!(record["peak_gpu_mem_gb"], Value::Null);
}

#[test]
fn the_record_fits_its_schema() {
    let home = home();
    let record = record(
        &output(lm_bench(home.path()).args(SMALL).arg("--output-format=json")),
        0,
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/report.schema.json");
    let schema: Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("the schema")).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a valid schema");
    let errors: Vec<_> = validator
        .iter_errors(&record)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

#[test]
fn counts_follow_the_plan() {
    let home = home();
    let flags = [
        "run",
        "--model=tiny-llama",
        "--batch-size=3",
        "--seq-len=16",
        "--output-len=5",
        "--num-iters=4",
        "--output-format=json",
    ];
    let record = record(&output(lm_bench(home.path()).args(flags)), 0);
    let counts = &record["counts"];
    assert_eq!(counts["iterations"], 4);
    assert_eq!(counts["requests"], 12);
    assert_eq!(counts["prompt_tokens"], 12 * 16);
    assert_eq!(counts["output_tokens"], 12 * 5);
    assert_eq!(record["warmup"]["iterations"], 1);
    assert_eq!(record["plan"]["batch_size"], 3);
    let latency = metrics(&record, "prefill_latency_ms");
    assert_eq!(latency.len(), 1);
    assert_eq!(
        latency[0]["n"], 4,
        "one prefill per measured iteration, none of the warm-up"
    );
    let events = &record["events"];
    assert!(events.to_string().contains("step"), "{events}");
}

#[test]
fn a_percentile_without_enough_samples_is_null_and_says_what_it_needs() {
    let home = home();
    let record = record(
        &output(lm_bench(home.path()).args(SMALL).arg("--output-format=json")),
        0,
    );
    let latency = metrics(&record, "prefill_latency_ms")[0].to_string();
    assert!(
        latency.contains("null"),
        "two samples have no 99th percentile: {latency}"
    );
}

#[test]
fn the_same_seed_gives_the_same_routing() {
    let home = home();
    let run = |seed: &str| {
        let flags = ["run", "--num-iters=1", "--output-format=json", "--seed", seed];
        let output = output(lm_bench(home.path()).args(flags));
        let record: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        value(&record, "load_cv", &serde_json::json!({"phase": "prefill"}))
    };
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7"), run("8"));
}

#[test]
fn the_table_is_readable_without_a_terminal_and_in_a_plain_locale() {
    let home = home();
    let output = output(
        lm_bench(home.path())
            .args(SMALL)
            .env("LC_ALL", "C")
            .env("LANG", "C"),
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let table = stdout(&output);
    assert!(!table.contains('\x1b'), "no colour codes in a pipe");
    assert!(table.is_ascii(), "plain characters in the C locale: {table}");
    for word in [
        "tiny-llama",
        "prefill_latency_ms",
        "VALID",
        "latency",
        "throughput",
    ] {
        assert!(table.contains(word), "{word} is not in:\n{table}");
    }
}

#[test]
fn few_iterations_are_told() {
    let home = home();
    let flags = [
        "run",
        "--model=tiny-llama",
        "--seq-len=8",
        "--output-len=4",
        "--num-iters=1",
        "--output-format=json",
    ];
    let record = record(&output(lm_bench(home.path()).args(flags)), 0);
    assert!(
        record["warnings"].to_string().contains("few_iterations"),
        "{}",
        record["warnings"]
    );
    assert!(record["prefill_latency_ms"].is_number());
    let definition = &record["definitions"]["prefill_latency_ms"];
    assert_eq!(
        definition["interval"],
        Value::Null,
        "one sample has no interval: {definition}"
    );
}

#[test]
fn a_closed_pipe_is_no_error() {
    let home = home();
    let mut child = lm_bench(home.path())
        .args(SMALL)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("starts");
    drop(child.stdout.take());
    let ended = child.wait_with_output().expect("ends");
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
}

#[test]
fn the_result_is_saved_too() {
    let home = home();
    let flags = ["--save-result", "result.json", "--output-format", "csv"];
    let output = output(lm_bench(home.path()).args(SMALL).args(flags));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).lines().next().expect("a header").contains("name"));
    let saved = std::fs::read_to_string(home.path().join("result.json")).expect("the saved record");
    let saved: Value = serde_json::from_str(&saved).expect("JSON");
    assert_eq!(saved["schema_version"], "1.1");
}
