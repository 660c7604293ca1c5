//! Runs the program.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// A run that ends in well under a second.
pub(crate) const SMALL: &[&str] = &[
    "run",
    "--model=tiny-llama",
    "--seq-len=8",
    "--output-len=4",
    "--num-iters=2",
    "--warmup-iters=1",
];

/// The program, away from the user's own folders.
pub(crate) fn lm_bench(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lm-bench"));
    command
        .current_dir(home)
        .env("HOME", home)
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env("XDG_DATA_HOME", home.join("data"))
        .env("XDG_CONFIG_HOME", home.join("config"))
        .env_remove("LM_BENCH_PLUGIN_PATH");
    command
}

/// A folder of its own for a test.
pub(crate) fn home() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

pub(crate) fn output(command: &mut Command) -> Output {
    command.output().expect("the program starts")
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8 on stdout")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8 on stderr")
}

/// The collectors that are built in, in the order of their ids.
pub(crate) const BUILT_IN: [&str; 7] = [
    "attention-efficiency",
    "fp8-error",
    "kv-cache",
    "latency",
    "memory",
    "moe-utilization",
    "throughput",
];

/// The record on stdout of a run that ended with `code`.
pub(crate) fn record(output: &Output, code: i32) -> Value {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).expect("stdout is one JSON document")
}

/// The line that explains why the program refused, after checks that hold for each refusal: exit code 1, nothing on
/// stdout, one line on stderr, no panic.
pub(crate) fn refusal(command: &mut Command) -> String {
    let output = output(command);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(output.stdout.is_empty(), "{}", stdout(&output));
    assert!(!text.contains("panicked"), "{text}");
    let errors: Vec<_> = text.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "{text}");
    assert_eq!(
        text.lines().last(),
        Some(errors[0]),
        "the refusal is one line: {text}"
    );
    errors[0].to_owned()
}
