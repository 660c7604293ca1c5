//! The collectors that `plugin new` starts with in Rust and in C, to the bit.

use std::path::Path;
use std::process::Command;

use lm_bench::plugin::build_plugin::BuildDoor;
use lm_bench::plugin::new_plugin::Language;
use lm_bench_plugin::{Metric, Value};

use crate::slow_steps::{BUILTIN, ID, assert_keeps_the_contract, assert_refusals, built, created, metrics};
use crate::support::{in_process, policy};

fn json(metrics: &[Metric]) -> String {
    serde_json::to_string_pretty(metrics).expect("metrics are JSON")
}

fn expected(losses: bool) -> String {
    json(&metrics(BUILTIN, BUILTIN, &policy(), losses))
}

fn assert_equal(target: &str) {
    for policy in [policy(), in_process()] {
        for losses in [false, true] {
            assert_eq!(
                json(&metrics(target, ID, &policy, losses)),
                expected(losses),
                "{target}"
            );
        }
        assert_refusals(target, ID, &policy);
        assert_keeps_the_contract(target, &policy);
    }
}

#[test]
fn the_example_reports_what_the_events_say() {
    let metrics = metrics(BUILTIN, BUILTIN, &policy(), false);
    // Slow steps, steps and exp(fsum(map(log, ms)) / steps) of the same rows in Python.
    let expected = [
        ("prefill", 334, 734, 11.168111675859832),
        ("decode", 675, 1_462, 12.978253299438789),
        ("mixed", 343, 728, 14.168264025597212),
        ("load", 330, 726, 13.790264858235451),
        ("unknown", 311, 725, 14.00868099689593),
    ];
    assert_eq!(metrics.len(), 3 * expected.len());
    for (phase, slow, steps, mean) in expected {
        let of = |name: &str| {
            let wanted = |metric: &&Metric| metric.name == name && metric.labels[0].1 == phase;
            metrics.iter().find(wanted).expect("reported").clone()
        };
        let near = |metric: &Metric, value: f64| match metric.value {
            Value::Gauge(found) => (found - value).abs() <= 1e-12 * value,
            _ => false,
        };
        assert_eq!(of("slow_steps").value, Value::Counter(slow), "{phase}");
        let ratio = of("slow_step_ratio");
        assert!(near(&ratio, slow as f64 / steps as f64), "{ratio:?}");
        let geomean = of("step_time_geomean_ms");
        assert!(near(&geomean, mean) && geomean.samples == steps, "{geomean:?}");
    }
    assert_refusals(BUILTIN, BUILTIN, &policy());
}

#[test]
fn a_new_crate_gives_the_same_through_the_other_doors() {
    // At the same place each time, so that cargo finds what it has made of it.
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-crate");
    if parent.exists() {
        std::fs::remove_dir_all(&parent).expect("removed");
    }
    std::fs::create_dir_all(&parent).expect("a folder");
    let project = created(&parent, Language::Rust);
    // The versions that this repository builds with: nothing is fetched, and nothing compiled that need not be.
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
    std::fs::copy(lock, project.join("Cargo.lock")).expect("a copied file");
    for door in [BuildDoor::Dylib, BuildDoor::Wasm] {
        assert_equal(&built(&project, door));
    }
}

#[test]
fn a_new_project_in_c_gives_the_same() {
    let parent = tempfile::tempdir().expect("a temporary folder");
    let project = created(parent.path(), Language::C);
    assert_equal(&built(&project, BuildDoor::Dylib));
    let own_tests = Command::new("make")
        .arg("-s")
        .current_dir(&project)
        .output()
        .expect("make");
    assert!(
        own_tests.status.success(),
        "{}",
        String::from_utf8_lossy(&own_tests.stderr)
    );
    assert_eq!(String::from_utf8_lossy(&own_tests.stdout), "3 tests passed\n");
}

#[test]
fn the_same_source_is_cpp_too() {
    let parent = tempfile::tempdir().expect("a temporary folder");
    let project = created(parent.path(), Language::C);
    let rename =
        |from: &str, to: &str| std::fs::rename(project.join(from), project.join(to)).expect("renamed");
    rename("src/collector.c", "src/collector.cpp");
    let path = project.join("plugin.toml");
    let text = std::fs::read_to_string(&path).expect("a project");
    std::fs::write(&path, text.replace("collector.c\"", "collector.cpp\"")).expect("a written file");
    assert_equal(&built(&project, BuildDoor::Dylib));
}
