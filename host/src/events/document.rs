//! The documentation page of the event kinds, derived from their table.

use std::fmt::Write;

use lm_bench_plugin::{ColumnDef, KindDef, kinds};

/// The text of `docs/events.md`.
pub fn markdown() -> String {
    let mut page = String::from(INTRODUCTION);
    page.push_str("\n## Kinds\n\n| kind | level | one row when |\n|---|---|---|\n");
    for kind in kinds::KINDS {
        let KindDef {
            name, level, about, ..
        } = kind;
        row(
            &mut page,
            &[&format!("[`{name}`](#{name})"), level.name(), summary(about)],
        );
    }
    for kind in kinds::KINDS {
        section(&mut page, kind);
    }
    page
}

const INTRODUCTION: &str = "\
# Events

<!-- Generated from the table in plugin-sdk/src/kinds/mod.rs.
     To rewrite: LM_BENCH_UPDATE_DOCS=1 cargo test -p lm-bench --lib events_page -->

A run is a stream of events. An event is a row of one kind; rows travel in batches, column by column. A batch has one
kind, at least one row, a number within its kind, a `weight` (how many events each row stands for, more than 1 where
steps are sampled) and `lost_before` (how many rows were dropped just before it, exact). Rows of a kind keep their order;
between kinds there is no order.

Types are `u8`, `u16`, `u32`, `u64`, `i64`, `f32`, `f64` and `sym`, the id of an interned string, 0 being the empty one. A
*list* column holds the same number of values in each row of a batch. Units are written in the style of UCUM: `1` for
counts and ratios, `By` for bytes, `{code}` for an enumeration. Values are finite unless a column says otherwise. Times
are nanoseconds on a monotonic clock that starts with the run; device times are mapped to it.

The *level* is the cheapest `--instrument` level that produces a kind (`off`, `steps`, `ops`, `kernels`). A collector that
subscribes to a kind gets it whatever the level. Kinds of level `ops` and above are recorded in one forward pass of N
(8 unless chosen otherwise), counted apart by phase; the weight is N. Rows from before the first pass have weight 1.

Vendors add kinds named `vendor.<name>.<kind>`.
";

fn section(page: &mut String, kind: &KindDef) {
    let KindDef {
        name,
        level,
        since,
        about,
        ..
    } = kind;
    // Writing to a string does not fail.
    let _ = write!(
        page,
        "\n## {name}\n\n{} Level `{}`, since {since}.\n\n",
        sentence(about),
        level.name()
    );
    page.push_str("| column | type | unit | meaning |\n|---|---|---|---|\n");
    for column in kind.columns.iter() {
        let name = format!("`{}`", column.name);
        let unit = format!("`{}`", column.unit);
        row(page, &[&name, &type_name(column), &unit, &meaning(column)]);
    }
}

fn type_name(column: &ColumnDef) -> String {
    format!(
        "{}{}",
        if column.list { "list of " } else { "" },
        column.element.name()
    )
}

fn meaning(column: &ColumnDef) -> String {
    let mut text = sentence(&column.about);
    if column.nonfinite {
        text.push_str(" May be NaN or infinite.");
    }
    if column.since != "1.0" {
        let _ = write!(text, " Since {}.", column.since);
    }
    text
}

/// The texts are doc comments: they begin with a space and may span lines.
fn sentence(about: &str) -> String {
    about.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first sentence without its full stop.
fn summary(about: &str) -> &str {
    let about = about.trim();
    about
        .split_once(". ")
        .map_or(about, |(first, _)| first)
        .trim_end_matches('.')
}

fn row(page: &mut String, cells: &[&str]) {
    for cell in cells {
        let _ = write!(page, "| {} ", cell.replace('|', "\\|"));
    }
    page.push_str("|\n");
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn events_page_is_current() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/events.md");
        let page = markdown();
        if std::env::var_os("LM_BENCH_UPDATE_DOCS").is_some_and(|value| value == "1") {
            std::fs::write(&path, &page).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == page,
            "docs/events.md is stale; rewrite it with LM_BENCH_UPDATE_DOCS=1 cargo test -p lm-bench --lib events_page"
        );
    }

    #[test]
    fn each_column_has_a_line() {
        let page = markdown();
        let columns: usize = kinds::KINDS.iter().map(|kind| kind.columns.len()).sum();
        assert_eq!(
            page.lines().filter(|line| line.starts_with("| `")).count(),
            columns
        );
        assert!(page.contains(
            "| `prob_sum` | list of f32 | `1` | Router probability of each expert, summed over the tokens. |"
        ));
        assert!(page.contains("| [`step`](#step) | steps | A forward pass ended |"));
        assert!(page.contains("May be NaN or infinite."));
    }
}
