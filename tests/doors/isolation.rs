//! Native plugins in processes of their own: what native code does there ends that plugin and touches nothing else.

use lm_bench::events::SymbolTable;
use lm_bench::plugin::{CollectorOutcome, Limits, Policy};
use lm_bench_plugin::Value;
use serde_json::json;

use crate::entries::compiled;
use crate::support::{limited, policy, request, run, tokens};

/// The misbehaving plugin's outcome, and the metrics of a good one beside it as JSON.
fn beside_a_good_one(defines: &[&str], policy: &Policy) -> (CollectorOutcome, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let library = compiled(folder.path(), defines);
    let mut requests = request(&library.to_string_lossy(), "written-in-c", &json!({}));
    requests.plugins.push("probe-collector".to_owned());
    let outcomes = run(&requests, policy, &tokens(4, 5), &SymbolTable::new()).expect("loaded");
    let [bad, good] = <[CollectorOutcome; 2]>::try_from(outcomes).expect("two collectors");
    assert_eq!(good.faults, Vec::<String>::new());
    (
        bad,
        serde_json::to_string(&good.metrics).expect("metrics are JSON"),
    )
}

/// Limits that a busy machine does not reach by itself.
fn short() -> Policy {
    limited(|limits| (limits.batch_ms, limits.call_ms) = (1_000, 10_000))
}

#[test]
fn what_ends_the_process_ends_the_plugin_alone() {
    let (proper, expected) = beside_a_good_one(&[], &policy());
    assert_eq!(proper.faults, Vec::<String>::new());
    assert!(proper.isolated);
    let cases = [
        ("segfault", "SIGSEGV"),
        ("abort", "SIGABRT"),
        ("divide", "SIGFPE"),
        ("recurse", "stack overflow"),
        ("leave", "it ended its process with exit status 3"),
        ("leave_at_once", "it ended its process with exit status 0"),
        ("leak", "SIGABRT"),
        ("write_a_file", "tried to write a file"),
        (
            "spin",
            "took longer than the time limit of 1000 ms and was interrupted",
        ),
        (
            "stop",
            "took longer than the time limit of 1000 ms and was interrupted",
        ),
        ("fork_a_child", "SIGABRT"),
        ("close_everything", "its process"),
        ("close_everything_and_spin", "closed the connection"),
        ("share", "bytes of memory where"),
        ("write_to_everything", "its process sent what cannot be read"),
    ];
    for (misdeed, text) in cases {
        let (bad, good) = beside_a_good_one(&[&format!("MISDEED={misdeed}")], &short());
        assert_eq!(bad.faults.len(), 1, "{misdeed}: {:?}", bad.faults);
        assert!(bad.faults[0].contains(text), "{misdeed}: {:?}", bad.faults);
        // The first batch was good and a checkpoint followed: indices 0 to 4.
        assert!(bad.partial, "{misdeed}");
        assert_eq!(bad.metrics[0].value, Value::Counter(10), "{misdeed}");
        assert_eq!(good, expected, "{misdeed}");
    }
}

#[test]
fn what_concerns_its_own_process_only_is_no_fault() {
    for misdeed in [
        "leave_a_thread",
        "install_handlers",
        "change_the_process",
        "print",
    ] {
        let (plugin, _) = beside_a_good_one(&[&format!("MISDEED={misdeed}")], &policy());
        assert_eq!(plugin.faults, Vec::<String>::new(), "{misdeed}");
        // Indices 0 to 19, and 1000 for each of the three rows that were lost after them.
        assert_eq!(plugin.metrics[0].value, Value::Counter(190 + 3_000), "{misdeed}");
    }
}

#[test]
fn what_a_plugin_prints_goes_to_its_log_within_limits() {
    let (plugin, _) = beside_a_good_one(&["MISDEED=print"], &policy());
    assert!(!plugin.log.is_empty() && plugin.log.len() <= Limits::default().log_lines_per_second as usize);
    for line in &plugin.log {
        assert!(line.text.starts_with("printed: "), "{line:?}");
    }
    let bytes: usize = plugin.log.iter().map(|line| line.text.len()).sum();
    assert!(bytes <= Limits::default().log_bytes, "{bytes}");
}

#[test]
fn memory_that_a_native_plugin_takes_is_told() {
    let peak = |defines: &[&str]| {
        let (plugin, _) = beside_a_good_one(defines, &policy());
        plugin.peak_memory.expect("known of a process")
    };
    const MIB: u64 = 1 << 20;
    let ten = peak(&["MISDEED=take_ten"]);
    assert!((10 * MIB..14 * MIB).contains(&ten), "{ten}");
    let idle = peak(&[]);
    assert!(idle < 4 * MIB, "{idle}");
}

#[test]
fn a_program_that_is_not_this_one_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let library = compiled(folder.path(), &[]);
    let requests = request(&library.to_string_lossy(), "written-in-c", &json!({}));
    for (program, text) in [
        ("/bin/true", "exit status 0"),
        ("/no/such/program", "no process can be started"),
    ] {
        let policy = Policy {
            program: Some(program.into()),
            ..policy()
        };
        let error = run(&requests, &policy, &[], &SymbolTable::new()).expect_err("refused");
        assert!(error.to_string().contains(text), "{program}: {error}");
    }
}
