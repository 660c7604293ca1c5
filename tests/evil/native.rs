//! Native plugins that do harm while their code runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::case::{Case, Expect, WRITTEN};
use crate::stage::scratch;

use Expect::{Harmless, Partial, Quarantined, Refused, Stated};

pub(crate) const ID: &str = "evil-native";
const FILE: &str = "evil_native.so";

/// Limits under which an endless loop ends soon, and which a busy machine does not reach by itself.
pub(crate) const SHORT: &[&str] = &["--plugin-limit=batch_ms=2000", "--plugin-limit=call_ms=3000"];
/// Limits that only what the case is about can reach.
pub(crate) const LONG: &[&str] = &["--plugin-limit=batch_ms=30000", "--plugin-limit=call_ms=60000"];

const LATE_CALL: &str = "took longer than the time limit of 3000 ms and was interrupted";
const LATE_BATCH: &str = "took longer than the time limit of 2000 ms and was interrupted";

/// Compiles `collector.c` with some of its macros defined.
pub(crate) fn compiled(folder: &Path, name: &str, defines: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let library = folder.join(format!("{name}.so"));
    let status = Command::new("cc")
        .args([
            "-std=c11",
            "-O1",
            "-shared",
            "-fPIC",
            "-D_GNU_SOURCE",
            "-pthread",
            "-w",
        ])
        .args(defines.iter().map(|define| format!("-D{define}")))
        .arg("-I")
        .arg(root.join("plugin-sdk/include"))
        .arg("-o")
        .arg(&library)
        .arg(root.join("tests/evil/collector.c"))
        .status()
        .expect("the C compiler that links Rust programs");
    assert!(status.success(), "{defines:?}");
    library
}

/// Puts the library that is evil by its configuration into a home.
fn placed(home: &Path) -> String {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| compiled(scratch(), "evil_native", &[]));
    fs::copy(library, home.join(FILE)).expect("a writable folder");
    FILE.to_owned()
}

/// A case of the library that is evil by its configuration.
pub(crate) fn configured(name: &str, at: &'static str, misdeed: &'static str, expect: Expect) -> Case {
    Case {
        name: format!("native/{name}"),
        id: ID,
        make: Box::new(placed),
        config: vec![("at", at.to_owned()), ("misdeed", misdeed.to_owned())],
        args: LONG.to_vec(),
        kernel: (0, 0),
        expect,
    }
}

/// A case of a library that is evil by itself.
pub(crate) fn built(name: &str, defines: &'static [&'static str], expect: Expect) -> Case {
    Case {
        name: format!("native/{name}"),
        id: ID,
        make: Box::new(|home| {
            compiled(home, "evil_native", defines);
            FILE.to_owned()
        }),
        config: Vec::new(),
        args: LONG.to_vec(),
        kernel: (0, 0),
        expect,
    }
}

fn short(case: Case) -> Case {
    Case {
        args: SHORT.to_vec(),
        ..case
    }
}

fn in_process(case: Case) -> Case {
    let args = case.args.into_iter().chain(["--in-process"]).collect();
    Case { args, ..case }
}

/// An endless loop in each call of the contract, and before the first.
fn loops() -> Vec<Case> {
    let mut cases: Vec<Case> = [
        ("endless-loop-in-subscribe", "subscribe", Quarantined(LATE_CALL)),
        ("endless-loop-in-open", "open", Quarantined(LATE_CALL)),
        ("endless-loop-in-on-batch", "batch", Partial(LATE_BATCH)),
        ("endless-loop-in-lost-after", "lost_after", Partial(LATE_CALL)),
        ("endless-loop-in-checkpoint", "checkpoint", Partial(LATE_CALL)),
        ("endless-loop-in-finish", "finish", Partial(LATE_CALL)),
        ("endless-loop-in-destroy", "destroy", Partial(LATE_CALL)),
    ]
    .into_iter()
    .map(|(name, at, expect)| short(configured(name, at, "spin", expect)))
    .collect();
    cases.push(short(built(
        "endless-loop-in-constructor",
        &["CONSTRUCTOR=spin"],
        Quarantined(LATE_CALL),
    )));
    cases
}

/// What ends the process before the first call.
fn constructors() -> Vec<Case> {
    vec![
        built(
            "exit-in-constructor",
            &["CONSTRUCTOR=leave"],
            Quarantined("while it was loaded, it ended its process with exit status 77"),
        ),
        built(
            "silent-exit-in-constructor",
            &["CONSTRUCTOR=leave_at_once"],
            Quarantined("while it was loaded, it ended its process with exit status 0"),
        ),
        built(
            "segfault-in-constructor",
            &["CONSTRUCTOR=segfault"],
            Quarantined("while it was loaded, its process was ended by SIGSEGV"),
        ),
        built(
            "abort-in-constructor",
            &["CONSTRUCTOR=abort"],
            Quarantined("SIGABRT"),
        ),
        built(
            "closed-descriptors-in-constructor",
            &["CONSTRUCTOR=close_everything"],
            Quarantined("its process"),
        ),
        built(
            "a-process-left-behind-by-constructor",
            &["CONSTRUCTOR=escape"],
            Harmless,
        ),
        built(
            "an-exit-handler-that-loops",
            &["CONSTRUCTOR=loop_at_exit"],
            Harmless,
        ),
        in_process(built(
            "exit-in-constructor-in-process",
            &["CONSTRUCTOR=leave"],
            Stated,
        )),
        in_process(configured(
            "exit-in-on-batch-in-process",
            "batch",
            "leave",
            Stated,
        )),
        in_process(built(
            "a-null-function-in-process",
            &["NULL_FUNCTION"],
            Refused("its table lacks a function"),
        )),
        in_process(built(
            "a-null-look-up-in-process",
            &["NULL_INTERFACE"],
            Refused("no function that looks interfaces up"),
        )),
    ]
}

/// What native code can do to its process.
#[expect(clippy::too_many_lines, reason = "it is a table of cases")]
fn processes() -> Vec<Case> {
    let gone = [
        ("segfault", "segfault", "SIGSEGV"),
        ("abort", "abort", "SIGABRT"),
        ("illegal-instruction", "trap", "SIGILL"),
        ("division-by-zero", "divide", "SIGFPE"),
        // The runtime says so itself where it recognises it.
        ("endless-recursion", "recurse", "stack overflow|SIGSEGV"),
        ("unbounded-allocation", "leak", "SIGABRT"),
        ("shared-memory-without-end", "share", "bytes of memory where"),
        ("exit", "leave", "it ended its process with exit status 77"),
        (
            "silent-exit",
            "leave_at_once",
            "it ended its process with exit status 0",
        ),
        (
            "another-program-in-its-place",
            "exec_another",
            "it ended its process with exit status 0",
        ),
        (
            "the-end-of-its-thread",
            "end_the_thread",
            "its process was ended|exit status",
        ),
        ("a-signal-to-its-group", "signal_the_group", "SIGTERM"),
        ("a-file-written", "write_a_file", "SIGABRT|tried to write a file"),
        ("a-process-left-in-its-group", "fork_a_child", "SIGABRT"),
        ("closed-descriptors", "close_everything", "its process"),
        (
            "garbage-on-all-descriptors",
            "write_to_everything",
            "its process sent what cannot be read",
        ),
        (
            "shared-columns-sealed",
            "seal_everything",
            "columns cannot be written|its process",
        ),
        ("shared-columns-written", "write_to_the_columns", "SIGSEGV"),
        (
            "reads-beyond-the-columns",
            "read_beyond_the_columns",
            "SIGSEGV|SIGBUS",
        ),
    ];
    let mut cases: Vec<Case> = gone
        .into_iter()
        .map(|(name, misdeed, says)| configured(name, "batch", misdeed, Partial(says)))
        .collect();
    cases.push(short(configured(
        "stopped-by-itself",
        "batch",
        "stop",
        Partial(LATE_BATCH),
    )));
    cases.push(short(configured(
        "closed-descriptors-and-endless-loop",
        "batch",
        "close_everything_and_spin",
        Partial("closed the connection"),
    )));
    let own = [
        ("a-thread-left-running", "leave_a_thread"),
        ("a-process-left-outside-its-group", "escape"),
        ("signal-handlers-installed", "install_handlers"),
        ("folder-locale-and-priority-changed", "change_the_process"),
        ("output-polluted", "print"),
        ("escape-sequences-printed", "print_escapes"),
    ];
    cases.extend(own.map(|(name, misdeed)| configured(name, "batch", misdeed, Harmless)));
    cases
}

/// What native code can do to files and to other processes.
fn others() -> Vec<Case> {
    let on_victim = |name: &str, misdeed: &'static str| {
        let case = configured(name, "batch", misdeed, Partial("SIGABRT|tried to write a file"));
        Case {
            make: Box::new(|home| {
                let file = placed(home);
                fs::write(home.join(WRITTEN), "untouched").expect("a writable folder");
                file
            }),
            ..case
        }
    };
    vec![
        on_victim("a-file-overwritten", "write_a_file"),
        on_victim("a-file-cut", "cut_a_file"),
        on_victim("a-file-removed", "remove_a_file"),
        configured("a-folder-made", "batch", "make_a_folder", Partial("SIGABRT")),
        configured("a-pipe-made", "batch", "make_a_pipe", Partial("SIGABRT")),
        Case {
            kernel: (6, 12),
            ..configured(
                "a-signal-to-the-program",
                "batch",
                "signal_the_program",
                Partial("SIGABRT"),
            )
        },
    ]
}

pub(crate) fn cases() -> Vec<Case> {
    [loops(), constructors(), processes(), others()]
        .into_iter()
        .flatten()
        .collect()
}
