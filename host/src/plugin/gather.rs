//! Takes what a plugin reports without letting it grow beyond its limits.

use lm_bench_plugin::{Metric, MetricSink, Value};

use super::failure::Failure;
use super::limits::Limits;

/// The metrics of one checkpoint, within size limits and otherwise unchecked.
#[derive(Debug)]
pub(crate) struct Report {
    metrics: Vec<Metric>,
    bytes: usize,
    most_metrics: usize,
    most_bytes: usize,
    excess: Option<String>,
}

impl Report {
    /// An empty report.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            metrics: Vec::new(),
            bytes: 0,
            most_metrics: limits.metrics,
            most_bytes: limits.report_bytes,
            excess: None,
        }
    }

    /// Makes room for one metric of about `bytes` bytes; `false` when it must not be copied.
    pub(crate) fn admit(&mut self, bytes: usize) -> bool {
        if self.excess.is_none() && self.metrics.len() >= self.most_metrics {
            self.excess = Some(format!("reported more than {} metrics", self.most_metrics));
        }
        if self.excess.is_none() && bytes > self.most_bytes - self.bytes {
            self.excess = Some(format!("reported more than {} bytes of metrics", self.most_bytes));
        }
        if self.excess.is_none() {
            self.bytes += bytes;
        }
        self.excess.is_none()
    }

    /// Refuses the whole report.
    pub(crate) fn refuse(&mut self, reason: &str) {
        self.excess.get_or_insert_with(|| reason.to_owned());
    }

    /// Adds a metric that was admitted.
    pub(crate) fn push(&mut self, metric: Metric) {
        self.metrics.push(metric);
    }

    /// The metrics.
    ///
    /// # Errors
    /// When the report exceeded a limit or was refused.
    pub(crate) fn into_metrics(self) -> Result<Vec<Metric>, Failure> {
        match self.excess {
            Some(reason) => Err(Failure::Contract(reason)),
            None => Ok(self.metrics),
        }
    }
}

impl MetricSink for Report {
    fn metric(&mut self, metric: Metric) {
        if self.admit(size(&metric)) {
            self.push(metric);
        }
    }
}

/// About the memory that a metric takes.
fn size(metric: &Metric) -> usize {
    let labels: usize = metric
        .labels
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    let value = match &metric.value {
        Value::Counter(_) | Value::Gauge(_) => 0,
        Value::Distribution(values) => size_of_val(values.as_slice()),
        Value::Unavailable(reason) => reason.len(),
    };
    size_of::<Metric>() + metric.name.len() + labels + value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(reason: &str) -> Metric {
        Metric {
            name: "m".to_owned(),
            labels: Vec::new(),
            value: Value::Unavailable(reason.to_owned()),
            samples: 0,
        }
    }

    #[test]
    fn a_report_within_its_limits_is_kept() {
        let mut report = Report::new(&Limits {
            metrics: 2,
            ..Limits::default()
        });
        report.metric(metric("a"));
        report.metric(metric("b"));
        assert_eq!(report.into_metrics().expect("kept"), [metric("a"), metric("b")]);
    }

    #[test]
    fn too_many_metrics_or_bytes_refuse_the_report() {
        let mut many = Report::new(&Limits {
            metrics: 1,
            ..Limits::default()
        });
        many.metric(metric("a"));
        many.metric(metric("b"));
        let error = many.into_metrics().expect_err("two metrics");
        assert_eq!(error.to_string(), "reported more than 1 metrics");

        let mut large = Report::new(&Limits {
            report_bytes: 1_000,
            ..Limits::default()
        });
        large.metric(metric(&"x".repeat(2_000)));
        let error = large.into_metrics().expect_err("too large");
        assert_eq!(error.to_string(), "reported more than 1000 bytes of metrics");
    }
}
