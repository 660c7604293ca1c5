//! Runs in which time decides nothing: fuel ends calls, and the bits of numbers are those of every machine.

use lm_bench::events::SymbolTable;
use lm_bench::plugin::build_plugin::BuildDoor;
use lm_bench::plugin::{CollectorOutcome, Limits, PluginError, Policy};
use lm_bench_plugin::Value;
use serde_json::json;

use crate::support::{built, deterministic, policy, request, run, tokens};
use crate::written::{BODY, CALLS, MANIFEST, SUBSCRIBE, component, core};

/// Of the kind `token`, whose columns it does not read.
const SUBSCRIBE_TOKENS: &str = r#"
  (data (i32.const 700) "token")
  (data (i32.const 1200) "\bc\02\00\00\05\00\00\00")
  (func (export "C#subscribe") (param i32 i32 i32 i32) (result i32)
    (i32.store (i32.const 1104) (i32.const 1200)) (i32.store (i32.const 1108) (i32.const 1))
    (i32.store (i32.const 1112) (i32.const 64))
    (i32.const 1100))
"#;

/// A batch takes a million turns of a loop per place in the sequence; after each the counter `rows` is the bits of
/// 0.0 / 0.0, which the processor computes.
const LOOP: &str = r#"
  (data (i32.const 800) "rows")
  (data (i32.const 2000) "\20\03\00\00\04\00\00\00")
  (global $zero (mut f64) (f64.const 0))
  (func (export "C#on-batch") (param i32) (param $turns i64) (param i32 f64 i64 i32 i32) (result i32)
    (local.set $turns (i64.mul (local.get $turns) (i64.const 1000000)))
    (block $done (loop $again
      (br_if $done (i64.eqz (local.get $turns)))
      (local.set $turns (i64.sub (local.get $turns) (i64.const 1)))
      (br $again)))
    (i64.store (i32.const 2024) (i64.reinterpret_f64 (f64.div (global.get $zero) (global.get $zero))))
    (i32.store (i32.const 1028) (i32.const 2000)) (i32.store (i32.const 1032) (i32.const 1))
    (i32.const 1024))
  (func (export "C#lost-after") (param i32 i64) (result i32) (i32.const 1024))
  (func (export "C#checkpoint") (result i32) (i32.const 1024))
"#;

/// Runs a hand-written component over six deliveries of three rows.
fn written(parts: &[&str], policy: &Policy) -> CollectorOutcome {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("written.wasm");
    let bytes = component(core(parts), "metric-collector", Some(MANIFEST));
    std::fs::write(&path, bytes).expect("a written file");
    let requests = request(&path.to_string_lossy(), "written", &json!({}));
    let outcomes = run(&requests, policy, &tokens(6, 3), &SymbolTable::new()).expect("loaded");
    outcomes.into_iter().next().expect("one collector")
}

/// Ten million units of fuel for a batch.
fn fuelled() -> Policy {
    Policy {
        limits: Limits {
            batch_ms: 100,
            fuel_per_ms: 100_000,
            ..Limits::default()
        },
        ..deterministic()
    }
}

#[test]
fn a_loop_is_ended_by_fuel_at_the_same_row_each_time() {
    let outcome = || written(&[BODY, SUBSCRIBE_TOKENS, LOOP], &fuelled());
    let (first, second) = (outcome(), outcome());
    assert_eq!(
        first.faults,
        [
            "used up its 10000000 units of fuel, which stand for the time limit of 100 ms in a deterministic run"
        ]
    );
    // The turns of a million fit into the fuel of a batch, those of two million do not: two batches of three rows.
    assert_eq!(first.rows, 6);
    assert!(first.partial);
    // The NaN of WebAssembly's own, not the processor's: x86 sets the sign too.
    assert_eq!(first.metrics[0].value, Value::Counter(0x7ff8 << 48));
    let of = |outcome: CollectorOutcome| (outcome.faults, outcome.rows, outcome.metrics, outcome.fuel);
    let fuel = first.fuel.expect("counted");
    assert!((15_000_000..20_000_000).contains(&fuel), "{fuel}");
    assert_eq!(of(first), of(second));
}

#[test]
fn compiled_code_of_the_two_modes_is_kept_apart() {
    let parts = [BODY, SUBSCRIBE_TOKENS, LOOP];
    // All share one folder of compiled components.
    let by_time = [written(&parts, &policy()), written(&parts, &policy())];
    let by_fuel = [written(&parts, &fuelled()), written(&parts, &fuelled())];
    for outcome in by_time {
        assert_eq!(
            (outcome.faults, outcome.rows, outcome.fuel),
            (Vec::new(), 18, None)
        );
    }
    for outcome in by_fuel {
        assert_eq!((outcome.faults.len(), outcome.rows), (1, 6));
    }
}

#[test]
fn an_endless_start_function_is_ended_by_the_fuel_of_a_call() {
    let start = "(func $start (loop $l (br $l))) (start $start)";
    let mut policy = fuelled();
    policy.limits.call_ms = 50;
    let outcome = written(&[BODY, SUBSCRIBE, CALLS, start], &policy);
    let text =
        "used up its 5000000 units of fuel, which stand for the time limit of 50 ms in a deterministic run";
    assert_eq!((outcome.faults, outcome.rows), (vec![text.to_owned()], 0));
}

#[test]
fn native_libraries_are_refused() {
    let path = built("hostile", BuildDoor::Dylib);
    let requests = request(&path.to_string_lossy(), "hostile", &json!({}));
    let error = run(&requests, &deterministic(), &[], &SymbolTable::new()).expect_err("refused");
    assert!(matches!(error, PluginError::NotDeterministic(_)), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("hostile.so") && text.contains("use its WASM build"),
        "{text}"
    );
}

#[test]
fn the_log_does_not_depend_on_time() {
    let mut policy = deterministic();
    policy.limits.log_lines_per_second = 3;
    let hostile = built("hostile", BuildDoor::Wasm);
    let flood = || {
        let outcome =
            crate::support::hostile(&hostile.to_string_lossy(), &json!({"mode": "log-flood"}), &policy);
        let outcome = outcome.expect("loaded");
        (outcome.log.len(), outcome.log_refused, outcome.fuel)
    };
    let (kept, refused, fuel) = flood();
    assert_eq!(kept, 3);
    assert!(refused > 0 && fuel.is_some());
    assert_eq!(flood(), (kept, refused, fuel));
}
