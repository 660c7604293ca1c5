//! `--observer-effect` and `--max-overhead`.

use serde_json::Value;

use crate::program::{SMALL, home, lm_bench, output, record, refusal, stderr, stdout};

const FIGURES: [&str; 3] = [
    "prefill_latency",
    "decode_latency_per_token",
    "iteration_wall_time",
];

/// A small run of enough pairs for figures, two of every sampled prefill among them.
const PAIRED: &[&str] = &[
    "run",
    "--model=tiny-llama",
    "--seq-len=8",
    "--output-len=4",
    "--num-iters=8",
    "--sample-every=4",
    "--observer-effect",
];

#[test]
fn both_modes_give_an_effect_with_its_interval() {
    let home = home();
    for (mode, covers) in [("after", "recording"), ("live", "recording_and_collectors")] {
        let flags = ["--output-format=json", "--collect", mode];
        let record = record(&output(lm_bench(home.path()).args(PAIRED).args(flags)), 0);
        let effect = &record["observer_effect"];
        assert_eq!((&effect["pairs"], &effect["covers"]), (&8.into(), &covers.into()));
        for name in FIGURES {
            let figure = &effect[name];
            let number = |value: &Value| value.as_f64().expect("a number");
            let overhead = number(&figure["overhead_pct"]);
            let interval = &figure["interval"];
            assert!(
                number(&interval["low"]) <= overhead && overhead <= number(&interval["high"]),
                "{figure}"
            );
            let ratio = number(&figure["instrumented_ms"]) / number(&figure["bare_ms"]);
            assert!((ratio - 1.0 - overhead / 100.0).abs() < 1e-9, "{figure}");
        }
        assert_eq!(record["counts"]["iterations"], 8);
        assert_eq!(
            record["events"]["step"]["rows"],
            8 * 4,
            "bare iterations leave no rows"
        );
        assert!(record["timings"]["bare_s"].as_f64().expect("a time") > 0.0);
    }
}

/// What does not depend on time.
fn routing(record: &Value) -> Vec<Value> {
    let metrics = record["metrics"].as_array().expect("metrics");
    let of = |metric: &&Value| metric["plugin"] == "moe-utilization";
    metrics.iter().filter(of).cloned().collect()
}

#[test]
fn bare_iterations_change_no_metric() {
    let home = home();
    let flags = ["run", "--num-iters=3", "--output-len=8", "--output-format=json"];
    let plain = record(&output(lm_bench(home.path()).args(flags)), 0);
    let paired = record(
        &output(lm_bench(home.path()).args(flags).arg("--observer-effect")),
        0,
    );
    assert!(routing(&plain).len() > 10);
    assert_eq!(routing(&plain), routing(&paired));
    assert_eq!(plain["events"], paired["events"]);
    assert_eq!(plain["counts"], paired["counts"]);
}

#[test]
fn too_few_pairs_give_null_and_the_count_needed() {
    let home = home();
    let flags = ["--observer-effect", "--output-format=json"];
    let record = record(&output(lm_bench(home.path()).args(SMALL).args(flags)), 0);
    for name in FIGURES {
        let figure = &record["observer_effect"][name];
        assert_eq!(
            (&figure["overhead_pct"], &figure["interval"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(figure["needs"], 16, "two windows of 8 steps");
    }
    let table = stdout(&output(
        lm_bench(home.path()).args(SMALL).arg("--observer-effect"),
    ));
    assert!(
        table.contains("observer effect") && table.contains("--collect live"),
        "{table}"
    );
    let plain = output(lm_bench(home.path()).args(SMALL).arg("--output-format=json"));
    assert_eq!(crate::program::record(&plain, 0)["observer_effect"], Value::Null);
}

#[test]
fn a_limit_that_is_kept_leaves_the_result_valid() {
    let home = home();
    let flags = ["--max-overhead=100000%", "--output-format=json"];
    let record = record(&output(lm_bench(home.path()).args(PAIRED).args(flags)), 0);
    assert_eq!(record["observer_effect"]["max_overhead_pct"], 100_000.0);
    assert_eq!(record["plan"]["max_overhead"], "100000%");
}

#[test]
fn a_limit_that_cannot_be_checked_is_refused() {
    let home = home();
    let of = |flags: &[&str]| refusal(lm_bench(home.path()).args(SMALL).args(flags));
    assert!(of(&["--max-overhead=1%"]).contains("--observer-effect"));
    let few = of(&["--observer-effect", "--max-overhead=1%", "--record=r.lmrec"]);
    assert!(few.contains("--num-iters 16"), "{few}");
    assert!(!home.path().join("r.lmrec").exists());
    let output = output(
        lm_bench(home.path())
            .args(SMALL)
            .args(["--observer-effect", "--max-overhead=1"]),
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("per cent sign"), "{}", stderr(&output));
}

#[test]
fn the_plan_file_asks_for_it_too() {
    let home = home();
    let plan = "model = \"tiny-llama\"\nseq_len = 8\noutput_len = 2\nnum_iters = 6\nsample_every = 1\n\
                observer_effect = true\nmax_overhead = \"1e9%\"\n";
    std::fs::write(home.path().join("plan.toml"), plan).expect("a plan");
    let flags = ["run", "--plan=plan.toml", "--output-format=json"];
    let record = record(&output(lm_bench(home.path()).args(flags)), 0);
    assert_eq!(record["observer_effect"]["max_overhead_pct"], 1e9);
    assert!(record["observer_effect"]["prefill_latency"]["overhead_pct"].is_number());
}
