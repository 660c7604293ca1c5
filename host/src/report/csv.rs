//! One metric per row, the headline numbers first (RFC 4180, line feeds, UTF-8).

use std::collections::BTreeSet;

use serde::Serialize;

use super::record::{MetricRecord, RunRecord, headline_metrics};
use crate::stats::Percent;

const BEFORE: [&str; 17] = [
    "plugin",
    "name",
    "labels",
    "unit",
    "direction",
    "kind",
    "value",
    "reason",
    "n",
    "mean",
    "interval_low",
    "interval_high",
    "min",
    "max",
    "std_dev",
    "cv",
    "partial",
];

/// A header row, then a row per metric; labels are a JSON object. A missing number is an empty field. Percentiles have a
/// column each, empty where there were too few samples.
pub fn render(record: &RunRecord) -> String {
    let metrics: Vec<MetricRecord> = headline_metrics(record)
        .into_iter()
        .chain(record.metrics.clone())
        .collect();
    let percentiles: BTreeSet<Percent> = metrics
        .iter()
        .flat_map(|metric| metric.percentiles.keys().copied())
        .collect();
    let mut header: Vec<String> = BEFORE.iter().map(|name| (*name).to_owned()).collect();
    header.extend(percentiles.iter().map(Percent::to_string));
    header.push("formula".to_owned());
    let mut text = line(&header);
    for metric in &metrics {
        text += &line(&fields(metric, &percentiles));
    }
    text
}

fn fields(metric: &MetricRecord, percentiles: &BTreeSet<Percent>) -> Vec<String> {
    let interval = metric.interval;
    let mut fields = vec![
        metric.plugin.clone(),
        metric.name.clone(),
        if metric.labels.is_empty() {
            String::new()
        } else {
            json(&metric.labels)
        },
        metric.unit.clone(),
        word(&metric.direction),
        word(&metric.kind),
        optional(metric.value),
        metric.reason.clone().unwrap_or_default(),
        metric.n.to_string(),
        optional(metric.mean),
        optional(interval.map(|interval| interval.low)),
        optional(interval.map(|interval| interval.high)),
        optional(metric.min),
        optional(metric.max),
        optional(metric.std_dev),
        optional(metric.cv),
        json(&metric.partial),
    ];
    let value = |percent| metric.percentiles.get(percent).and_then(|found| found.value);
    fields.extend(percentiles.iter().map(|percent| optional(value(percent))));
    fields.push(metric.formula.clone());
    fields
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("values of a metric have string keys only")
}

fn word(value: &impl Serialize) -> String {
    json(value).trim_matches('"').to_owned()
}

fn optional<T: Serialize>(value: Option<T>) -> String {
    value.map(|value| json(&value)).unwrap_or_default()
}

fn line(fields: &[String]) -> String {
    let quoted: Vec<String> = fields.iter().map(|field| quote(field)).collect();
    quoted.join(",") + "\n"
}

fn quote(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::sample;
    use super::*;

    /// Splits RFC 4180 text into rows of fields.
    fn parse(text: &str) -> Vec<Vec<String>> {
        let (mut rows, mut row, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
        let mut chars = text.chars().peekable();
        while let Some(char) = chars.next() {
            match (char, quoted) {
                ('"', true) if chars.peek() == Some(&'"') => field.push(chars.next().unwrap()),
                ('"', _) => quoted = !quoted,
                (',', false) => row.push(std::mem::take(&mut field)),
                ('\n', false) => {
                    row.push(std::mem::take(&mut field));
                    rows.push(std::mem::take(&mut row));
                }
                (char, _) => field.push(char),
            }
        }
        rows
    }

    #[test]
    fn every_metric_is_a_row_with_all_columns() {
        let mut record = sample::record();
        let hard = "comma, \"quote\"\nline";
        record.metrics[0]
            .labels
            .insert("hard".to_owned(), hard.to_owned());
        let rows = parse(&render(&record));
        assert_eq!(rows.len(), 1 + 4 + 3 + record.metrics.len());
        assert!(rows.iter().all(|row| row.len() == BEFORE.len() + 5), "{rows:?}");
        assert_eq!(&rows[0][BEFORE.len()..], ["p50", "p90", "p95", "p99", "formula"]);
        let labels: serde_json::Value = serde_json::from_str(&rows[8][2]).unwrap();
        assert_eq!(labels["hard"], hard);
    }

    #[test]
    fn missing_numbers_are_empty_and_present_ones_exact() {
        let record = sample::record();
        let rows = parse(&render(&record));
        let row = |name: &str| rows.iter().find(|row| row[1] == name).unwrap();
        let peak = row("peak_gpu_mem_gb");
        assert_eq!((peak[6].as_str(), peak[7].is_empty()), ("", false));
        let decode = row("decode_step_ms");
        assert_eq!(decode[9].parse::<f64>().unwrap(), record.metrics[2].mean.unwrap());
        assert_eq!(
            (decode[8].as_str(), decode[20].as_str()),
            ("310", ""),
            "310 samples are too few for p99"
        );
        assert_eq!(
            (row("achieved_flops")[16].as_str(), decode[16].as_str()),
            ("true", "false")
        );
    }
}
