//! Paths that lead to no ordinary file: nothing hangs, nothing is taken for what it is not, and a full disk costs no
//! result.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::program::{SMALL, home, lm_bench, output, record, refusal, stderr, stdout};

fn fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("mkfifo runs");
    assert!(made.success());
}

/// The refusal of a small run with one more flag.
fn refused(home: &Path, flag: &str, value: &str) -> String {
    refusal(lm_bench(home).args(SMALL).args(["--allow-native", flag, value]))
}

#[test]
fn pipes_devices_and_folders_are_no_files() {
    let home = home();
    for name in ["p.gguf", "p.wasm", "p.so", "p.lmrec"] {
        fifo(&home.path().join(name));
    }
    fs::create_dir(home.path().join("d.wasm")).expect("a writable folder");
    let run = |model: &str| refusal(lm_bench(home.path()).args(["run", "--model", model]));
    for model in ["./p.gguf", "/dev/zero", "/dev/null"] {
        assert!(run(model).contains(model), "{model}");
    }
    for plugin in ["./p.wasm", "./p.so", "./d.wasm", "/dev/zero"] {
        assert!(
            refused(home.path(), "--plugin", plugin).contains("not a regular file"),
            "{plugin}"
        );
    }
    for recording in ["./p.lmrec", "/dev/zero", "."] {
        let line = refusal(lm_bench(home.path()).args(["replay", recording]));
        assert!(line.contains("not a regular file"), "{recording}: {line}");
    }
    assert!(refused(home.path(), "--plan", "/dev/zero").contains("1 MiB"));
    assert!(refused(home.path(), "--plan", ".").contains("cannot read the plan"));
    assert!(refused(home.path(), "--save-result", "/dev/zero").contains("no regular file"));
}

#[test]
fn links_to_plugins_are_named_as_such() {
    let home = home();
    symlink("absent.wasm", home.path().join("dangling.wasm")).expect("a writable folder");
    symlink("loop.wasm", home.path().join("loop.wasm")).expect("a writable folder");
    for plugin in ["./dangling.wasm", "./loop.wasm"] {
        assert!(
            refused(home.path(), "--plugin", plugin).contains("symbolic link"),
            "{plugin}"
        );
    }
}

#[test]
fn libraries_that_are_no_plugins() {
    let home = home();
    let program = fs::read(env!("CARGO_BIN_EXE_lm-bench")).expect("the program");
    fs::write(home.path().join("head.so"), &program[..4096]).expect("a writable folder");
    assert!(refused(home.path(), "--plugin", "./head.so").contains("damaged"));
    // A whole library, and no plugin.
    let source = "int answer(void) { return 42; }";
    fs::write(home.path().join("m.c"), source).expect("a writable folder");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o", "m.so", "m.c"])
        .current_dir(home.path())
        .status()
        .expect("a C compiler");
    assert!(built.success());
    assert!(refused(home.path(), "--plugin", "./m.so").contains("no manifest"));
}

#[test]
fn paths_that_are_not_utf_8_are_refused_under_the_name_of_their_flag() {
    let home = home();
    let name = OsStr::from_bytes(b"bad\xff.lmrec");
    for flag in ["--record", "--save-result", "--plugin-dir"] {
        let line = refusal(lm_bench(home.path()).args(SMALL).arg(flag).arg(name));
        assert!(line.contains(flag) && line.contains("UTF-8"), "{line}");
    }
    assert!(
        fs::read_dir(home.path()).expect("the folder").next().is_none(),
        "nothing was written"
    );
}

#[test]
fn a_full_disk_is_a_failure_of_the_run() {
    let home = home();
    let full = fs::File::create("/dev/full").expect("Linux");
    let ended = lm_bench(home.path())
        .args(SMALL)
        .stdout(full)
        .output()
        .expect("starts");
    assert_eq!(ended.status.code(), Some(2), "{}", stderr(&ended));
    assert!(stderr(&ended).contains("stdout"), "{}", stderr(&ended));
}

#[test]
fn what_cannot_be_saved_is_still_shown() {
    let home = home();
    // Bash counts in KiB: the record does not fit, the table and what is checked before the run do.
    let program = env!("CARGO_BIN_EXE_lm-bench");
    let line = format!(
        "ulimit -f 4; trap '' XFSZ; exec {program} {} \"$@\"",
        SMALL.join(" ")
    );
    for (flag, file) in [("--save-result", "r.json"), ("--record", "r.lmrec")] {
        let ended = output(
            Command::new("bash")
                .args(["-c", &line, "-", flag, file])
                .current_dir(home.path())
                .env("HOME", home.path()),
        );
        assert_eq!(ended.status.code(), Some(2), "{}", stderr(&ended));
        assert!(stderr(&ended).contains(file), "{}", stderr(&ended));
        assert!(
            stdout(&ended).contains("prefill_latency_ms"),
            "{}",
            stdout(&ended)
        );
        assert!(!home.path().join(file).exists(), "no half of a file is left");
    }
}

#[test]
fn without_a_usable_home_the_program_runs() {
    let home = home();
    for folder in ["/dev/null", "/proc/none", "relative", ""] {
        let ended = output(
            lm_bench(home.path())
                .args(SMALL)
                .env("HOME", folder)
                .env_remove("XDG_CACHE_HOME")
                .env_remove("XDG_DATA_HOME"),
        );
        assert_eq!(ended.status.code(), Some(0), "{folder}: {}", stderr(&ended));
    }
}

#[test]
fn limits_of_a_replay_are_checked_like_those_of_a_run() {
    let home = home();
    record(
        &output(
            lm_bench(home.path())
                .args(SMALL)
                .args(["--record=r.lmrec", "--output-format=json"]),
        ),
        0,
    );
    let line = refusal(lm_bench(home.path()).args(["replay", "r.lmrec", "--plugin-limit=max_rows=0"]));
    assert!(
        line.contains("max_rows") && line.contains("1 to 1048576"),
        "{line}"
    );
}
