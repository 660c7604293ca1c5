use super::*;

#[test]
fn a_record_survives_json() {
    let record = sample::record();
    let text = serde_json::to_string_pretty(&record).unwrap();
    assert_eq!(serde_json::from_str::<RunRecord>(&text).unwrap(), record);
}

#[test]
fn the_names_that_users_know_are_at_the_top_level() {
    let value = serde_json::to_value(sample::record()).unwrap();
    for name in [
        "prefill_latency_ms",
        "decode_latency_per_token_ms",
        "total_tokens_per_second",
    ] {
        assert!(value[name].is_number(), "{name}");
        assert!(value["definitions"][name]["formula"].is_string(), "{name}");
    }
    let object = value.as_object().unwrap();
    assert!(object.contains_key("peak_gpu_mem_gb") && object["peak_gpu_mem_gb"].is_null());
}

#[test]
fn a_reader_of_this_version_accepts_fields_of_a_later_one() {
    let mut value = serde_json::to_value(sample::record()).unwrap();
    value["invented_later"] = serde_json::json!({"a": 1});
    value["engine"]["invented_later"] = serde_json::json!(2);
    assert_eq!(
        serde_json::from_value::<RunRecord>(value).unwrap(),
        sample::record()
    );
}

#[test]
fn metrics_json_depends_on_the_metrics_alone() {
    let record = sample::record();
    let text = metrics_json(&record);
    let mut other = record.clone();
    other.metrics.reverse();
    other.plugins.clear();
    other.duration_s = 99.0;
    assert_eq!(metrics_json(&other), text);
    other.metrics[0].n += 1;
    assert_ne!(metrics_json(&other), text);
    let parsed: Vec<MetricRecord> = serde_json::from_str(&text).unwrap();
    assert_eq!(parsed.len(), record.metrics.len());
    assert_eq!(
        text.lines().count(),
        record.metrics.len() + 2,
        "one metric per line"
    );
}
