//! The run record and its renderers.
//!
//! A [`record::RunRecord`] holds everything that a run found out. The renderers are pure functions from a record to text:
//!
//! | function | for |
//! |---|---|
//! | [`table::render`] | people |
//! | [`json::render`] | programs: the whole record, the only form that can be read back |
//! | [`jsonl::render`] | one metric per line |
//! | [`csv::render`] | spreadsheets: one metric per row |
//!
//! Only [`json::SaveTarget`] touches the file system, and only [`table::Style::detect`] looks at the terminal.
//! `docs/report-schema.md` explains the record field by field, `docs/methodology.md` how its numbers are made.

pub mod csv;
pub mod json;
pub mod jsonl;
pub mod record;
pub mod table;

#[cfg(test)]
mod schema_tests;
