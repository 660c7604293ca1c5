//! Native plugins and the commands that make and show plugins, as a user types them.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::program::{SMALL, home, lm_bench, output, record, refusal, stderr, stdout};

/// The flag that names the library that [`compiled`] makes.
pub(crate) const PLUGIN: &str = "--plugin=./written_in_c.so";

/// Compiles the collector in C into a home, with some of its macros defined.
pub(crate) fn compiled(home: &Path, defines: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/doors/entry.c");
    let status = Command::new("cc")
        .args(["-std=c11", "-O1", "-shared", "-fPIC", "-D_GNU_SOURCE", "-pthread"])
        .args(defines.iter().map(|define| format!("-D{define}")))
        .args(["-o", "written_in_c.so"])
        .arg(source)
        .current_dir(home)
        .status()
        .expect("the C compiler that links Rust programs");
    assert!(status.success());
}

/// The account of the plugin of that id.
fn plugin<'a>(record: &'a Value, id: &str) -> &'a Value {
    let mut plugins = record["plugins"].as_array().expect("plugins").iter();
    plugins.find(|plugin| plugin["id"] == id).expect("it ran")
}

#[test]
fn a_native_plugin_runs_apart_or_in_the_process_as_the_flags_say() {
    let home = home();
    compiled(home.path(), &[]);
    let line = refusal(lm_bench(home.path()).args(SMALL).arg(PLUGIN));
    assert!(line.contains("--allow-native"), "{line}");
    let warning = "is native code and --in-process loads it into this process";
    for (flags, isolated) in [
        (&["--allow-native"][..], true),
        (&["--allow-native", "--in-process"], false),
    ] {
        let mut command = lm_bench(home.path());
        let args = [PLUGIN, "--output-format=json"];
        let output = output(command.args(SMALL).args(args).args(flags));
        assert_eq!(
            stderr(&output).contains(warning),
            !isolated,
            "{}",
            stderr(&output)
        );
        let record = record(&output, 0);
        let of = plugin(&record, "written-in-c");
        assert_eq!(
            (&of["door"], &of["isolated"]),
            (&"dylib".into(), &isolated.into())
        );
        assert_eq!(plugin(&record, "throughput")["isolated"], Value::Null);
        let metrics = record["metrics"].as_array().expect("metrics");
        let sum = metrics.iter().find(|metric| metric["name"] == "index_sum");
        // Indices 0 to 3 in each of two iterations.
        assert_eq!(sum.expect("reported")["value"], 12);
    }
}

#[test]
fn inspect_shows_a_file_without_executing_it() {
    let home = home();
    // Its functions would be refused, were they asked for.
    compiled(home.path(), &["NO_INTERFACE"]);
    let output = output(lm_bench(home.path()).args(["plugin", "inspect", "./written_in_c.so"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    for word in ["written-in-c", "1.0.0", "dylib", "index_sum", "sum(token.index)"] {
        assert!(text.contains(word), "{word} is not in:\n{text}");
    }
}

#[test]
fn a_collector_is_built_inspected_and_run() {
    let home = home();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/plugins/probe-collector");
    // Where all tests keep what cargo makes of plugins.
    let target = std::env::var_os("LM_BENCH_TEST_TARGET").unwrap_or_else(|| {
        let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
        tmp.with_file_name("plugins").into_os_string()
    });
    for (door, file, permission) in [
        ("wasm", "probe_collector.wasm", &[][..]),
        ("dylib", "probe_collector.so", &["--allow-native"]),
    ] {
        let mut command = lm_bench(home.path());
        let build = ["plugin", "build", "--door", door, "--out", "out", "--target-dir"];
        // cargo's own folder is the one of the user who builds.
        for name in ["HOME", "XDG_CACHE_HOME"] {
            match std::env::var_os(name) {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let built = output(command.args(build).arg(&target).arg(&source));
        assert_eq!(built.status.code(), Some(0), "{}", stderr(&built));
        let path = format!("out/{file}");
        assert!(home.path().join(&path).is_file(), "{door}");
        let told = stdout(&built);
        assert!(told.contains(file) && told.contains("sha256"), "{told}");

        let inspected = output(lm_bench(home.path()).args(["plugin", "inspect", &path, "--json"]));
        let inspection: Value = serde_json::from_slice(&inspected.stdout).expect("JSON");
        assert_eq!(inspection["manifest"]["id"], "probe-collector");
        let sha256 = inspection["sha256"].as_str().expect("a digest");
        assert!(told.contains(sha256), "{told}");

        let mut run = lm_bench(home.path());
        run.args(SMALL).args(["--output-format=json", "--plugin", &path]);
        let record = record(&output(run.args(permission)), 0);
        let of = plugin(&record, "probe-collector");
        assert_eq!((&of["door"], &of["sha256"]), (&door.into(), &sha256.into()));
        assert!(of["rows"].as_u64().expect("a count") > 0, "{of}");
    }
}
