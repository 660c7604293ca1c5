//! From what a collector reported to what the record says.

use lm_bench_plugin::manifest::MetricDecl;
use lm_bench_plugin::{Metric, Value};

use super::metric::{CONFIDENCE, IntervalRecord, MetricRecord, MetricValue, PercentileRecord};
use crate::stats::{Distribution, Histogram, Percent};

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

impl MetricRecord {
    fn unavailable(&mut self, reason: &str) {
        (self.value, self.reason) = (None, Some(reason.to_owned()));
    }

    fn distribution(&mut self, samples: &Distribution, percentiles: &[Percent]) {
        self.n = samples.count();
        self.value = Some(MetricValue::Number(samples.mean()));
        self.mean = Some(samples.mean());
        (self.min, self.max) = (Some(samples.min()), Some(samples.max()));
        (self.std_dev, self.cv) = (samples.std_dev(), samples.variation());
        match samples.mean_interval(CONFIDENCE) {
            Ok(interval) => self.interval = Some(IntervalRecord::new(interval.low, interval.high)),
            Err(reason) => self.interval_reason = Some(reason.to_string()),
        }
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
    use lm_bench_plugin::{Direction, MetricKind};

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
                .contains("\"value\":18446744073709551615,\"reason\":null,\"partial\":false,\"n\":7")
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
            record.interval_reason.as_deref(),
            Some("the spread of the samples is too large for a number")
        );
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
