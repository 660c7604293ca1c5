//! Keeps the table in README.md in step with the cases.

use std::fmt::Write as _;
use std::path::Path;

use crate::case::Case;

const BEGIN: &str = "<!-- the table is made by the test; run it with LM_BENCH_UPDATE_DOCS=1 -->\n";

/// The table of all cases.
pub(crate) fn page(cases: &[Case]) -> String {
    let mut table = String::from("| case | exit code | what is said |\n|---|---|---|\n");
    for case in cases {
        let says = case.expect.says().replace('|', " *or* ");
        // Writing to a string does not fail.
        let _ = writeln!(table, "| `{}` | {} | {says} |", case.name, case.expect.code());
    }
    table
}

/// Compares the page with the table, or writes it there.
pub(crate) fn check(table: &str) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/evil/README.md");
    let page = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
    let (head, found) = page.split_once(BEGIN).ok_or("README.md has no table")?;
    if found == table {
        return Ok(());
    }
    if std::env::var_os("LM_BENCH_UPDATE_DOCS").is_some() {
        return std::fs::write(&path, format!("{head}{BEGIN}{table}")).map_err(|error| error.to_string());
    }
    Err("README.md does not list the cases as they are: run this test with LM_BENCH_UPDATE_DOCS=1".to_owned())
}
