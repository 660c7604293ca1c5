//! The header for plugins in C and C++ says what this crate says: its declarations are generated from `src/lib.rs`, and
//! compilers of both languages give them the sizes and offsets that Rust gives.
//!
//! `LM_BENCH_UPDATE_DOCS=1 cargo test -p lm-bench-abi` rewrites it.

mod c;
mod declarations;

use std::mem::offset_of;
use std::path::PathBuf;
use std::process::Command;

use declarations::Declaration;
use lm_bench_abi as abi;

/// Between these lines stands what is generated; around them what is written by hand.
const BEGIN: &str =
    "/* -- generated from plugin-sdk/abi/src/lib.rs; do not edit ------------------------------------ */\n";
const END: &str = "\n/* -- end of what is generated ------------------------------------------------------------------ */\n";

fn header() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../include/lm_bench_plugin.h")
}

#[test]
fn the_header_is_current() {
    let expected = c::write(&declarations::read(include_str!("../../src/lib.rs")));
    let text = std::fs::read_to_string(header()).expect("the header");
    let (before, rest) = text.split_once(BEGIN).expect("the line before what is generated");
    let (found, after) = rest.split_once(END).expect("the line after what is generated");
    if std::env::var_os("LM_BENCH_UPDATE_DOCS").is_some() {
        let text = format!("{before}{BEGIN}{expected}{END}{after}");
        std::fs::write(header(), text).expect("the header can be written");
        return;
    }
    assert!(
        found == expected,
        "the header is stale; to rewrite it: LM_BENCH_UPDATE_DOCS=1 cargo test -p lm-bench-abi"
    );
}

/// A struct with its size, and its fields with their offsets.
type Layout = (&'static str, usize, Vec<(&'static str, usize)>);

macro_rules! layouts {
    ($($name:ident { $($field:ident),* $(,)? })*) => {
        vec![$((
            stringify!($name),
            size_of::<abi::$name>(),
            vec![$((stringify!($field), offset_of!(abi::$name, $field))),*],
        )),*]
    };
}

fn layouts() -> Vec<Layout> {
    layouts! {
        Bytes { ptr, len }
        EntryV1 { magic, size, flags, manifest, interface }
        ColumnV1 { data, len, width, element }
        BatchV1 { size, rows, kind, columns_len, seq, lost_before, weight, columns }
        LabelV1 { key, value }
        BucketV1 { value, count }
        MetricV1 {
            size, shape, name, labels, labels_len, count, number, buckets, buckets_len, reason, samples,
        }
        MathV1 { size, flags, exp, exp2, log, log1p, log2, log10, pow, cbrt, sin, cos, tanh }
        HostV1 { size, flags, context, log, symbol, metric, reply, fault, math }
        CollectorV1 {
            size, flags, describe, subscribe, open, on_batch, lost_after, checkpoint, finish, destroy,
        }
        RowsV1 { size, rows, kind, columns_len, columns }
        ProbeHostV1 { size, flags, context, process, log, symbol, rows, reply, fault }
        ProbeV1 { size, flags, describe, open, start, sample, stop, destroy }
    }
}

#[test]
fn no_declaration_is_missing_from_the_layouts() {
    let declared: Vec<(String, Vec<String>)> = declarations::read(include_str!("../../src/lib.rs"))
        .into_iter()
        .filter_map(|declaration| match declaration {
            Declaration::Struct { name, fields, .. } => {
                Some((name, fields.into_iter().map(|field| field.name).collect()))
            }
            Declaration::Constant(_) | Declaration::Module { .. } => None,
        })
        .collect();
    let listed: Vec<(String, Vec<String>)> = layouts()
        .into_iter()
        .map(|(name, _, fields)| {
            let names = fields.iter().map(|(field, _)| (*field).to_owned());
            (name.to_owned(), names.collect())
        })
        .collect();
    assert_eq!(declared, listed);
}

/// Compiles the header, its functions included, with assertions of all layouts.
fn compile(compiler: &str, standard: &str, extension: &str) {
    let mut source = "#include <assert.h>\n#include \"lm_bench_plugin.h\"\n".to_owned();
    for (name, size, fields) in layouts() {
        source += &format!("static_assert(sizeof(Lmb{name}) == {size}, \"size of {name}\");\n");
        for (field, offset) in fields {
            source += &format!(
                "static_assert(offsetof(Lmb{name}, {field}) == {offset}, \"offset of {name}.{field}\");\n"
            );
        }
    }
    source +=
        "static const uint8_t magic[8] = LMB_MAGIC;\nint last(void);\nint last(void) { return magic[7]; }\n";
    let folder = folder_for(extension);
    let path = folder.join(format!("layouts.{extension}"));
    std::fs::write(&path, source).expect("a written file");
    let output = Command::new(compiler)
        .arg(format!("-std={standard}"))
        .args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"])
        .arg("-I")
        .arg(header().with_file_name(""))
        .arg(&path)
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn folder_for(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("header-{name}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn c_lays_the_contract_out_as_rust_does() {
    compile("cc", "c11", "c");
}

#[test]
fn cpp_lays_the_contract_out_as_rust_does() {
    compile("c++", "c++17", "cpp");
}
