//! What the collectors found.

use std::collections::BTreeMap;

use lm_bench_plugin::manifest::MetricDecl;
use lm_bench_plugin::{Direction, Metric, MetricKind, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RunRecord;
use crate::stats::{Confidence, Distribution, EncodedHistogram, Histogram, Percent};

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
    /// Samples or events behind the value.
    pub n: u64,
    /// Interval of a distribution's mean, or of a headline number; `null` for other metrics and with too few samples.
    pub interval: Option<IntervalRecord>,
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

/// Turns what a collector reported into records, ordered by name and labels. A metric that `declared` does not name has no
/// value: its unit and formula are unknown.
pub fn metric_records(
    plugin: &str,
    declared: &[MetricDecl],
    reported: &[Metric],
    percentiles: &[Percent],
) -> Vec<MetricRecord> {
    let mut records: Vec<MetricRecord> = reported
        .iter()
        .map(|metric| {
            match declared
                .iter()
                .find(|declaration| declaration.name == metric.name)
            {
                Some(declaration) => record(plugin, declaration, metric, percentiles),
                None => undeclared(plugin, metric),
            }
        })
        .collect();
    records.sort_by(|left, right| left.key().cmp(&right.key()));
    records
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

    fn key(&self) -> (&str, &str, &BTreeMap<String, String>) {
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
            n,
            interval: None,
            histogram: None,
            mean: None,
            min: None,
            max: None,
            std_dev: None,
            cv: None,
            percentiles: BTreeMap::new(),
        }
    }

    fn unavailable(&mut self, reason: &str) {
        (self.value, self.reason) = (None, Some(reason.to_owned()));
    }

    fn distribution(&mut self, samples: &Distribution, percentiles: &[Percent]) {
        self.n = samples.count();
        self.value = Some(MetricValue::Number(samples.mean()));
        self.mean = Some(samples.mean());
        (self.min, self.max) = (Some(samples.min()), Some(samples.max()));
        (self.std_dev, self.cv) = (samples.std_dev(), samples.variation());
        self.interval = samples
            .mean_interval(CONFIDENCE)
            .filter(|interval| interval.low.is_finite() && interval.high.is_finite())
            .map(|interval| IntervalRecord::new(interval.low, interval.high));
        self.percentiles = percentiles
            .iter()
            .map(|percent| (*percent, percentile(samples, *percent)))
            .collect();
        self.histogram = Some(Histogram::new(samples, &self.unit).encode());
    }
}

fn percentile(samples: &Distribution, percent: Percent) -> PercentileRecord {
    match samples.percentile(percent, CONFIDENCE) {
        Ok(found) => PercentileRecord {
            value: Some(found.value),
            low: Some(found.low),
            high: Some(found.high),
            needs: None,
        },
        Err(few) => PercentileRecord {
            value: None,
            low: None,
            high: None,
            needs: Some(few.need),
        },
    }
}

fn labelled(plugin: &str, metric: &Metric) -> MetricRecord {
    let labels = metric.labels.iter().cloned().collect();
    MetricRecord {
        labels,
        ..MetricRecord::empty(plugin, &metric.name, metric.samples)
    }
}

fn undeclared(plugin: &str, metric: &Metric) -> MetricRecord {
    let mut new = labelled(plugin, metric);
    new.unavailable("the plugin does not declare this metric, so its unit and formula are unknown");
    new
}

fn record(plugin: &str, declaration: &MetricDecl, metric: &Metric, percentiles: &[Percent]) -> MetricRecord {
    let mut new = MetricRecord {
        unit: declaration.unit.clone(),
        direction: declaration.direction,
        kind: declaration.kind,
        formula: declaration.formula.clone(),
        ..labelled(plugin, metric)
    };
    match &metric.value {
        Value::Counter(count) => new.value = Some(MetricValue::Count(*count)),
        Value::Gauge(number) if number.is_finite() => new.value = Some(MetricValue::Number(*number)),
        Value::Gauge(number) => new.unavailable(&format!(
            "the plugin reported {number}, which is no finite number"
        )),
        Value::Distribution(buckets) => match Distribution::from_buckets(buckets.iter().copied()) {
            Ok(samples) => new.distribution(&samples, percentiles),
            Err(error) => new.unavailable(&error.to_string()),
        },
        Value::Unavailable(reason) => new.unavailable(reason),
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declaration(name: &str, kind: MetricKind) -> MetricDecl {
        MetricDecl {
            name: name.to_owned(),
            unit: "ms".to_owned(),
            kind,
            direction: Direction::Lower,
            formula: "a / b".to_owned(),
            about: String::new(),
            labels: Vec::new(),
        }
    }

    fn metric(name: &str, value: Value) -> Metric {
        Metric {
            name: name.to_owned(),
            labels: vec![("layer".to_owned(), "3".to_owned())],
            value,
            samples: 7,
        }
    }

    fn one(kind: MetricKind, value: Value) -> MetricRecord {
        let records = metric_records(
            "probe",
            &[declaration("m", kind)],
            &[metric("m", value)],
            &Percent::DEFAULT,
        );
        records.into_iter().next().unwrap()
    }

    #[test]
    fn counts_stay_exact_integers() {
        let record = one(MetricKind::Counter, Value::Counter(u64::MAX));
        assert_eq!(record.value, Some(MetricValue::Count(u64::MAX)));
        assert!(
            record
                .to_json()
                .contains("\"value\":18446744073709551615,\"reason\":null,\"n\":7")
        );
        assert_eq!(
            serde_json::from_str::<MetricRecord>(&record.to_json()).unwrap(),
            record
        );
    }

    #[test]
    fn what_is_no_number_is_null_with_the_reason() {
        for (value, reason) in [
            (
                Value::Gauge(f64::NAN),
                "the plugin reported NaN, which is no finite number",
            ),
            (
                Value::Gauge(f64::INFINITY),
                "the plugin reported inf, which is no finite number",
            ),
            (Value::Distribution(vec![]), "no samples"),
            (
                Value::Distribution(vec![(f64::NAN, 1)]),
                "a sample is NaN, which is no finite number",
            ),
            (Value::Unavailable("no GPU".to_owned()), "no GPU"),
        ] {
            let record = one(MetricKind::Gauge, value);
            assert_eq!((record.value, record.reason.as_deref()), (None, Some(reason)));
            assert!(record.to_json().contains("\"value\":null"));
        }
        let stray = metric_records("probe", &[], &[metric("m", Value::Gauge(1.0))], &[]);
        assert!(stray[0].value.is_none() && stray[0].reason.as_ref().unwrap().contains("does not declare"));
    }

    #[test]
    fn a_distribution_carries_its_statistics() {
        // 1..=100, so mean 50.5, s = sqrt(100 * 101 / 12) = 29.0115, t(99) = 1.98422: half width 5.7565.
        let buckets = (1..=100).map(|value| (f64::from(value), 1)).collect();
        let record = one(MetricKind::Distribution, Value::Distribution(buckets));
        assert_eq!((record.n, record.value), (100, Some(MetricValue::Number(50.5))));
        assert_eq!(
            (record.mean, record.min, record.max),
            (Some(50.5), Some(1.0), Some(100.0))
        );
        let interval = record.interval.unwrap();
        assert!(
            (interval.low - 44.7435).abs() < 1e-3 && (interval.high - 56.2565).abs() < 1e-3,
            "{interval:?}"
        );
        let shown: Vec<String> = record.percentiles.keys().map(Percent::to_string).collect();
        assert_eq!(shown, ["p50", "p90", "p95", "p99"]);
        let value = |text: &str| record.percentiles[&text.parse::<Percent>().unwrap()];
        assert_eq!((value("p50").value, value("p95").value), (Some(50.0), Some(95.0)));
        assert_eq!((value("p99").value, value("p99").needs), (None, Some(368)));
        let stored = Histogram::decode(record.histogram.as_ref().unwrap()).unwrap();
        assert_eq!(stored.count(), 100);
        assert!(
            record
                .to_json()
                .contains(r#""p99":{"value":null,"low":null,"high":null,"needs":368}"#)
        );
    }

    #[test]
    fn extreme_samples_leave_no_non_number_behind() {
        let wide = Value::Distribution(vec![(-f64::MAX, 1), (f64::MAX, 5)]);
        let record = one(MetricKind::Distribution, wide);
        assert_eq!((record.std_dev, record.interval), (None, None));
        assert_eq!(
            serde_json::from_str::<MetricRecord>(&record.to_json()).unwrap(),
            record
        );
    }

    #[test]
    fn records_are_ordered_by_name_and_labels() {
        let label = |value: &str| vec![("layer".to_owned(), value.to_owned())];
        let of = |name: &str, layer: &str| Metric {
            name: name.to_owned(),
            labels: label(layer),
            value: Value::Counter(1),
            samples: 1,
        };
        let declared = [
            declaration("a", MetricKind::Counter),
            declaration("b", MetricKind::Counter),
        ];
        let records = metric_records(
            "probe",
            &declared,
            &[of("b", "0"), of("a", "1"), of("a", "0")],
            &[],
        );
        let keys: Vec<String> = records
            .iter()
            .map(|r| format!("{}{}", r.name, r.labels["layer"]))
            .collect();
        assert_eq!(keys, ["a0", "a1", "b0"]);
    }
}
