//! `plugin bench`: which doors are measured, with what, and what is refused. Times depend on the machine, so no test
//! expects one.

use std::path::Path;

use serde_json::Value;

use crate::native::compiled;
use crate::program::{BUILT_IN, home, lm_bench, output, refusal, stderr, stdout};

/// The measurement of a plugin; a busy machine may make it invalid, which is told by the exit code, too.
#[track_caller]
fn measured(home: &Path, args: &[&str]) -> Value {
    let quick = ["plugin", "bench", "--rounds=6", "--output-format=json"];
    let output = output(lm_bench(home).args(quick).args(args));
    let result: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    let expected = if result["valid"] == true { 0 } else { 4 };
    assert_eq!(output.status.code(), Some(expected), "{result}");
    assert_eq!(
        result["valid"] == true,
        result["reasons"] == Value::Array(Vec::new()),
        "{result}"
    );
    result
}

fn doors(result: &Value) -> Vec<&str> {
    let doors = result["doors"].as_array().expect("doors").iter();
    doors.map(|door| door["door"].as_str().expect("a name")).collect()
}

#[test]
fn every_built_in_collector_takes_the_seeded_stream() {
    let home = home();
    for id in BUILT_IN {
        let result = measured(home.path(), &[id, "--rows=50"]);
        assert_eq!(doors(&result), ["built-in"]);
        let kinds = result["kinds"].as_array().expect("kinds").len() as u64;
        assert!(kinds > 0);
        assert_eq!(result["rows"].as_u64(), Some(50 * kinds));
        assert_eq!(
            result["doors"][0]["faults"],
            Value::Array(Vec::new()),
            "{id}: {result}"
        );
        for figure in ["row_ns", "start_ns", "checkpoint_ns"] {
            let estimate = &result["doors"][0][figure];
            let of = |end: &str| estimate[end].as_f64().expect("a number");
            assert!(
                of("low") <= of("median") && of("median") <= of("high"),
                "{estimate}"
            );
            assert!(of("low") > 0.0, "{id} {figure}: {estimate}");
        }
    }
}

#[test]
fn a_native_plugin_is_measured_in_and_out_of_the_process() {
    let home = home();
    compiled(home.path(), &[]);
    let plugin = "./written_in_c.so";
    let both = measured(home.path(), &[plugin, "--allow-native", "--rows=50"]);
    assert_eq!(doors(&both), ["dylib-in-process", "dylib"]);
    assert!(both["process_ratio"]["median"].as_f64().expect("a number") > 0.0);
    assert!(both["doors"][0]["ratio"].is_null() && both["doors"][1]["ratio"].is_object());
    let one = measured(
        home.path(),
        &[plugin, "--allow-native", "--door=dylib", "--rows=50"],
    );
    assert_eq!(
        (doors(&one), &one["process_ratio"]),
        (vec!["dylib"], &Value::Null)
    );
}

#[test]
fn a_folder_stands_for_the_plugin_in_it() {
    let home = home();
    compiled(home.path(), &[]);
    let result = measured(home.path(), &[".", "--allow-native", "--rows=50"]);
    assert_eq!(result["id"], "written-in-c");
    let absent = refusal(lm_bench(home.path()).args(["plugin", "bench", "cache"]));
    assert!(absent.contains("there is no plugin cache"), "{absent}");
    std::fs::create_dir(home.path().join("empty")).expect("a writable folder");
    let empty = refusal(lm_bench(home.path()).args(["plugin", "bench", "./empty"]));
    assert!(empty.contains("holds no plugin file"), "{empty}");
}

#[test]
fn a_recording_is_fed_where_one_is_given() {
    let home = home();
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/museum/1.0.0/token-census.lmrec");
    let recording = recording.to_string_lossy().into_owned();
    let seeded = measured(home.path(), &["latency"]);
    let recorded = measured(home.path(), &["latency", "--recording", &recording]);
    assert_ne!(seeded["rows"], recorded["rows"]);
    assert!(recorded["rows"].as_u64().expect("a number") > 0);
    let absent =
        refusal(lm_bench(home.path()).args(["plugin", "bench", "latency", "--recording=absent.lmrec"]));
    assert!(absent.contains("absent.lmrec"), "{absent}");
}

#[test]
fn what_may_not_run_is_not_measured() {
    let home = home();
    compiled(home.path(), &[]);
    let line = refusal(lm_bench(home.path()).args(["plugin", "bench", "./written_in_c.so"]));
    assert!(line.contains("--allow-native"), "{line}");
    let door = refusal(lm_bench(home.path()).args(["plugin", "bench", "latency", "--door=wasm"]));
    assert!(door.contains("none of the doors"), "{door}");
    let few = refusal(lm_bench(home.path()).args(["plugin", "bench", "latency", "--rounds=5"]));
    assert!(few.contains("5 is not in 6.."), "{few}");
}

#[test]
fn the_table_says_what_was_measured_and_on_what() {
    let home = home();
    let text = stdout(&output(lm_bench(home.path()).args([
        "plugin",
        "bench",
        "latency",
        "--rounds=6",
        "--rows=50",
    ])));
    for part in [
        "latency 1.0.0 on ",
        "200 rows of request, token, step, op per pass, 6 rounds",
        "ns per row",
        "ratio: to built-in",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
}
