//! The collectors that `plugin new` starts with in JavaScript and in Python, and the components of C: created, built,
//! tested and run, and compared with the one in Rust. Their tools come from npm, PyPI and the system's packages.
//!
//! `tests/all.sh` fetches the tools and sets the variables that say so. Without them these tests count as ignored.
#![expect(
    clippy::print_stderr,
    reason = "this file brings its own test harness, which captures nothing"
)]

mod c;
#[path = "../../host/src/plugin/new_plugin/templates/rust/src/lib.rs"]
#[expect(
    unreachable_pub,
    unused_imports,
    dead_code,
    reason = "it is the root of a crate elsewhere, and this harness does not run its tests"
)]
mod rust_template;
#[path = "../doors/slow_steps.rs"]
mod slow_steps;
#[path = "../doors/support.rs"]
#[expect(dead_code, reason = "the tests of the doors use the rest of it")]
mod support;

use std::path::Path;
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};
use lm_bench::plugin::build_plugin::BuildDoor;
use lm_bench::plugin::new_plugin::Language;
use lm_bench_plugin::{Metric, Value};

use slow_steps::{BUILTIN, ID, assert_keeps_the_contract, assert_refusals, built, created, metrics};
use support::policy;

/// Whether two reports are the same but for the last digits of their numbers.
fn agree(found: &[Metric], expected: &[Metric]) -> bool {
    let near = |found: &Metric, expected: &Metric| match (&found.value, &expected.value) {
        (Value::Gauge(found), Value::Gauge(expected)) => (found - expected).abs() <= 1e-12 * expected.abs(),
        (found, expected) => found == expected,
    };
    let same = |(found, expected): (&Metric, &Metric)| {
        let names = (&found.name, &found.labels) == (&expected.name, &expected.labels);
        names && found.samples == expected.samples && near(found, expected)
    };
    found.len() == expected.len() && found.iter().zip(expected).all(same)
}

/// Creates, builds and runs a project, then runs its own tests.
fn agrees(language: Language, own_tests: &[&str]) -> Result<(), Failed> {
    let parent = tempfile::tempdir()?;
    let project = created(parent.path(), language);
    let plugin = built(&project, BuildDoor::Wasm);
    for losses in [false, true] {
        let found = metrics(&plugin, ID, &policy(), losses);
        let expected = metrics(BUILTIN, BUILTIN, &policy(), losses);
        if !agree(&found, &expected) {
            return Err(format!("found {found:#?}\nexpected {expected:#?}").into());
        }
    }
    assert_refusals(&plugin, ID, &policy());
    assert_keeps_the_contract(&plugin, &policy());
    pass(&project, own_tests)
}

fn pass(project: &Path, own_tests: &[&str]) -> Result<(), Failed> {
    let output = Command::new(own_tests[0])
        .args(&own_tests[1..])
        .current_dir(project)
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    Err(format!("{own_tests:?} failed:\n{stdout}\n{stderr}").into())
}

/// Says that clang is there.
const CLANG: &str = "LM_BENCH_TEST_CLANG";

fn trial(
    name: &'static str,
    variable: &'static str,
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let ignored = std::env::var_os(variable).is_none();
    if ignored {
        eprintln!("SKIPPED {name}: {variable} is not set; run tests/all.sh");
    }
    Trial::test(name, test).with_ignored_flag(ignored)
}

fn main() {
    let trials = vec![
        trial("c_component_agrees_with_rust", CLANG, c::example_agrees),
        trial("c_component_agrees_with_library", CLANG, c::every_part_agrees),
        trial("c_misdeeds_are_told_alike", CLANG, c::misdeeds_are_told_alike),
        trial("javascript_agrees_with_rust", "LM_BENCH_TEST_JS", || {
            agrees(Language::Js, &["npm", "test"])
        }),
        trial("python_agrees_with_rust", "LM_BENCH_TEST_PYTHON", || {
            agrees(
                Language::Python,
                &["python3", "-m", "unittest", "discover", "tests"],
            )
        }),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
