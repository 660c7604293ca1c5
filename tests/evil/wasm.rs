//! Components that misbehave: a small collector in text, with code put into its calls.

use std::fs;

use crate::case::{Case, Expect};
use crate::native::{LONG, SHORT};
use crate::written;

use Expect::{Harmless, Partial, Quarantined};

pub(crate) const ID: &str = "evil-component";
pub(crate) const FILE: &str = "evil_component.wasm";

/// Counts rows of the token kind. `{PLACE}` is code of that call, or a part of the module.
///
/// Memory: the answer "ok" of zeros at 1024; "token" 2048; "index" 2056; the list of columns 2064; the want 2080; "rows"
/// 2112; the subscription 2128; the report 2200 with its one metric at 2240; the rows so far 2300.
const MODULE: &str = r#"
  {imports}
  (memory (export "memory") {pages})
  {module}
  (global $next (mut i32) (i32.const 8192))
  (data (i32.const 2048) "token\00\00\00index\00\00\00\08\08\00\00\05\00\00\00")
  (data (i32.const 2080) "\00\08\00\00\05\00\00\00\10\08\00\00\01\00\00\00")
  (data (i32.const 2112) "rows")
  (data (i32.const 2132) "\20\08\00\00\01\00\00\00\05\00\00\00")
  (data (i32.const 2204) "\c0\08\00\00\01\00\00\00")
  (data (i32.const 2240) "\40\08\00\00\04\00\00\00")
  (func (export "cabi_realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
    (local $at i32)
    {realloc}
    (local.set $at (i32.and (i32.add (global.get $next) (i32.const 15)) (i32.const -16)))
    (global.set $next (i32.add (local.get $at) (local.get $size)))
    (local.get $at))
  (func (export "C#subscribe") (param i32 i32 i32 i32) (result i32) {subscribe} (i32.const 2128))
  (func (export "C#open") (param i32 i32 i32 i32 i32 i32) (result i32) {open} (i32.const 1024))
  (func (export "C#on-batch") (param $kind i32) (param $seq i64) (param $rows i32) (param f64 i64 i32 i32) (result i32)
    (if (i64.ne (local.get $seq) (i64.const 0)) (then {batch}))
    (i64.store (i32.const 2300) (i64.add (i64.load (i32.const 2300)) (i64.extend_i32_u (local.get $rows))))
    (i32.const 1024))
  (func (export "C#lost-after") (param i32 i64) (result i32) {lost} (i32.const 1024))
  (func $report (result i32)
    (i64.store (i32.const 2264) (i64.load (i32.const 2300)))
    (i64.store (i32.const 2272) (i64.load (i32.const 2300)))
    (i32.const 2200))
  (func (export "C#checkpoint") (result i32)
    (if (i64.gt_u (i64.load (i32.const 2300)) (i64.const 4)) (then {checkpoint}))
    (call $report))
  (func (export "C#finish") (result i32) (drop (call $report)) {finish} (i32.const 2200))
"#;

/// What can be put into the module, and what stands there otherwise.
const PLACES: &[(&str, &str)] = &[
    ("imports", ""),
    ("pages", "16"),
    ("module", ""),
    ("realloc", ""),
    ("subscribe", ""),
    ("open", ""),
    ("batch", ""),
    ("lost", ""),
    ("checkpoint", ""),
    ("finish", ""),
];

/// The collector's core module with code at some places.
pub(crate) fn core(code: &[(&str, &str)]) -> Vec<u8> {
    let mut text = MODULE.to_owned();
    for (place, otherwise) in PLACES {
        let found = code.iter().find(|(name, _)| name == place);
        text = text.replace(&format!("{{{place}}}"), found.map_or(otherwise, |(_, code)| code));
    }
    written::core(&[&text])
}

/// The manifest of the collector.
pub(crate) fn manifest(id: &str) -> String {
    written::MANIFEST
        .replace("\"written\"", &format!("{id:?}"))
        .replace("\"about\":\"\"}", "\"about\":\"\",\"labels\":[\"of\"]}")
}

/// The collector with code at some places.
pub(crate) fn collector(id: &str, code: &[(&str, &str)]) -> Vec<u8> {
    written::component(core(code), "metric-collector", Some(&manifest(id)))
}

/// A case of a file with these bytes.
pub(crate) fn bytes(name: &str, make: impl Fn() -> Vec<u8> + Send + Sync + 'static, expect: Expect) -> Case {
    Case {
        name: format!("component/{name}"),
        id: ID,
        make: Box::new(move |home| {
            fs::write(home.join(FILE), make()).expect("a writable folder");
            FILE.to_owned()
        }),
        config: Vec::new(),
        args: LONG.to_vec(),
        kernel: (0, 0),
        expect,
    }
}

fn with(name: &str, code: &'static [(&'static str, &'static str)], expect: Expect) -> Case {
    bytes(name, || collector(ID, code), expect)
}

fn short(case: Case) -> Case {
    Case {
        args: SHORT.to_vec(),
        ..case
    }
}

const LOOP: &str = "(loop $l (br $l))";
const LATE_CALL: &str = "took longer than the time limit of 3000 ms and was interrupted";
const LATE_BATCH: &str = "took longer than the time limit of 2000 ms and was interrupted";
const LOG: &str = r#"(import "lm-bench:collector/host@1.0.0" "log" (func $log (param i32 i32 i32)))"#;

/// An endless loop in each call, and in what runs before and between the calls.
fn loops() -> Vec<Case> {
    let cases = vec![
        with(
            "endless-loop-in-start",
            &[("module", "(func $start (loop $l (br $l))) (start $start)")],
            Quarantined(LATE_CALL),
        ),
        with(
            "endless-loop-in-subscribe",
            &[("subscribe", LOOP)],
            Quarantined(LATE_CALL),
        ),
        with("endless-loop-in-open", &[("open", LOOP)], Quarantined(LATE_CALL)),
        with(
            "endless-loop-in-allocation",
            &[("realloc", LOOP)],
            Quarantined(LATE_CALL),
        ),
        with(
            "endless-loop-in-on-batch",
            &[("batch", LOOP)],
            Partial(LATE_BATCH),
        ),
        with(
            "endless-loop-in-lost-after",
            &[("lost", LOOP)],
            Partial(LATE_CALL),
        ),
        with(
            "endless-loop-in-checkpoint",
            &[("checkpoint", LOOP)],
            Partial(LATE_CALL),
        ),
        with("endless-loop-in-finish", &[("finish", LOOP)], Partial(LATE_CALL)),
        with(
            "endless-fill-in-on-batch",
            &[(
                "batch",
                "(loop $l (memory.fill (i32.const 65536) (i32.const 1) (i32.const 524288)) (br $l))",
            )],
            Partial(LATE_BATCH),
        ),
    ];
    cases.into_iter().map(short).collect()
}

/// More than a component may have.
#[expect(clippy::too_many_lines, reason = "it is a table of cases")]
fn resources() -> Vec<Case> {
    vec![
        with(
            "endless-recursion",
            &[
                (
                    "module",
                    "(func $again (param i64) (call $again (i64.add (local.get 0) (i64.const 1))) (call $again (local.get 0)))",
                ),
                ("batch", "(call $again (i64.const 1))"),
            ],
            Partial("exhausted its stack"),
        ),
        with(
            "unbounded-allocation",
            &[("batch", "(loop $l (drop (memory.grow (i32.const 16))) (br $l))")],
            Partial("bytes of memory where 67108864 are allowed"),
        ),
        with(
            "four-gibibytes-from-the-start",
            &[("pages", "65536")],
            Quarantined("asked for 4294967296 bytes of memory where 67108864 are allowed"),
        ),
        with(
            "a-table-without-end",
            &[
                ("module", "(table $t 1 funcref)"),
                (
                    "batch",
                    "(loop $l (drop (table.grow $t (ref.null func) (i32.const 65536))) (br $l))",
                ),
            ],
            Partial("asked for tables of 131073 entries where 100000 are allowed"),
        ),
        with(
            "ten-million-table-entries-from-the-start",
            &[("module", "(table 10000000 funcref)")],
            Quarantined("asked for tables of 10000000 entries where 100000 are allowed"),
        ),
        with(
            "a-million-log-lines",
            &[
                ("imports", LOG),
                (
                    "batch",
                    "(local.set 0 (i32.const 1000000)) (loop $l (call $log (i32.const 1) (i32.const 2048) (i32.const 5)) (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))",
                ),
            ],
            Harmless,
        ),
        with(
            "a-log-line-of-64-kibibytes-of-zeros",
            &[
                ("imports", LOG),
                (
                    "batch",
                    "(call $log (i32.const 3) (i32.const 65536) (i32.const 65536))",
                ),
            ],
            Harmless,
        ),
        with(
            "a-log-line-that-is-not-utf8",
            &[
                ("imports", LOG),
                ("module", "(data (i32.const 700) \"\\ff\")"),
                ("batch", "(call $log (i32.const 1) (i32.const 700) (i32.const 1))"),
            ],
            Partial("utf-8"),
        ),
        with(
            "a-log-line-outside-its-memory",
            &[
                ("imports", LOG),
                (
                    "batch",
                    "(call $log (i32.const 1) (i32.const 2048) (i32.const -1))",
                ),
            ],
            Partial("out of bounds|beyond end of memory"),
        ),
        with(
            "a-log-level-that-there-is-not",
            &[
                ("imports", LOG),
                (
                    "batch",
                    "(call $log (i32.const 9) (i32.const 2048) (i32.const 5))",
                ),
            ],
            Partial("discriminant"),
        ),
    ]
}

/// Traps, and answers that are not as the contract has them.
#[expect(clippy::too_many_lines, reason = "it is a table of cases")]
fn answers() -> Vec<Case> {
    vec![
        with(
            "unreachable-code",
            &[("batch", "unreachable")],
            Partial("unreachable"),
        ),
        with(
            "division-by-zero",
            &[("batch", "(drop (i32.div_u (i32.const 1) (i32.const 0)))")],
            Partial("divide by zero"),
        ),
        with(
            "an-address-outside-its-memory",
            &[("batch", "(drop (i32.load (i32.const -8)))")],
            Partial("out of bounds memory access"),
        ),
        with(
            "an-allocation-outside-its-memory",
            &[("realloc", "(return (i32.const 2147483632))")],
            Quarantined("realloc return|out of bounds"),
        ),
        with(
            "an-allocation-out-of-line",
            &[("realloc", "(return (i32.const 8193))")],
            Quarantined("realloc return|not aligned|unaligned"),
        ),
        with(
            "a-report-of-four-gibibytes",
            &[("finish", "(i32.store (i32.const 2208) (i32.const -1))")],
            Partial("out of bounds"),
        ),
        with(
            "a-hundred-thousand-metrics",
            &[
                ("pages", "96"),
                (
                    "finish",
                    "(i32.store (i32.const 2204) (i32.const 65536)) (i32.store (i32.const 2208) (i32.const 100000))",
                ),
            ],
            Partial("more than 4096 metrics|fuel allocated for hostcalls"),
        ),
        with(
            "a-report-out-of-line",
            &[("finish", "(i32.store (i32.const 2204) (i32.const 2241))")],
            Partial("aligned"),
        ),
        with(
            "an-answer-that-is-neither-good-nor-bad",
            &[("finish", "(i32.store8 (i32.const 2200) (i32.const 7))")],
            Partial("discriminant"),
        ),
        with(
            "an-answer-outside-its-memory",
            &[("finish", "(return (i32.const -8))")],
            Partial("out of bounds"),
        ),
        with(
            "a-fault-whose-text-is-not-utf8",
            &[
                ("module", "(data (i32.const 700) \"\\ff\")"),
                (
                    "open",
                    "(i32.store8 (i32.const 720) (i32.const 1)) (i32.store8 (i32.const 724) (i32.const 1)) (i32.store (i32.const 728) (i32.const 700)) (i32.store (i32.const 732) (i32.const 1)) (return (i32.const 720))",
                ),
            ],
            Quarantined("utf-8"),
        ),
        with(
            "a-hundred-thousand-kinds",
            &[
                ("pages", "96"),
                (
                    "subscribe",
                    "(i32.store (i32.const 2132) (i32.const 65536)) (i32.store (i32.const 2136) (i32.const 100000))",
                ),
            ],
            Quarantined("100000 kinds, 64 are allowed|fuel allocated for hostcalls"),
        ),
        with(
            "a-subscription-to-no-rows",
            &[("subscribe", "(i32.store (i32.const 2140) (i32.const 0))")],
            Quarantined("max_rows is 0"),
        ),
        with(
            "an-empty-name",
            &[("finish", "(i32.store (i32.const 2244) (i32.const 0))")],
            Partial("a name is 1 to 128"),
        ),
        with(
            "a-name-that-is-not-utf8",
            &[("finish", "(i32.store8 (i32.const 2112) (i32.const 255))")],
            Partial("utf-8"),
        ),
        with(
            "a-name-with-control-characters",
            &[("finish", "(i32.store8 (i32.const 2112) (i32.const 27))")],
            Partial("a name is 1 to 128"),
        ),
        with(
            "a-name-of-64-kibibytes",
            &[(
                "finish",
                "(i32.store (i32.const 2240) (i32.const 65536)) (i32.store (i32.const 2244) (i32.const 65536))",
            )],
            Partial("a name is 1 to 128"),
        ),
        with(
            "an-undeclared-metric",
            &[("finish", "(i32.store (i32.const 2240) (i32.const 2048))")],
            Partial("\"toke\": it is not declared"),
        ),
        with(
            "an-undeclared-label",
            &[(
                "finish",
                "(i32.store (i32.const 2400) (i32.const 2048)) (i32.store (i32.const 2404) (i32.const 5)) (i32.store (i32.const 2248) (i32.const 2400)) (i32.store (i32.const 2252) (i32.const 1))",
            )],
            Partial("label token is not declared"),
        ),
        with(
            "a-metric-twice",
            &[(
                "finish",
                "(memory.copy (i32.const 2280) (i32.const 2240) (i32.const 40)) (i32.store (i32.const 2208) (i32.const 2))",
            )],
            Partial("\"rows\" twice"),
        ),
        with(
            "a-value-that-is-no-number",
            &[(
                "finish",
                "(i32.store8 (i32.const 2256) (i32.const 1)) (f64.store (i32.const 2264) (f64.const nan:0x4deadbeef0001))",
            )],
            Partial("no counter"),
        ),
        with(
            "no-value-and-no-reason",
            &[(
                "finish",
                "(i32.store8 (i32.const 2256) (i32.const 3)) (i64.store (i32.const 2264) (i64.const 0))",
            )],
            Partial("unavailable without a reason"),
        ),
    ]
}

pub(crate) fn cases() -> Vec<Case> {
    [loops(), resources(), answers()].into_iter().flatten().collect()
}
