//! Metrics: declared once, reported through a [`Sink`].

use serde::{Deserialize, Serialize};

/// Most metrics that a report may hold unless the user raises the limit; a collector that has more to say leaves detail
/// out and tells so.
pub const MAX_METRICS: usize = 4096;

/// Which values of a metric are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Higher is better.
    Higher,
    /// Lower is better.
    Lower,
    /// Neither.
    Neither,
}

/// The shape of a metric's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetricKind {
    /// A count.
    Counter,
    /// A number.
    Gauge,
    /// A histogram from which the host derives percentiles.
    Distribution,
}

/// Declaration of a metric. Reporting a metric that is not declared is refused by the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricDef {
    /// Name: at most 128 bytes of `[a-z0-9_.]`.
    pub name: &'static str,
    /// UCUM-style unit, `1` for a ratio or count.
    pub unit: &'static str,
    /// Shape of the value.
    pub kind: MetricKind,
    /// Which values are better.
    pub direction: Direction,
    /// Formula in terms of event columns, precise enough to recompute the value.
    pub formula: &'static str,
    /// What the metric tells, in one sentence.
    pub about: &'static str,
    /// Keys of the labels that may tell its values apart. A value without a key stands for all values of that key.
    pub labels: &'static [&'static str],
}

impl MetricDef {
    /// Declares a number with neither direction.
    pub const fn gauge(name: &'static str, unit: &'static str) -> Self {
        Self {
            name,
            unit,
            kind: MetricKind::Gauge,
            direction: Direction::Neither,
            formula: "",
            about: "",
            labels: &[],
        }
    }

    /// Declares a count with neither direction and unit `1`.
    pub const fn counter(name: &'static str) -> Self {
        let mut def = Self::gauge(name, "1");
        def.kind = MetricKind::Counter;
        def
    }

    /// Declares a distribution with neither direction.
    pub const fn distribution(name: &'static str, unit: &'static str) -> Self {
        let mut def = Self::gauge(name, unit);
        def.kind = MetricKind::Distribution;
        def
    }

    /// Says which values are better.
    #[must_use]
    pub const fn better(mut self, direction: Direction) -> Self {
        self.direction = direction;
        self
    }

    /// Gives the formula.
    #[must_use]
    pub const fn formula(mut self, formula: &'static str) -> Self {
        self.formula = formula;
        self
    }

    /// Says what the metric tells.
    #[must_use]
    pub const fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    /// Names the keys of its labels.
    #[must_use]
    pub const fn labels(mut self, keys: &'static [&'static str]) -> Self {
        self.labels = keys;
        self
    }
}

/// Labels that tell apart the values of one metric, such as `("layer", "3")`.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

/// A reported value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Value {
    /// A count.
    Counter(u64),
    /// A number.
    Gauge(f64),
    /// Distinct recorded values in ascending order, each with its count.
    Distribution(Vec<(f64, u64)>),
    /// No value, and why.
    Unavailable(String),
}

/// One reported metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Name of the declared metric.
    pub name: String,
    /// Labels as reported.
    pub labels: Vec<(String, String)>,
    /// The value.
    pub value: Value,
    /// Number of events or samples behind the value.
    pub samples: u64,
}

/// Where a door hands reported metrics to.
pub trait MetricSink {
    /// Takes one metric.
    fn metric(&mut self, metric: Metric);
}

impl MetricSink for Vec<Metric> {
    fn metric(&mut self, metric: Metric) {
        self.push(metric);
    }
}

/// Takes a collector's results.
pub struct Sink<'a> {
    out: &'a mut dyn MetricSink,
}

impl<'a> Sink<'a> {
    /// A sink that hands on to `out`.
    pub fn new(out: &'a mut dyn MetricSink) -> Self {
        Self { out }
    }

    /// Reports a count.
    pub fn counter(&mut self, metric: &MetricDef, labels: Labels<'_>, value: u64) {
        self.report(metric, labels, Value::Counter(value), value);
    }

    /// Reports a number that stands for `samples` events. A value that is not finite is reported as
    /// unavailable: a report never shows NaN.
    pub fn gauge(&mut self, metric: &MetricDef, labels: Labels<'_>, samples: u64, value: f64) {
        if value.is_finite() {
            self.report(metric, labels, Value::Gauge(value), samples);
        } else {
            self.unavailable(
                metric,
                labels,
                "the formula gives no finite value for these events",
            );
        }
    }

    /// Reports `numerator / denominator`, or unavailable where the denominator is 0.
    pub fn ratio(&mut self, metric: &MetricDef, labels: Labels<'_>, samples: u64, parts: (f64, f64)) {
        if parts.1 == 0.0 {
            self.unavailable(
                metric,
                labels,
                "nothing was measured that the value could be divided by",
            );
        } else {
            self.gauge(metric, labels, samples, parts.0 / parts.1);
        }
    }

    /// Reports a number, or why there is none.
    pub fn value(&mut self, metric: &MetricDef, labels: Labels<'_>, samples: u64, value: Result<f64, &str>) {
        match value {
            Ok(value) => self.gauge(metric, labels, samples, value),
            Err(reason) => self.unavailable(metric, labels, reason),
        }
    }

    /// Reports a histogram: distinct values in ascending order, each with its count.
    pub fn distribution(&mut self, metric: &MetricDef, labels: Labels<'_>, buckets: Vec<(f64, u64)>) {
        let samples = buckets.iter().map(|(_, count)| count).sum();
        self.report(metric, labels, Value::Distribution(buckets), samples);
    }

    /// Reports that there is no value, and why. Never report 0 instead.
    pub fn unavailable(&mut self, metric: &MetricDef, labels: Labels<'_>, reason: &str) {
        self.report(metric, labels, Value::Unavailable(reason.to_owned()), 0);
    }

    fn report(&mut self, metric: &MetricDef, labels: Labels<'_>, value: Value, samples: u64) {
        let labels = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        self.out.metric(Metric {
            name: metric.name.to_owned(),
            labels: labels.collect(),
            value,
            samples,
        });
    }
}
