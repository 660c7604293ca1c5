//! Plugins that trap, panic, overrun or report what they may not: quarantined, named, and never the end of the run.

use lm_bench::plugin::{CollectorOutcome, Limits, Policy};
use lm_bench_plugin::Value;
use serde_json::{Value as Json, json};

use crate::support::{hostile, in_process, limited, policy, three_doors};

const BUILTIN: usize = 0;
const DYLIB: usize = 1;
const WASM: usize = 2;
const IN_PROCESS: usize = 3;

/// The hostile plugin as a door has it.
fn at(door: usize) -> String {
    let [builtin, dylib, wasm] = three_doors("hostile");
    match door {
        BUILTIN => builtin,
        WASM => wasm,
        _ => dylib,
    }
}

fn at_door(door: usize, config: &Json) -> CollectorOutcome {
    let policy = if door == IN_PROCESS {
        in_process()
    } else {
        policy()
    };
    hostile(&at(door), config, &policy).unwrap_or_else(|error| panic!("{config}: {error}"))
}

fn fault(outcome: &CollectorOutcome) -> &str {
    assert_eq!(outcome.faults.len(), 1, "{:?}", outcome.faults);
    &outcome.faults[0]
}

/// Each declared metric is there, with the reason where it has no value.
fn assert_all_unavailable(outcome: &CollectorOutcome, reason: &str) {
    let names: Vec<&str> = outcome
        .metrics
        .iter()
        .map(|metric| metric.name.as_str())
        .collect();
    assert_eq!(names, ["batches", "mean_index", "rows"]);
    for metric in &outcome.metrics {
        let Value::Unavailable(text) = &metric.value else {
            panic!("{metric:?}")
        };
        assert!(text.contains(reason), "{text} does not tell {reason}");
    }
    assert!(!outcome.partial);
}

#[test]
fn a_panic_in_any_call_is_told_with_its_text() {
    for door in [BUILTIN, DYLIB, IN_PROCESS, WASM] {
        for at in ["subscribe", "open", "batch"] {
            let outcome = at_door(door, &json!({"mode": "panic", "at": at}));
            assert!(
                fault(&outcome).contains("told to panic"),
                "door {door} at {at}: {:?}",
                outcome.faults
            );
            assert_all_unavailable(&outcome, "told to panic");
            assert_eq!(outcome.rows, 0, "door {door} at {at}");
        }
    }
}

#[test]
fn what_was_good_before_a_panic_is_kept_as_partial() {
    for door in [BUILTIN, DYLIB, IN_PROCESS, WASM] {
        for (mode, text) in [
            ("panic", "told to panic"),
            ("data-fault", "told to find the data wrong"),
        ] {
            // Seven good batches; checkpoints came after batches 1, 3 and 7.
            let outcome = at_door(door, &json!({"mode": mode, "at": "batch", "after": 7}));
            assert!(
                fault(&outcome).contains(text),
                "door {door}: {:?}",
                outcome.faults
            );
            assert!(outcome.partial);
            assert_eq!(outcome.rows, 49, "door {door}");
            let rows = outcome
                .metrics
                .iter()
                .find(|metric| metric.name == "rows")
                .expect("kept");
            assert_eq!(rows.value, Value::Counter(49), "door {door}");
        }
    }
}

#[test]
fn a_failure_in_checkpoint_or_finish_keeps_the_last_good_checkpoint() {
    for door in [BUILTIN, DYLIB, IN_PROCESS, WASM] {
        let at_once = at_door(door, &json!({"mode": "panic", "at": "checkpoint"}));
        assert_all_unavailable(&at_once, "told to panic");
        assert_eq!(
            at_once.rows, 7,
            "nothing is delivered after the failed checkpoint"
        );
        let late = at_door(door, &json!({"mode": "panic", "at": "checkpoint", "after": 3}));
        assert!(late.partial);
        assert_eq!(late.rows, 21, "door {door}");
        let last = at_door(door, &json!({"mode": "panic", "at": "finish"}));
        assert!(
            last.partial && fault(&last).contains("told to panic"),
            "door {door}: {:?}",
            last.faults
        );
        assert_eq!(last.rows, 70);
    }
}

#[test]
fn an_endless_loop_is_interrupted_wherever_it_is() {
    // Long enough to start a process on a busy machine.
    let policy = limited(|limits| (limits.batch_ms, limits.call_ms) = (500, 2_000));
    let [_, dylib, wasm] = three_doors("hostile");
    for (target, at, limit) in [&dylib, &wasm].into_iter().flat_map(|target| {
        [
            (target, "subscribe", 2_000),
            (target, "open", 2_000),
            (target, "batch", 500),
            (target, "checkpoint", 2_000),
            (target, "finish", 2_000),
        ]
    }) {
        let outcome = hostile(target, &json!({"mode": "loop", "at": at}), &policy).expect("loaded");
        let expected = format!("took longer than the time limit of {limit} ms and was interrupted");
        assert_eq!(fault(&outcome), expected, "{at}");
    }
}

#[test]
fn a_late_native_plugin_is_stopped_after_the_call() {
    let policy = Policy {
        in_process: true,
        ..limited(|limits| limits.batch_ms = 100)
    };
    let library = &three_doors("hostile")[DYLIB];
    let outcome = hostile(library, &json!({"mode": "sleep", "after": 3}), &policy).expect("loaded");
    let text = fault(&outcome);
    assert!(
        text.contains("where 100 ms are allowed") && text.contains("cannot be interrupted"),
        "{text}"
    );
    assert!(outcome.partial);
    // A built-in collector is part of this program and is not held against the clock.
    assert_eq!(
        at_door(BUILTIN, &json!({"mode": "sleep", "after": 9})).faults,
        Vec::<String>::new()
    );
}

#[test]
fn memory_of_a_component_is_limited_and_told() {
    let [_, _, wasm] = three_doors("hostile");
    // Touching so much memory takes its time on a busy machine.
    let policy = limited(|limits| limits.batch_ms = 60_000);
    let outcome = hostile(&wasm, &json!({"mode": "alloc", "after": 1}), &policy).expect("loaded");
    let text = fault(&outcome);
    assert!(
        text.starts_with("asked for ") && text.ends_with("bytes of memory where 67108864 are allowed"),
        "{text}"
    );
    let peak = outcome.peak_memory.expect("a component's memory is known");
    assert!(
        peak <= Limits::default().memory_bytes as u64 && peak > 1 << 20,
        "{peak}"
    );
    assert!(outcome.partial);
}

#[test]
fn the_stack_of_a_component_is_limited() {
    let outcome = at_door(WASM, &json!({"mode": "recurse"}));
    assert!(fault(&outcome).contains("recurs"), "{:?}", outcome.faults);
}

#[test]
fn an_index_out_of_bounds_is_a_panic_with_its_place() {
    for door in [BUILTIN, DYLIB, IN_PROCESS, WASM] {
        let outcome = at_door(door, &json!({"mode": "out-of-bounds"}));
        assert!(
            fault(&outcome).contains("the len is 1 but the index is 7"),
            "door {door}: {:?}",
            outcome.faults
        );
    }
}

#[test]
fn long_texts_are_cut_to_one_line() {
    for door in [BUILTIN, DYLIB, IN_PROCESS, WASM] {
        let panic = at_door(door, &json!({"mode": "long-panic"}));
        let text = fault(&panic);
        assert!(
            text.len() < 1_100 && !text.contains('\n'),
            "door {door}: {} bytes",
            text.len()
        );
        let reason = at_door(door, &json!({"mode": "long-reason", "at": "finish"}));
        assert_eq!(reason.faults, Vec::<String>::new(), "door {door}");
        let texts = reason.metrics.iter().filter_map(|metric| match &metric.value {
            Value::Unavailable(text) => Some(text.len()),
            _ => None,
        });
        assert!(
            texts.clone().count() == 1 && texts.max() < Some(1_100),
            "door {door}"
        );
    }
}

#[test]
fn reports_that_break_the_declaration_are_refused() {
    let cases = [
        ("undeclared", "\"undeclared\": it is not declared"),
        ("bad-name", "\"Bad Name!\": a name is"),
        ("nan", "finite values"),
        ("descending", "values ascend"),
        ("huge-distribution", ""),
        ("many-metrics", "more than 4096 metrics"),
        ("long-label", "label of"),
        ("many-labels", "labels"),
        ("duplicate", "\"rows\" twice"),
        ("wrong-kind", "its value is no counter"),
    ];
    for door in [BUILTIN, DYLIB, IN_PROCESS, WASM] {
        for (mode, text) in cases {
            // The first two checkpoints are good.
            let outcome = at_door(door, &json!({"mode": mode, "at": "checkpoint", "after": 4}));
            assert!(
                fault(&outcome).contains(text),
                "door {door}, {mode}: {:?}",
                outcome.faults
            );
            assert!(fault(&outcome).len() < 1_100, "door {door}, {mode}");
            assert!(outcome.partial, "door {door}, {mode}");
            let rows = outcome
                .metrics
                .iter()
                .find(|metric| metric.name == "rows")
                .expect("kept");
            assert_eq!(rows.value, Value::Counter(21), "door {door}, {mode}");
        }
    }
}

#[test]
fn a_log_flood_is_limited_and_counted() {
    for door in [BUILTIN, DYLIB, IN_PROCESS, WASM] {
        let policy = limited(|limits| {
            limits.log_bytes = 2_500;
            limits.batch_ms = 60_000;
        });
        let config = json!({"mode": "log-flood", "at": "batch"});
        let outcome = hostile(&at(door), &config, &policy).expect("loaded");
        assert_eq!(outcome.faults, Vec::<String>::new(), "door {door}");
        let bytes: usize = outcome.log.iter().map(|line| line.text.len()).sum();
        // "a line that nobody needs" has 24 bytes: 104 lines fit into 2,500 bytes.
        assert_eq!((outcome.log.len(), bytes), (104, 2_496), "door {door}");
        assert_eq!(outcome.log_refused, 1_000_000 - 104, "door {door}");
    }
}

#[test]
fn subscriptions_that_break_the_contract_are_quarantined() {
    let cases = [
        ("same-kind-twice", "\"token\" is wanted twice"),
        ("no-rows", "max_rows is 0"),
        ("every-zeroth", "each 0 rows"),
    ];
    for door in [BUILTIN, DYLIB, IN_PROCESS, WASM] {
        for (mode, text) in cases {
            let outcome = at_door(door, &json!({"mode": mode, "at": "finish"}));
            assert!(
                fault(&outcome).contains(text),
                "door {door}, {mode}: {:?}",
                outcome.faults
            );
            assert_all_unavailable(&outcome, text);
        }
    }
}

#[test]
fn what_this_version_does_not_have_is_refused_before_the_run() {
    let have = "has t_ns, request, index, chunk, tokens_in_chunk";
    for target in three_doors("hostile") {
        let error = |config: &Json| {
            hostile(&target, config, &policy())
                .expect_err("refused")
                .to_string()
        };
        let column = error(&json!({"mode": "unknown-column", "at": "finish"}));
        assert!(
            column.starts_with("plugin hostile 1.0.0 needs column colour of kind token; this lm-bench ("),
            "{column}"
        );
        assert!(column.contains(have), "{column}");
        let kind = error(&json!({"mode": "unknown-kind", "at": "finish"}));
        assert!(kind.contains("needs events of kind colour"), "{kind}");
        let vendor = hostile(
            &target,
            &json!({"mode": "vendor-kind", "at": "finish"}),
            &policy(),
        )
        .expect("loaded");
        assert_eq!(vendor.absent_kinds, ["vendor.acme.colour"]);
        assert_eq!((vendor.faults.len(), vendor.rows), (0, 70));
    }
}

#[test]
fn configuration_that_does_not_suit_is_the_users_to_change() {
    for target in three_doors("hostile") {
        let error = |config: &Json| {
            hostile(&target, config, &policy())
                .expect_err("refused")
                .to_string()
        };
        let typo = error(&json!({"moed": "none"}));
        assert!(
            typo.starts_with("plugin hostile 1.0.0: configuration: unknown field `moed`"),
            "{typo}"
        );
        for at in ["subscribe", "open"] {
            let refused = error(&json!({"mode": "config-fault", "at": at}));
            assert_eq!(refused, "plugin hostile 1.0.0: told to dislike the configuration");
        }
    }
}

#[test]
fn batches_are_cut_to_the_rows_asked_for() {
    for door in [BUILTIN, DYLIB, IN_PROCESS, WASM] {
        let outcome = at_door(door, &json!({"mode": "three-rows", "at": "finish"}));
        assert_eq!(outcome.rows, 70);
        let batches = outcome
            .metrics
            .iter()
            .find(|metric| metric.name == "batches")
            .expect("reported");
        // Seven rows make batches of 3, 3 and 1; the count of lost rows (5, and 3 at the end) is told once each.
        assert_eq!(batches.value, Value::Distribution(vec![(30.0, 9)]), "door {door}");
    }
}
