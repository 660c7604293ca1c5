//! The run record and its renderers.
//!
//! A [`record::RunRecord`] holds everything that a run found out. The renderers are pure functions from a record to text;
//! only [`save`] touches the file system. `docs/report-schema.md` explains the record field by field, and
//! `docs/methodology.md` how its numbers are made.

pub mod record;
