//! The whole record as JSON.

use schemars::generate::SchemaSettings;

use super::record::RunRecord;

/// The record as indented JSON with a line feed at its end.
pub fn render(record: &RunRecord) -> String {
    let mut text = serde_json::to_string_pretty(record).expect("a record has string keys only");
    text.push('\n');
    text
}

/// The JSON Schema of the record (draft 2020-12), as in `docs/report.schema.json`.
pub fn schema() -> String {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let schema = generator.into_root_schema_for::<RunRecord>();
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema has string keys only");
    text.push('\n');
    text
}
