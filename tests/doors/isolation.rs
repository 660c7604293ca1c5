//! Native plugins in processes of their own: what is told of what native code does there. That it touches nothing else is what
//! `tests/evil` is about.

use lm_bench::events::SymbolTable;
use lm_bench::plugin::{CollectorOutcome, Limits, Policy};
use serde_json::json;

use crate::entries::compiled;
use crate::support::{policy, request, run, tokens};

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
