//! What the collectors found.

use std::collections::BTreeMap;

use lm_bench_plugin::{Direction, MetricKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RunRecord;
use crate::stats::{Confidence, EncodedHistogram, Percent};

/// Confidence of every interval in a record.
pub const CONFIDENCE: Confidence = Confidence::P95;

/// One metric of one collector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricRecord {
    /// Id of the plugin that reported it.
    pub plugin: String,
    /// Name.
    pub name: String,
    /// Labels that tell apart the values of one name, such as `layer`.
    pub labels: BTreeMap<String, String>,
    /// Unit in UCUM style; `1` for a ratio or count.
    pub unit: String,
    /// Which values are better.
    pub direction: Direction,
    /// Shape of the value.
    pub kind: MetricKind,
    /// Formula in terms of event columns.
    pub formula: String,
    /// The value; for a distribution the mean. `null` where there is none.
    pub value: Option<MetricValue>,
    /// Why there is no value.
    pub reason: Option<String>,
    /// Whether the value is from a part of the run only: from the last checkpoint of a plugin that was taken out, or up to an
    /// interruption.
    #[serde(default)]
    pub partial: bool,
    /// Samples or events behind the value.
    pub n: u64,
    /// Interval of a distribution's mean, or of a headline number; `null` for other metrics and with too few samples.
    pub interval: Option<IntervalRecord>,
    /// Why a distribution's mean has no interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_reason: Option<String>,
    /// A distribution as a histogram that merges with those of other runs.
    pub histogram: Option<EncodedHistogram>,
    /// Mean of a distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Smallest sample of a distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Largest sample of a distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Standard deviation of a distribution's samples (divides by n - 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub std_dev: Option<f64>,
    /// Coefficient of variation of a distribution: standard deviation over the mean's magnitude.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cv: Option<f64>,
    /// Percentiles of a distribution.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub percentiles: BTreeMap<Percent, PercentileRecord>,
}

/// A value: counts are exact integers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum MetricValue {
    /// A count.
    Count(u64),
    /// A finite number.
    Number(f64),
}

impl MetricValue {
    /// The value as a number; counts above 2^53 are rounded.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Count(count) => count as f64,
            Self::Number(number) => number,
        }
    }
}

/// An interval and its confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalRecord {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How often such an interval holds the true value if the samples are independent.
    pub confidence: f64,
}

impl IntervalRecord {
    /// An interval of the record's confidence.
    pub fn new(low: f64, high: f64) -> Self {
        Self {
            low,
            high,
            confidence: CONFIDENCE.share(),
        }
    }
}

/// A percentile: either value and interval, or the number of samples it would need.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PercentileRecord {
    /// The sample at the nearest rank; `null` below the minimum number of samples.
    pub value: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// Samples needed for it; only where there are fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<u64>,
}

/// The metrics of a record as JSON, one per line, ordered by plugin, name and labels. Equal metrics give equal bytes: this is
/// what is compared between doors, and between a run and its replay.
pub fn metrics_json(record: &RunRecord) -> String {
    let mut ordered: Vec<&MetricRecord> = record.metrics.iter().collect();
    ordered.sort_by(|left, right| left.key().cmp(&right.key()));
    let lines: Vec<String> = ordered.into_iter().map(MetricRecord::to_json).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

impl MetricRecord {
    /// The metric as one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a metric has string keys only")
    }

    pub(super) fn key(&self) -> (&str, &str, &BTreeMap<String, String>) {
        (&self.plugin, &self.name, &self.labels)
    }

    /// A gauge without labels, value, unit or formula.
    pub(super) fn empty(plugin: &str, name: &str, n: u64) -> Self {
        Self {
            plugin: plugin.to_owned(),
            name: name.to_owned(),
            labels: BTreeMap::new(),
            unit: "1".to_owned(),
            direction: Direction::Neither,
            kind: MetricKind::Gauge,
            formula: String::new(),
            value: None,
            reason: None,
            partial: false,
            n,
            interval: None,
            interval_reason: None,
            histogram: None,
            mean: None,
            min: None,
            max: None,
            std_dev: None,
            cv: None,
            percentiles: BTreeMap::new(),
        }
    }
}
