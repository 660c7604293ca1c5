//! Bad input: one clear line and exit code 1, never a panic.

use std::fs;
use std::path::Path;

use crate::program::{SMALL, home, lm_bench, refusal};

/// Runs with more flags; gives the line of the refusal.
fn refused(home: &Path, flags: &[&str]) -> String {
    refusal(lm_bench(home).args(SMALL).args(flags))
}

#[track_caller]
fn names(line: &str, words: &[&str]) {
    for word in words {
        assert!(line.contains(word), "{word:?} is not in: {line}");
    }
}

#[test]
fn sizes_of_zero() {
    let home = home();
    for flag in [
        "--batch-size",
        "--seq-len",
        "--output-len",
        "--num-iters",
        "--sample-every",
        "--threads",
    ] {
        let key = flag.trim_start_matches('-').replace('-', "_");
        let line = refusal(lm_bench(home.path()).args(["run", flag, "0"]));
        names(&line, &[&key, "at least 1"]);
    }
}

#[test]
fn limits_that_cannot_be_kept() {
    let home = home();
    let recording = home.path().join("absent.lmrec");
    for (limit, allowed) in [
        ("wasm_stack_bytes=0", "16384 to 2097152"),
        ("wasm_stack_bytes=1000000000", "16384 to 2097152"),
        ("memory_bytes=5000000000", "65536 to 4294967296"),
        ("max_rows=0", "1 to 1048576"),
        ("batch_bytes=0", "1 to 1073741824"),
    ] {
        let key = limit.split('=').next().expect("a key");
        // Neither the model nor the recording is looked at.
        let line = refusal(lm_bench(home.path()).args(["run", "--model", "absent", "--plugin-limit", limit]));
        names(&line, &[key, allowed]);
        let mut replay = lm_bench(home.path());
        replay
            .arg("replay")
            .arg(&recording)
            .args(["--plugin-limit", limit]);
        names(&refusal(&mut replay), &[key, allowed]);
    }
}

#[test]
fn unknown_model_device_and_quantisation() {
    let home = home();
    let run = |flags: &[&str]| refusal(lm_bench(home.path()).arg("run").args(flags));
    names(&run(&["--model", "gpt-17"]), &["gpt-17", "tiny-moe"]);
    names(&run(&["--device", "tpu"]), &["tpu", "cpu"]);
    names(&run(&["--quantize", "awq"]), &["awq", "fp8"]);
}

#[test]
fn a_sequence_beyond_the_context_and_more_memory_than_there_is() {
    let home = home();
    let line = refusal(lm_bench(home.path()).args(["run", "--seq-len", "10000000"]));
    names(&line, &["context"]);
    // 4 billion sequences: caches of exabytes, on whatever machine.
    let line = refusal(lm_bench(home.path()).args(["run", "--batch-size", &u32::MAX.to_string()]));
    names(&line, &["memory", "needed", "available"]);
}

/// A whole GGUF file of a very small model.
fn small_gguf() -> Vec<u8> {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/seeds");
    fs::read(seeds.join("gguf/llama.gguf")).expect("the seed")
}

#[test]
fn model_files_that_are_missing_or_cut() {
    let home = home();
    let flags = [
        "run",
        "--model=./model.gguf",
        "--seq-len=4",
        "--output-len=2",
        "--prompt-source=random",
    ];
    let run = || refusal(lm_bench(home.path()).args(flags));
    names(&run(), &["./model.gguf", "tiny-moe"]);
    let whole = small_gguf();
    let write = |bytes: &[u8]| fs::write(home.path().join("model.gguf"), bytes).expect("a writable folder");
    for cut in [4, 23, 100, 500, whole.len() - 1] {
        write(&whole[..cut]);
        let word = if cut == whole.len() - 1 {
            "truncated"
        } else {
            "cut off"
        };
        names(&run(), &["./model.gguf", word]);
    }
    // Whole, and yet not all of a model.
    write(&whole);
    names(&run(), &["no tensor", "blk.0."]);
}

#[test]
fn model_files_that_are_not_what_they_say() {
    let home = home();
    let file = home.path().join("model.gguf");
    let lying = [
        b"GGUF".as_slice(),
        &3_u32.to_le_bytes(),
        &u64::MAX.to_le_bytes(),
        &u64::MAX.to_le_bytes(),
    ]
    .concat();
    let big_endian = [b"GGUF".as_slice(), &3_u32.to_be_bytes(), &[0; 16]].concat();
    let cases: [(&[u8], &str); 4] = [
        (b"", "model.gguf"),
        (b"GGUF\x03\0\0", "model.gguf"),
        (&lying, "model.gguf"),
        (&big_endian, "endian"),
    ];
    for (bytes, word) in cases {
        fs::write(&file, bytes).expect("a writable folder");
        names(
            &refusal(lm_bench(home.path()).args(["run", "--model", "./model.gguf"])),
            &[word],
        );
    }
}

/// A config.json of a small Llama, with some keys replaced.
fn config(heads: u32, kv_heads: u32) -> String {
    format!(
        r#"{{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 1, "num_attention_heads": {heads}, "num_key_value_heads": {kv_heads}, "vocab_size": 32,
        "max_position_embeddings": 64, "rms_norm_eps": 1e-5}}"#
    )
}

#[test]
fn model_folders_that_are_not_what_they_say() {
    let home = home();
    let folder = home.path().join("model");
    fs::create_dir(&folder).expect("a writable folder");
    let run = || refusal(lm_bench(home.path()).args(["run", "--model", "./model"]));
    names(&run(), &["config.json"]);
    fs::write(folder.join("config.json"), config(4, 3)).expect("a writable folder");
    names(&run(), &["heads"]);
    fs::write(folder.join("config.json"), config(4, 2)).expect("a writable folder");
    names(&run(), &["safetensors"]);
    let header_longer_than_file = u64::MAX.to_le_bytes();
    fs::write(folder.join("model.safetensors"), header_longer_than_file).expect("a writable folder");
    names(&run(), &["model.safetensors"]);
    let header = br#"{"model.norm.weight":{"dtype":"I64","shape":[2],"data_offsets":[0,16]}}"#;
    let wrong_type = [&(header.len() as u64).to_le_bytes(), header.as_slice(), &[0; 16]].concat();
    fs::write(folder.join("model.safetensors"), wrong_type).expect("a writable folder");
    names(&run(), &["model.norm.weight", "I64", "F32"]);
    fs::remove_file(folder.join("model.safetensors")).expect("the file");
    let index = r#"{"weight_map": {"lm_head.weight": "model-00001-of-00002.safetensors"}}"#;
    fs::write(folder.join("model.safetensors.index.json"), index).expect("a writable folder");
    names(&run(), &["model-00001-of-00002.safetensors"]);
}

#[test]
fn plans_with_mistakes() {
    let home = home();
    let plan = home.path().join("plan.toml");
    let run = |text: &str| {
        fs::write(&plan, text).expect("a writable folder");
        refusal(lm_bench(home.path()).args(["run", "--plan", "plan.toml"]))
    };
    names(&run("batchsize = 1"), &["batchsize"]);
    names(&run("batch_size = -1"), &["batch_size"]);
    names(&run("batch_size ="), &["plan.toml", "line 1"]);
    names(&run("seq_len = 8\nseq_len = 9"), &["plan.toml", "line 2"]);
    for value in [
        "0",
        "1.5",
        "nan",
        "inf",
        "true",
        "[1]",
        "\"1\"",
        "4294967296",
        "9223372036854775807",
    ] {
        names(&run(&format!("batch_size = {value}")), &["batch_size"]);
    }
    for value in ["[]", "[0]", "[100]", "[nan]", "[-1]", "50", "[\"x\"]"] {
        names(&run(&format!("metric_percentiles = {value}")), &["percentile"]);
    }
    names(
        &run("plugin_limits = { max_rows = 0 }"),
        &["max_rows", "1 to 1048576"],
    );
    names(&run("plugin_limits = { max_row = 1 }"), &["max_row"]);
    names(&run("plugin_config = { nobody = { a = 1 } }"), &["nobody"]);
    names(&run("[plugin_config]\nlatency = 1"), &["plugin_config"]);
    names(
        &refusal(lm_bench(home.path()).args(["run", "--plan", "absent.toml"])),
        &["absent.toml"],
    );
}

#[test]
fn plugins_that_cannot_be_used() {
    let home = home();
    let file = |name: &str, bytes: &[u8]| {
        fs::write(home.path().join(name), bytes).expect("a writable folder");
        format!("./{name}")
    };
    let plugin = |path: &str| refused(home.path(), &["--allow-native", "--plugin", path]);
    names(&plugin("no-such-plugin"), &["no-such-plugin"]);
    names(&plugin("./absent.wasm"), &["absent.wasm"]);
    names(&plugin(&file("text.so", b"not an object file")), &["text.so"]);
    names(&plugin(&file("empty.wasm", b"")), &["empty.wasm"]);
    names(
        &plugin(&file("core.wasm", b"\0asm\x01\0\0\0")),
        &["core.wasm", "component"],
    );
    names(&plugin(&file("cut.wasm", b"\0asm\x0d\0\x01\0")), &["cut.wasm"]);
    names(
        &refused(home.path(), &["--plugin-config", "fp8-error.no-such-key=1"]),
        &["fp8-error", "no-such-key"],
    );
    names(
        &refused(home.path(), &["--plugin-config", "nobody.key=1"]),
        &["nobody"],
    );
}

#[test]
fn files_that_cannot_be_written() {
    let home = home();
    for flag in ["--record", "--save-result"] {
        let line = refused(home.path(), &[flag, "/no/such/folder/file.lmrec"]);
        names(&line, &["/no/such/folder"]);
    }
    names(&refused(home.path(), &["--record", "events.tar"]), &["lmrec"]);
}

#[test]
fn wrong_flags_end_with_1_and_help_with_0() {
    let home = home();
    let code = |flags: &[&str]| {
        lm_bench(home.path())
            .args(flags)
            .output()
            .expect("starts")
            .status
            .code()
    };
    assert_eq!(code(&["run", "--no-such-flag"]), Some(1));
    for value in [
        "",
        "four",
        "-1",
        "1.5",
        "NaN",
        "0x10",
        "4294967296",
        "18446744073709551615",
    ] {
        assert_eq!(
            code(&["run", &format!("--batch-size={value}")]),
            Some(1),
            "{value}"
        );
    }
    assert_eq!(code(&["run", "--seed=18446744073709551616"]), Some(1));
    assert_eq!(code(&["run", "--metric-percentiles=100"]), Some(1));
    assert_eq!(code(&["walk"]), Some(1));
    assert_eq!(code(&[]), Some(1));
    assert_eq!(code(&["--help"]), Some(0));
    assert_eq!(code(&["run", "--help"]), Some(0));
    assert_eq!(code(&["--version"]), Some(0));
}

#[test]
fn values_that_no_plan_can_hold_are_refused_under_the_name_of_their_flag() {
    let home = home();
    for (flag, value) in [
        ("--seed", "9223372036854775808"),
        ("--plugin-config", "fp8-error.window=null"),
        ("--plugin-config", "fp8-error.window=18446744073709551615"),
        ("--plugin-limit", "max_rows=-1"),
    ] {
        let output = lm_bench(home.path())
            .args(SMALL)
            .args([flag, value])
            .output()
            .expect("starts");
        let text = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(1), "{text}");
        let line = text.lines().next().expect("a refusal");
        names(line, &[flag, value]);
    }
}

#[test]
fn names_with_control_characters_neither_break_the_line_nor_reach_the_terminal() {
    let home = home();
    let line = refusal(lm_bench(home.path()).args(["run", "--model", "a\nb\u{1b}[31m"]));
    names(&line, &[r"a\nb\u{1b}[31m"]);
}
