//! Ctrl-C: what was measured so far is reported.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::program::{home, lm_bench};

#[test]
fn an_interrupted_run_reports_what_it_has() {
    let home = home();
    let flags = [
        "run",
        "--model=tiny-llama",
        "--num-iters=1000000",
        "--output-format=json",
    ];
    let mut child = lm_bench(home.path())
        .args(flags)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut told = BufReader::new(child.stderr.take().expect("stderr"));
    let mut line = String::new();
    while !line.contains("measuring") {
        line.clear();
        assert_ne!(
            told.read_line(&mut line).expect("readable"),
            0,
            "ended before measuring"
        );
    }
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .expect("kill runs")
            .success()
    );
    let mut result = String::new();
    child
        .stdout
        .take()
        .expect("stdout")
        .read_to_string(&mut result)
        .expect("readable");
    assert_eq!(child.wait().expect("ends").code(), Some(130));
    let record: Value = serde_json::from_str(&result).expect("a record");
    assert_eq!(record["verdict"]["valid"], false);
    assert!(
        record["verdict"]["reasons"].to_string().contains("interrupted"),
        "{}",
        record["verdict"]
    );
}
