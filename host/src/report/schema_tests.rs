//! The published schema and the published example agree with the code. `LM_BENCH_UPDATE_DOCS=1` rewrites both.

use std::fs;
use std::path::PathBuf;

use super::json;
use super::record::{RunRecord, SCHEMA_VERSION, sample};

fn published(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Compares a committed file with what it should hold, or writes it where that was asked for.
fn assert_current(path: &str, content: &str) {
    let file = published(path);
    if std::env::var_os("LM_BENCH_UPDATE_DOCS").is_some_and(|value| value == "1") {
        // In one step, since other tests read the same files meanwhile.
        let new = tempfile::NamedTempFile::new_in(published("docs")).unwrap();
        fs::write(new.path(), content).unwrap();
        new.persist(&file).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == content,
        "{path} is stale: run the tests with LM_BENCH_UPDATE_DOCS=1 and commit the result"
    );
}

#[test]
fn the_published_schema_is_current() {
    assert_current("docs/report.schema.json", &json::schema());
}

#[test]
fn a_record_of_this_version_is_published() {
    let path = format!("tests/fixtures/records/run-{SCHEMA_VERSION}.json");
    assert_current(&path, &json::render(&sample::record()));
}

#[test]
fn every_record_published_so_far_reads_and_its_histograms_decode() {
    let files: Vec<PathBuf> = fs::read_dir(published("tests/fixtures/records"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(!files.is_empty());
    for file in files {
        let record: RunRecord = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert!(
            file.ends_with(format!("run-{}.json", record.schema_version)),
            "{}",
            file.display()
        );
        let stored: Vec<_> = record
            .metrics
            .iter()
            .filter_map(|metric| metric.histogram.as_ref())
            .collect();
        assert!(!stored.is_empty());
        for encoded in stored {
            let histogram = crate::stats::Histogram::decode(encoded).unwrap();
            assert_eq!(histogram.count(), encoded.count);
        }
    }
}

#[test]
fn the_published_record_fits_the_published_schema() {
    let read = |path: &str| -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(published(path)).unwrap()).unwrap()
    };
    let validator = jsonschema::validator_for(&read("docs/report.schema.json")).unwrap();
    let record = read(&format!("tests/fixtures/records/run-{SCHEMA_VERSION}.json"));
    let errors: Vec<String> = validator
        .iter_errors(&record)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    for (pointer, bad) in [
        ("/duration_s", serde_json::Value::Null),
        ("/verdict/valid", "yes".into()),
        ("/metrics/0/direction", "sideways".into()),
        (
            "/metrics/2/percentiles",
            serde_json::json!({"median": {"value": 1, "low": 1, "high": 1}}),
        ),
        ("/plugins/0/rows", (-1).into()),
    ] {
        let mut broken = record.clone();
        *broken.pointer_mut(pointer).unwrap() = bad;
        assert!(!validator.is_valid(&broken), "{pointer}");
    }
    let mut missing = record;
    missing.as_object_mut().unwrap().remove("peak_gpu_mem_gb");
    assert!(
        !validator.is_valid(&missing),
        "a missing number is null, not absent"
    );
}
