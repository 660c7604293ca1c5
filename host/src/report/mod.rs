//! The run record and its renderers.
//!
//! A [`RunRecord`] holds everything that a run found out. The renderers are pure functions from a record to text:
//!
//! | function | for |
//! |---|---|
//! | [`table()`] | people |
//! | [`json()`] | programs: the whole record, the only form that can be read back |
//! | [`jsonl()`] | one metric per line |
//! | [`csv()`] | spreadsheets: one metric per row |
//!
//! Only [`check_writable`] and [`save`] touch the file system, and only [`TableStyle::of_stdout`] looks at the terminal.
//! `docs/report-schema.md` explains the record field by field, `docs/methodology.md` how its numbers are made.

mod csv;
mod json;
mod jsonl;
mod record;
mod save;
#[cfg(test)]
mod schema_tests;
mod table;

pub use csv::render as csv;
pub use json::{render as json, schema};
pub use jsonl::render as jsonl;
pub use record::*;
pub use save::{check_writable, save};
pub use table::{Style as TableStyle, render as table};
