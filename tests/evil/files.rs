//! Files that are no plugins, or lie about what they hold: refused before the run, with exit code 1, and nothing of them runs.

use std::fs;

use wasm_encoder::{ComponentSection as _, CustomSection};

use crate::case::{Case, Expect};
use crate::native::{self, LONG};
use crate::stage::scratch;
use crate::wasm::{self, bytes, collector, core, manifest};
use crate::written;

use Expect::Refused;

/// A library with changed bytes.
fn patched(name: &str, change: fn(&mut Vec<u8>), expect: Expect) -> Case {
    Case {
        name: format!("native/{name}"),
        id: native::ID,
        make: Box::new(move |home| {
            let library = native::compiled(home, "evil_native", &[]);
            let mut bytes = fs::read(&library).expect("a library");
            change(&mut bytes);
            fs::write(&library, bytes).expect("a writable file");
            "evil_native.so".to_owned()
        }),
        config: Vec::new(),
        args: LONG.to_vec(),
        kernel: (0, 0),
        expect,
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Places of the program headers of a 64-bit ELF file: their table lies where byte 32 says, the count at 56.
fn segments(bytes: &[u8], kind: u32) -> Vec<usize> {
    let (start, count) = (
        u64_at(bytes, 32) as usize,
        u16::from_le_bytes([bytes[56], bytes[57]]),
    );
    let all = (0..usize::from(count)).map(|at| start + at * 56);
    all.filter(|&at| bytes[at..at + 4] == kind.to_le_bytes())
        .collect()
}

const LOAD: u32 = 1;

/// Entries that are not as agreed, and libraries that the linker or the host refuses.
#[expect(clippy::too_many_lines, reason = "it is a table of cases")]
fn libraries() -> Vec<Case> {
    use native::built;
    vec![
        built("no-entry", &["NO_ENTRY"], Refused("does not export lmb_entry_v1")),
        built(
            "wrong-magic",
            &["MAGIC={'L','M','B','P','L','U','G','2'}"],
            Refused("magic bytes"),
        ),
        built(
            "an-entry-with-a-wrong-size",
            &["ENTRY_SIZE=16"],
            Refused("smaller than version 1"),
        ),
        built(
            "a-table-with-a-wrong-size",
            &["TABLE_SIZE=8"],
            Refused("table of functions is smaller"),
        ),
        built(
            "a-null-table",
            &["NO_INTERFACE"],
            Refused("does not offer lmb.collector/1"),
        ),
        built(
            "a-table-out-of-line",
            &["CROOKED_TABLE"],
            Refused("has no address"),
        ),
        built(
            "a-null-function",
            &["NULL_FUNCTION"],
            Refused("its table lacks a function"),
        ),
        built(
            "a-null-look-up",
            &["NULL_INTERFACE"],
            Refused("no function that looks interfaces up"),
        ),
        built(
            "another-manifest-in-the-entry",
            &["OTHER_MANIFEST"],
            Refused("differs from the one in the file"),
        ),
        built(
            "an-endless-manifest-in-the-entry",
            &["ENDLESS_MANIFEST"],
            Refused("differs from the one in the file"),
        ),
        built(
            "an-undefined-symbol",
            &["UNDEFINED"],
            Refused("undefined symbol: lm_bench_has_no_such_symbol"),
        ),
        built("a-later-manifest", &["SCHEMA=\"7\""], Refused("has layout 7")),
        built(
            "a-unit-with-escape-sequences",
            &["UNIT=\"\\\\u001b]0;owned\\\\u0007\""],
            Refused("unit, formula and about"),
        ),
        built("an-id-that-is-a-path", &["ID=\"../evil\""], Refused("is no id")),
        patched(
            "a-header-alone",
            |bytes| bytes.truncate(64),
            Refused("damaged or truncated"),
        ),
        patched(
            "an-executable",
            |bytes| bytes[16] = 2,
            Refused("not a shared library|shared"),
        ),
        patched("another-machine", |bytes| bytes[18] = 0xf3, Refused("RISC-V")),
        patched(
            "more-sections-than-bytes",
            |bytes| bytes[60..62].fill(0xff),
            Refused("damaged or truncated|no manifest"),
        ),
        patched(
            "sections-beyond-the-end",
            |bytes| put(bytes, 40, u64::MAX - 8),
            Refused("damaged or truncated|no manifest"),
        ),
        patched(
            "a-segment-beyond-the-end",
            |bytes| {
                let at = segments(bytes, LOAD)[1];
                put(bytes, at + 32, 1 << 40);
            },
            Refused("a segment lies beyond the end"),
        ),
        patched(
            "a-huge-alignment",
            |bytes| {
                let at = segments(bytes, LOAD)[0];
                put(bytes, at + 48, 1 << 46);
            },
            Refused("dynamic linker refused it"),
        ),
        patched(
            "an-alignment-that-is-none",
            |bytes| {
                let at = segments(bytes, LOAD)[0];
                put(bytes, at + 48, 4097);
            },
            Refused("no power of two"),
        ),
        patched(
            "a-segment-of-a-tebibyte",
            |bytes| {
                let at = *segments(bytes, LOAD).last().expect("segments");
                put(bytes, at + 40, 1 << 40);
            },
            Refused("dynamic linker refused it"),
        ),
    ]
}

/// Cuts a library at the start, inside and before the end of each section; all are refused, none kills the program.
fn cut_libraries() -> Case {
    let make = |home: &std::path::Path| {
        let whole = fs::read(native::compiled(scratch(), "whole_native", &[])).expect("a library");
        let (start, count) = (
            u64_at(&whole, 40) as usize,
            u16::from_le_bytes([whole[60], whole[61]]),
        );
        let folder = home.join("cuts");
        fs::create_dir(&folder).expect("a writable folder");
        for section in 0..usize::from(count) {
            let at = u64_at(&whole, start + section * 64 + 24) as usize;
            for cut in [at, at + 1]
                .into_iter()
                .filter(|&cut| (64..whole.len()).contains(&cut))
            {
                fs::write(folder.join(format!("cut{cut}.so")), &whole[..cut]).expect("a writable folder");
            }
        }
        first_that_loads(home, "cuts")
    };
    Case {
        name: "native/truncation-at-each-section".to_owned(),
        id: native::ID,
        make: Box::new(make),
        config: Vec::new(),
        args: LONG.to_vec(),
        kernel: (0, 0),
        expect: Refused("damaged or truncated"),
    }
}

/// Cuts a component at each section.
fn cut_components() -> Case {
    let make = |home: &std::path::Path| {
        let whole = collector(wasm::ID, &[]);
        let mut cuts: Vec<usize> = (9..64).collect();
        for payload in wasmparser::Parser::new(0).parse_all(&whole) {
            if let Some((_, range)) = payload.expect("valid").as_section() {
                cuts.extend([range.start, range.start + 1, range.end - 1]);
            }
        }
        cuts.retain(|&cut| cut < whole.len());
        let folder = home.join("cuts");
        fs::create_dir(&folder).expect("a writable folder");
        for cut in cuts {
            fs::write(folder.join(format!("cut{cut}.wasm")), &whole[..cut]).expect("a writable folder");
        }
        first_that_loads(home, "cuts")
    };
    Case {
        name: "component/truncation-at-each-section".to_owned(),
        id: wasm::ID,
        make: Box::new(make),
        config: Vec::new(),
        args: LONG.to_vec(),
        kernel: (0, 0),
        expect: Refused("not a valid|does not export|no manifest"),
    }
}

/// The file of a folder that is not refused, which fails the case, or one that is. All are looked at as a run would.
fn first_that_loads(home: &std::path::Path, folder: &str) -> String {
    let mut names: Vec<String> = fs::read_dir(home.join(folder))
        .expect("a folder")
        .map(|entry| {
            format!(
                "{folder}/{}",
                entry.expect("an entry").file_name().to_string_lossy()
            )
        })
        .collect();
    names.sort();
    assert!(names.len() > 20, "{names:?}");
    let loads = names.iter().find(|name| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_lm-bench"));
        let status = command.args(["plugin", "inspect"]).arg(home.join(name)).output();
        status.expect("the program starts").status.code() != Some(1)
    });
    loads.unwrap_or(&names[names.len() / 2]).clone()
}

/// A component with one more custom section.
fn with_section(name: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = collector(wasm::ID, &[]);
    let section = CustomSection {
        name: name.into(),
        data: data.into(),
    };
    section.append_to_component(&mut bytes);
    bytes
}

const OTHER: &str = "package other:thing@1.0.0; world thing { export run: func(); }";
const CLOCK: &str = "package other:thing@1.0.0; interface clock { now: func() -> u64; } \
    world thing { import clock; export lm-bench:collector/collector@1.0.0; }";
const IMPORT: &str = r#"(import "other:thing/clock@1.0.0" "now" (func (result i64)))"#;

#[expect(clippy::too_many_lines, reason = "it is a table of cases")]
fn components() -> Vec<Case> {
    let declared = |text: &'static str, other: &'static str| {
        move || {
            let manifest = manifest(wasm::ID);
            let changed = manifest.replace(text, other);
            assert_ne!(changed, manifest);
            written::component(core(&[]), "metric-collector", Some(&changed))
        }
    };
    vec![
        bytes("an-empty-file", Vec::new, Refused("is empty")),
        bytes(
            "text",
            || b"(component)".to_vec(),
            Refused("neither a native library"),
        ),
        bytes(
            "an-empty-component",
            || b"\0asm\x0d\0\x01\0".to_vec(),
            Refused("does not export"),
        ),
        bytes(
            "a-core-module",
            || core(&[]),
            Refused("a core WebAssembly module, not a component"),
        ),
        bytes(
            "compiled-code-from-elsewhere",
            || [b"\x7fELF\x02\x01\x01\xc8".as_slice(), &[0; 4096]].concat(),
            Refused("precompiled WebAssembly"),
        ),
        bytes(
            "another-world",
            || {
                written::component(
                    written::core(&["(func (export \"run\"))"]),
                    OTHER,
                    Some(&manifest(wasm::ID)),
                )
            },
            Refused("no lm-bench plugin"),
        ),
        bytes(
            "a-foreign-import",
            || written::component(core(&[("imports", IMPORT)]), CLOCK, Some(&manifest(wasm::ID))),
            Refused("imports other:thing/clock@1.0.0"),
        ),
        bytes(
            "no-manifest",
            || written::component(core(&[]), "metric-collector", None),
            Refused("has no manifest"),
        ),
        bytes(
            "two-manifests",
            || with_section("lmb:manifest", manifest(wasm::ID).as_bytes()),
            Refused("2 manifests"),
        ),
        bytes(
            "a-manifest-that-is-no-text",
            || written::component(core(&[]), "metric-collector", Some("{\"schema\":1,\"id\":")),
            Refused("cannot be read"),
        ),
        bytes(
            "a-manifest-of-two-megabytes",
            || written::component(core(&[]), "metric-collector", Some(&" ".repeat(2 << 20))),
            Refused("more than the 1048576 allowed"),
        ),
        bytes(
            "a-manifest-that-nests-deeply",
            || written::component(core(&[]), "metric-collector", Some(&"[".repeat(500_000))),
            Refused("cannot be read"),
        ),
        bytes(
            "a-later-manifest",
            declared("\"schema\":1", "\"schema\":7"),
            Refused("has layout 7"),
        ),
        bytes(
            "a-later-interface",
            declared("collector/1", "collector/2"),
            Refused("needs interface lmb.collector/2"),
        ),
        bytes(
            "a-metric-declared-twice",
            declared(
                "\"metrics\":[",
                "\"metrics\":[{\"name\":\"rows\",\"unit\":\"1\",\"kind\":\"counter\",\"direction\":\"neither\",\"formula\":\"\",\"about\":\"\"},",
            ),
            Refused("rows is declared twice"),
        ),
        bytes(
            "a-formula-with-escape-sequences",
            declared("\"formula\":\"\"", "\"formula\":\"\\u001b[2J\""),
            Refused("unit, formula and about"),
        ),
        bytes(
            "a-custom-section-larger-than-the-file",
            || {
                [
                    collector(wasm::ID, &[]),
                    vec![0, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, b'x'],
                ]
                .concat()
            },
            Refused("not a valid WebAssembly component"),
        ),
        bytes(
            "a-custom-section-whose-name-is-larger",
            || [collector(wasm::ID, &[]), vec![0, 3, 0xff, 0x7f, b'x']].concat(),
            Refused("not a valid WebAssembly component"),
        ),
        bytes(
            "a-memory-of-64-bits",
            || collector(wasm::ID, &[("module", "(memory i64 1)")]),
            Refused("memory64"),
        ),
        bytes(
            "bytes-after-the-end",
            || [collector(wasm::ID, &[]), vec![0xee; 64]].concat(),
            Refused("not a valid WebAssembly component"),
        ),
    ]
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = libraries();
    cases.extend([cut_libraries(), cut_components()]);
    cases.extend(components());
    cases
}
