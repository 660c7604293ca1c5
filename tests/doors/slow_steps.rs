//! The collector that `plugin new` starts with, in each language, on the same events.

use std::path::{Path, PathBuf};

use lm_bench::events::{Delivery, SymbolTable};
use lm_bench::plugin::build_plugin::{BuildDoor, BuildRequest, build};
use lm_bench::plugin::contract::{self, ContractRequest};
use lm_bench::plugin::new_plugin::{Language, NewRequest, new_plugin};
use lm_bench::plugin::{PluginError, Policy};
use lm_bench_plugin::Metric;
use lm_bench_plugin::kinds::step;
use serde_json::{Value, json};

use crate::support::{delivery, request, run, target_dir};

/// Id of the projects, and name of their folders.
pub(crate) const ID: &str = "slow-steps";
/// Id of the same collector in Rust where it is linked into the test: the name of the package that the test belongs to.
pub(crate) const BUILTIN: &str = env!("CARGO_PKG_NAME");

/// Creates a project as an author does.
pub(crate) fn created(parent: &Path, language: Language) -> PathBuf {
    let request = NewRequest {
        folder: parent.join(ID),
        language,
        sdk: None,
    };
    new_plugin(&request).unwrap_or_else(|error| panic!("{language:?}: {error}"))
}

/// Builds a project; what cargo made of a crate is kept for the next run of the tests.
pub(crate) fn built(project: &Path, door: BuildDoor) -> String {
    let request = BuildRequest {
        dir: project.to_owned(),
        door,
        out: project.join("out"),
        target_dir: project.join("Cargo.toml").exists().then(target_dir),
        program: Some(env!("CARGO_BIN_EXE_lm-bench").into()),
    };
    let built = build(&request).unwrap_or_else(|error| panic!("{}: {error}", project.display()));
    assert_eq!(built.manifest.id, ID);
    built.path.to_string_lossy().into_owned()
}

/// Steps of all phases that there are and of one that there is not; batches of more and of fewer rows than interpreted
/// collectors ask for. With `losses` some rows are told to be lost.
fn steps(losses: bool) -> Vec<Delivery> {
    let block = |seq: u64| {
        let row = |at: u64| step::Row {
            step: at,
            phase: [0, 1, 1, 2, 3, 9][(at % 6) as usize],
            // 1 ns to about 2 s, most of them some milliseconds.
            host_ns: 1
                + (at * seq * 7_919 + at * at * 104_729) % [20_000_000, 2_000_000_000][(at % 7 / 6) as usize],
            ..step::Row::default()
        };
        let rows: Vec<step::Row<'_>> = (0..1 + seq * 97).map(row).collect();
        delivery(&rows, seq, if losses { seq % 3 } else { 0 })
    };
    (0..10).map(block).collect()
}

/// The metrics that a plugin reports of [`steps`].
pub(crate) fn metrics(target: &str, id: &str, policy: &Policy, losses: bool) -> Vec<Metric> {
    let requests = request(target, id, &json!({"slow_ms": 12.5}));
    let outcomes = run(&requests, policy, &steps(losses), &SymbolTable::new());
    let outcome = outcomes
        .unwrap_or_else(|error| panic!("{target}: {error}"))
        .remove(0);
    assert_eq!(outcome.faults, Vec::<String>::new(), "{target}");
    // 1 + 98 + … of ten blocks.
    assert_eq!(outcome.rows, 10 + 97 * 45, "{target}");
    outcome.metrics
}

/// Why a plugin refuses a configuration.
pub(crate) fn refusal(target: &str, id: &str, policy: &Policy, config: &Value) -> String {
    match run(&request(target, id, config), policy, &[], &SymbolTable::new()) {
        Err(PluginError::Config { message, .. }) => message,
        other => panic!("{target} with {config}: {other:?}"),
    }
}

/// Checks that a plugin refuses what is wrong in a configuration, and says what.
pub(crate) fn assert_refusals(target: &str, id: &str, policy: &Policy) {
    let cases = [
        (json!({"slow": 1}), "unknown field `slow`"),
        (json!({"slow_ms": 0}), "slow_ms must be above 0"),
        (json!({"slow_ms": "12"}), ""),
    ];
    for (config, reason) in cases {
        let message = refusal(target, id, policy, &config);
        assert!(message.contains(reason), "{target}: {message:?} lacks {reason:?}");
    }
}

/// Checks that a plugin passes `plugin check` as it was created.
pub(crate) fn assert_keeps_the_contract(target: &str, policy: &Policy) {
    let request = ContractRequest {
        requests: request(target, ID, &json!({})),
        ..ContractRequest::default()
    };
    let reports = contract::check(&request, policy).unwrap_or_else(|error| panic!("{target}: {error}"));
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].failed(), 0, "{target}: {:#?}", reports[0].checks);
}
