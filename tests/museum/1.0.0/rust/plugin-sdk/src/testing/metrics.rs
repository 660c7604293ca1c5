//! Metrics of a test run, with look-ups that say what there is when something is missing.

use crate::collector::LogLevel;
use crate::metric::{Labels, Metric, Value};

/// What a collector reported in the end, sorted by name and labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    all: Vec<Metric>,
    logs: Vec<(LogLevel, String)>,
}

impl Metrics {
    pub(super) fn new(mut all: Vec<Metric>, logs: Vec<(LogLevel, String)>) -> Self {
        all.sort_by(|a, b| (&a.name, &a.labels).cmp(&(&b.name, &b.labels)));
        Self { all, logs }
    }

    /// All metrics.
    pub fn all(&self) -> &[Metric] {
        &self.all
    }

    /// The lines that the collector logged.
    pub fn logs(&self) -> &[(LogLevel, String)] {
        &self.logs
    }

    /// The values of one metric.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Metric> {
        self.all.iter().filter(move |metric| metric.name == name)
    }

    /// The metric with the name and exactly these labels, in any order.
    pub fn find(&self, name: &str, labels: Labels<'_>) -> Option<&Metric> {
        self.all.iter().find(|metric| {
            let has =
                |&(key, value): &(&str, &str)| metric.labels.iter().any(|(k, v)| k == key && v == value);
            metric.name == name && metric.labels.len() == labels.len() && labels.iter().all(has)
        })
    }

    /// As [`find`](Self::find).
    ///
    /// # Panics
    /// When there is no such metric, naming those of the same name.
    #[track_caller]
    pub fn get(&self, name: &str, labels: Labels<'_>) -> &Metric {
        match self.find(name, labels) {
            Some(metric) => metric,
            None => panic!("no metric {name} with {labels:?}; reported:\n{self}"),
        }
    }

    /// The value of a gauge or counter.
    ///
    /// # Panics
    /// When there is no such metric, or it has no number.
    #[track_caller]
    pub fn value(&self, name: &str, labels: Labels<'_>) -> f64 {
        match &self.get(name, labels).value {
            Value::Gauge(number) => *number,
            Value::Counter(count) => *count as f64,
            other => panic!("{name} {labels:?} is no number but {other:?}"),
        }
    }

    /// The distinct values of a distribution, each with its count.
    ///
    /// # Panics
    /// When there is no such metric, or it is no distribution.
    #[track_caller]
    pub fn distribution(&self, name: &str, labels: Labels<'_>) -> &[(f64, u64)] {
        match &self.get(name, labels).value {
            Value::Distribution(buckets) => buckets,
            other => panic!("{name} {labels:?} is no distribution but {other:?}"),
        }
    }

    /// The reason why a metric has no value.
    ///
    /// # Panics
    /// When there is no such metric, or it has a value.
    #[track_caller]
    pub fn unavailable(&self, name: &str, labels: Labels<'_>) -> &str {
        match &self.get(name, labels).value {
            Value::Unavailable(reason) => reason,
            other => panic!("{name} {labels:?} has the value {other:?}"),
        }
    }

    /// Compares the value of a gauge or counter.
    ///
    /// # Panics
    /// When it differs by more than `1e-9`, relative to the larger one of `expected` and 1.
    #[track_caller]
    pub fn assert(&self, name: &str, labels: Labels<'_>, expected: f64) {
        self.assert_near(name, labels, (expected, 1e-9 * expected.abs().max(1.0)));
    }

    /// Compares the value of a gauge or counter with `(expected, tolerance)`.
    ///
    /// # Panics
    /// When it differs by more than the tolerance.
    #[track_caller]
    pub fn assert_near(&self, name: &str, labels: Labels<'_>, (expected, tolerance): (f64, f64)) {
        let value = self.value(name, labels);
        let near = (value - expected).abs() <= tolerance;
        assert!(
            near,
            "{name} {labels:?} is {value}, expected {expected} within {tolerance}"
        );
    }
}

impl std::fmt::Display for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for metric in &self.all {
            writeln!(f, "  {} {:?} = {:?}", metric.name, metric.labels, metric.value)?;
        }
        Ok(())
    }
}
