//! Collectors in C as components: the same source as for a native library, the same metrics, and what goes wrong told
//! alike.

use std::path::Path;

use libtest_mimic::Failed;
use lm_bench::events::{Delivery, SymbolTable};
use lm_bench::plugin::build_plugin::{BuildDoor, BuildRequest, build};
use lm_bench::plugin::new_plugin::Language;
use lm_bench::plugin::{CollectorOutcome, Limits};
use lm_bench_plugin::Metric;
use lm_bench_plugin::kinds::{mark, moe_route};
use serde_json::json;

use crate::slow_steps::{BUILTIN, ID, assert_refusals, built, created, metrics};
use crate::support::{delivery, limited, policy, request, run, tokens};

fn text(metrics: &[Metric]) -> String {
    serde_json::to_string_pretty(metrics).expect("metrics are JSON")
}

fn same(found: &str, expected: &str) -> Result<(), Failed> {
    if found == expected {
        return Ok(());
    }
    Err(format!("found {found}\nexpected {expected}").into())
}

/// The example of `plugin new`, to the bit; as C++ too.
pub(crate) fn example_agrees() -> Result<(), Failed> {
    let parent = tempfile::tempdir()?;
    let project = created(parent.path(), Language::C);
    for extension in ["c", "cpp"] {
        let plugin = built(&project, BuildDoor::Wasm);
        for losses in [false, true] {
            let found = metrics(&plugin, ID, &policy(), losses);
            same(
                &text(&found),
                &text(&metrics(BUILTIN, BUILTIN, &policy(), losses)),
            )?;
        }
        assert_refusals(&plugin, ID, &policy());
        if extension == "c" {
            std::fs::rename(project.join("src/collector.c"), project.join("src/collector.cpp"))?;
            let path = project.join("plugin.toml");
            let description = std::fs::read_to_string(&path)?;
            std::fs::write(&path, description.replace("collector.c\"", "collector.cpp\""))?;
        }
    }
    Ok(())
}

/// Builds the collector that uses every part of the header.
fn every_part(folder: &Path, door: BuildDoor) -> Result<String, Failed> {
    let source = include_str!("every_part.c");
    std::fs::write(folder.join("every_part.c"), source)?;
    let mut description =
        "language = \"c\"\nsource = \"every_part.c\"\nid = \"every-part\"\nversion = \"1.0.0\"\n\
        about = \"every part\"\nlicense = \"MIT\"\n"
            .to_owned();
    let metrics = [
        ("rows", "counter"),
        ("lost", "counter"),
        ("symbols", "counter"),
        ("resolved", "counter"),
        ("texts", "counter"),
        ("sum", "gauge"),
        ("functions", "gauge"),
        ("ratio", "gauge"),
        ("values", "distribution"),
        ("nothing", "gauge"),
    ];
    for (name, kind) in metrics {
        let labels = if name == "rows" { "\"phase\", \"of\"" } else { "" };
        description += &format!(
            "[[metrics]]\nname = \"{name}\"\nkind = \"{kind}\"\nformula = \"f\"\nabout = \"a\"\nlabels = [{labels}]\n"
        );
    }
    std::fs::write(folder.join("plugin.toml"), description)?;
    let request = BuildRequest {
        dir: folder.to_owned(),
        door,
        out: folder.join("out"),
        target_dir: None,
        program: Some(env!("CARGO_BIN_EXE_lm-bench").into()),
    };
    Ok(build(&request)?.path.to_string_lossy().into_owned())
}

/// Events of the kinds that it subscribes to.
fn events(symbols: &SymbolTable) -> Vec<Delivery> {
    let names = ["first", "zweite Größe", ""].map(|name| symbols.intern(name));
    let mut deliveries = tokens(4, 7);
    for seq in 0..4_u64 {
        let marks: Vec<_> = (0..9 + seq)
            .map(|at| mark::Row {
                t_ns: at,
                name: names[(at % 3) as usize],
                value: (1 + at * 7 + seq) as f64 / 3.0,
            })
            .collect();
        deliveries.push(delivery(&marks, seq, seq));
        let counts = [seq as u32, 2, 3, 5];
        let sums = [0.25, 0.1, 0.3, 1.0 / 3.0];
        let routes: Vec<_> = (0..6)
            .map(|layer| moe_route::Row {
                step: seq,
                phase: 1,
                layer,
                experts: 4,
                counts: &counts,
                prob_sum: &sums,
                ..moe_route::Row::default()
            })
            .collect();
        deliveries.push(delivery(&routes, seq, 2));
    }
    deliveries
}

fn outcome(plugin: &str, misdeed: u32) -> Result<CollectorOutcome, Failed> {
    let symbols = SymbolTable::new();
    let deliveries = events(&symbols);
    let config = json!({"misdeed": misdeed, "scale": -1.25e-3, "strict": true});
    let policy = limited(|limits: &mut Limits| (limits.batch_ms, limits.call_ms) = (1_500, 10_000));
    let outcomes = run(
        &request(plugin, "every-part", &config),
        &policy,
        &deliveries,
        &symbols,
    )?;
    Ok(outcomes.into_iter().next().ok_or("one collector")?)
}

/// Each part of the header does the same through both doors.
pub(crate) fn every_part_agrees() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let library = outcome(&every_part(folder.path(), BuildDoor::Dylib)?, 0)?;
    let component = outcome(&every_part(folder.path(), BuildDoor::Wasm)?, 0)?;
    for outcome in [&library, &component] {
        if !outcome.faults.is_empty() || outcome.metrics.len() != 10 {
            return Err(format!("{:?} {:?}", outcome.faults, outcome.metrics).into());
        }
    }
    assert_eq!(library.rows, component.rows);
    let log = |outcome: &CollectorOutcome| -> Vec<String> {
        outcome.log.iter().map(|line| line.text.clone()).collect()
    };
    assert_eq!(log(&library), log(&component));
    same(&text(&component.metrics), &text(&library.metrics))
}

/// What a collector does wrong has the same words through both doors where both can know it.
pub(crate) fn misdeeds_are_told_alike() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let library = every_part(folder.path(), BuildDoor::Dylib)?;
    let component = every_part(folder.path(), BuildDoor::Wasm)?;
    // Its number, what is told, and what the component's fault says where it differs.
    let cases = [
        (1, "a call returned status 7 without a reason", ""),
        (2, "a call succeeded without an answer", ""),
        (3, "its subscription cannot be read: ", ""),
        (4, "open succeeded without an instance", ""),
        (5, "reported a metric that is smaller than version 1 has it", ""),
        (6, "reported a metric of unknown shape 9", ""),
        (7, "a\u{fffd}z\u{fffd}", ""),
        (
            8,
            "took longer than the time limit of 1500 ms and was interrupted",
            "",
        ),
        (9, "", "recurs"),
        (10, "SIGABRT", "bytes of memory where 67108864 are allowed"),
        (11, "SIGABRT", "it called abort()"),
        (12, "exit status 3", "it called exit(3)"),
        (13, "reported a metric that is smaller than version 1 has it", ""),
        (14, "told, and yet fine", ""),
    ];
    for (misdeed, expected, of_component) in cases {
        for plugin in [&library, &component] {
            let expected = if plugin == &component && !of_component.is_empty() {
                of_component
            } else {
                expected
            };
            let faults = outcome(plugin, misdeed)?.faults;
            if faults.len() != 1 || !faults[0].contains(expected) {
                return Err(format!("{plugin}, misdeed {misdeed}: {faults:?} lacks {expected:?}").into());
            }
        }
    }
    Ok(())
}
