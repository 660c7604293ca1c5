//! Native plugins in C: the contract without any Rust on the other side, and entries that are not what they should be.

use std::path::{Path, PathBuf};
use std::process::Command;

use lm_bench::events::SymbolTable;
use lm_bench::plugin::{CollectorOutcome, LibraryError, PluginError, Policy};
use lm_bench_plugin::Value;
use serde_json::json;

use crate::support::{in_process, policy, request, run, tokens};

/// Compiles `entry.c` with some of its macros defined.
pub(crate) fn compiled(folder: &Path, defines: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/doors/entry.c");
    let library = folder.join("written_in_c.so");
    let defines = defines.iter().map(|define| format!("-D{define}"));
    let status = Command::new("cc")
        .args([
            "-std=c11",
            "-O1",
            "-shared",
            "-fPIC",
            "-fvisibility=default",
            "-D_GNU_SOURCE",
            "-pthread",
            "-o",
        ])
        .arg(&library)
        .args(defines)
        .arg(source)
        .status()
        .expect("the C compiler that links Rust programs");
    assert!(status.success());
    library
}

fn load(defines: &[&str], policy: &Policy) -> Result<CollectorOutcome, PluginError> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let library = compiled(folder.path(), defines);
    let requests = request(&library.to_string_lossy(), "written-in-c", &json!({}));
    let outcomes = run(&requests, policy, &tokens(2, 7), &SymbolTable::new())?;
    Ok(outcomes.into_iter().next().expect("one collector"))
}

/// Why a library is refused: the same, whether it is loaded here or in a process of its own.
fn refused(defines: &[&str]) -> LibraryError {
    let [here, apart] = [in_process(), policy()].map(|policy| match load(defines, &policy) {
        Err(PluginError::Library { error, .. }) => error,
        other => panic!("{defines:?}: {other:?}"),
    });
    assert_eq!(here.to_string(), apart.to_string(), "{defines:?}");
    here
}

#[test]
fn a_collector_in_c_runs() {
    for policy in [in_process(), policy()] {
        let outcome = load(&[], &policy).expect("loaded");
        assert_eq!(outcome.faults, Vec::<String>::new());
        // Indices 0 to 13, and 1000 for each of the three rows that were lost after them.
        assert_eq!(outcome.metrics[0].value, Value::Counter(91 + 3_000));
        assert_eq!((outcome.rows, outcome.manifest.version.as_str()), (14, "1.0.0"));
        assert_eq!(outcome.isolated, !policy.in_process);
    }
}

#[test]
fn a_fault_without_a_reason_is_a_broken_contract() {
    for policy in [in_process(), policy()] {
        let outcome = load(&["SILENT_FAULT"], &policy).expect("loaded");
        assert_eq!(outcome.faults, ["a call returned status 1 without a reason"]);
    }
}

#[test]
fn an_entry_that_is_not_as_agreed_is_never_called() {
    assert!(matches!(refused(&["NO_ENTRY"]), LibraryError::NoEntry));
    let cases = [
        ("MAGIC=\"LMBPLUG2\"", "magic bytes"),
        ("ENTRY_SIZE=16", "smaller than version 1"),
        ("OTHER_MANIFEST", "differs from the one in the file"),
        ("NO_INTERFACE", "does not offer lmb.collector/1"),
        ("TABLE_SIZE=8", "table of functions is smaller"),
    ];
    for (define, text) in cases {
        let error = refused(&[define]);
        assert!(
            matches!(&error, LibraryError::Entry(why) if why.contains(text)),
            "{define}: {error}"
        );
    }
}
