//! Ctrl-C: what was measured so far is reported.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::native::{PLUGIN, compiled};
use crate::program::{home, lm_bench, output, stderr};

struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs a command of the program and interrupts it, once, when it says that it has come to `stage`.
fn interrupted_at(stage: &str, home: &Path, args: &[&str]) -> Ended {
    let mut child = lm_bench(home)
        .args(args)
        .arg("--output-format=json")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut told = BufReader::new(child.stderr.take().expect("stderr"));
    let mut line = String::new();
    while !line.contains(stage) {
        line.clear();
        assert_ne!(
            told.read_line(&mut line).expect("readable"),
            0,
            "ended before {stage}"
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
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child
        .stdout
        .take()
        .expect("stdout")
        .read_to_string(&mut stdout)
        .expect("readable");
    told.read_to_string(&mut stderr).expect("readable");
    Ended {
        code: child.wait().expect("ends").code(),
        stdout,
        stderr,
    }
}

fn partial_record(ended: &Ended) -> Value {
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    let record: Value = serde_json::from_str(&ended.stdout).expect("a record");
    assert_eq!(record["verdict"]["valid"], false);
    assert!(
        record["verdict"]["reasons"].to_string().contains("interrupted"),
        "{}",
        record["verdict"]
    );
    record
}

#[test]
fn an_interrupted_run_reports_what_it_has() {
    let home = home();
    let flags = ["run", "--model=tiny-llama", "--num-iters=1000000"];
    partial_record(&interrupted_at("measuring", home.path(), &flags));
}

#[test]
fn a_prefill_does_not_hold_an_interruption_up() {
    let home = home();
    let flags = [
        "run",
        "--model=tiny-llama",
        "--batch-size=16",
        "--seq-len=4000",
        "--output-len=1",
        "--num-iters=1",
        "--warmup-iters=0",
    ];
    // The run is one prefill: without an end inside it the result would be complete.
    let record = partial_record(&interrupted_at("measuring", home.path(), &flags));
    assert_eq!(record["counts"]["iterations"], 0);
}

#[test]
fn an_interrupted_replay_reports_what_the_collectors_had() {
    let home = home();
    compiled(home.path(), &["MISDEED=nap"]);
    // 4,160 token rows in two batches. The collector takes five at a time and 4 ms for them.
    let run = [
        "run",
        "--model=tiny-llama",
        "--batch-size=16",
        "--seq-len=8",
        "--output-len=65",
        "--num-iters=4",
        "--warmup-iters=0",
        "--no-default-plugins",
        "--record=r.lmrec",
    ];
    let recorded = output(lm_bench(home.path()).args(run));
    assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
    let replay = [
        "replay",
        "r.lmrec",
        "--no-default-plugins",
        PLUGIN,
        "--allow-native",
    ];
    let record = partial_record(&interrupted_at("replaying", home.path(), &replay));
    // The recorded run was complete.
    assert_eq!(record["counts"]["iterations"], 4);
    let plugin = &record["plugins"][0];
    assert_eq!(
        (&plugin["partial"], &plugin["faults"]),
        (&true.into(), &json!([]))
    );
    let rows = plugin["rows"].as_u64().expect("a count");
    assert!(rows < 4_160, "{rows}");
}

#[test]
fn loading_is_interrupted_without_a_result() {
    let home = home();
    let model = home.path().join("large");
    std::fs::create_dir(&model).expect("a folder");
    let config = r#"{"model_type":"llama","hidden_size":1024,"num_attention_heads":16,"num_hidden_layers":24,
        "intermediate_size":4096,"vocab_size":32000,"max_position_embeddings":64,"torch_dtype":"float32"}"#;
    std::fs::write(model.join("config.json"), config).expect("written");
    let flags = [
        "run",
        "--model=large",
        "--load-format=dummy",
        "--seq-len=8",
        "--output-len=2",
        "--quantize=fp8",
    ];
    let ended = interrupted_at("loading", home.path(), &flags);
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
    assert!(
        ended
            .stderr
            .contains("error: interrupted before anything was measured, so there is no result"),
        "{}",
        ended.stderr
    );
}
