//! Holds what a plugin reports against what it declared.

use std::collections::HashMap;

use lm_bench_plugin::manifest::{Manifest, MetricDecl};
use lm_bench_plugin::{Metric, MetricKind, Value};

use super::failure::{Failure, one_line};
use super::identity::is_metric_name;
use super::limits::Limits;

/// Checks a report and sorts it by name, then labels.
///
/// # Errors
/// Naming the first metric that is not as declared or exceeds a limit; the whole report is then worthless.
pub(crate) fn check(
    mut metrics: Vec<Metric>,
    manifest: &Manifest,
    limits: &Limits,
) -> Result<Vec<Metric>, Failure> {
    let declared: HashMap<&str, &MetricDecl> = manifest
        .metrics
        .iter()
        .map(|declared| (declared.name.as_str(), declared))
        .collect();
    for metric in &mut metrics {
        check_metric(metric, &declared, limits).map_err(|what| {
            // The name itself may be the trouble.
            let name = one_line(&metric.name, limits.name_bytes);
            Failure::contract(format!("reported metric {name:?}: {what}"))
        })?;
    }
    metrics.sort_by(|a, b| (&a.name, &a.labels).cmp(&(&b.name, &b.labels)));
    let twice = metrics
        .windows(2)
        .find(|pair| pair[0].name == pair[1].name && pair[0].labels == pair[1].labels);
    match twice {
        Some(pair) => Err(Failure::contract(format!(
            "reported metric {:?} twice with the labels {:?}",
            pair[0].name, pair[0].labels
        ))),
        None => Ok(metrics),
    }
}

fn check_metric(
    metric: &mut Metric,
    declared: &HashMap<&str, &MetricDecl>,
    limits: &Limits,
) -> Result<(), String> {
    if !is_metric_name(&metric.name, limits.name_bytes) {
        return Err(format!(
            "a name is 1 to {} of a-z, 0-9, _ and .",
            limits.name_bytes
        ));
    }
    let Some(declared) = declared.get(metric.name.as_str()) else {
        return Err("it is not declared in the manifest".to_owned());
    };
    check_labels(&metric.labels, declared, limits)?;
    check_value(&mut metric.value, declared.kind, limits)
}

fn check_labels(labels: &[(String, String)], declared: &MetricDecl, limits: &Limits) -> Result<(), String> {
    if labels.len() > limits.labels {
        return Err(format!("{} labels, {} are allowed", labels.len(), limits.labels));
    }
    for (at, (key, value)) in labels.iter().enumerate() {
        if !is_metric_name(key, limits.label_bytes) {
            return Err(format!(
                "a label's key is 1 to {} of a-z, 0-9, _ and .",
                limits.label_bytes
            ));
        }
        if value.len() > limits.label_bytes || value.chars().any(char::is_control) {
            return Err(format!(
                "label {key}: a value is one line of at most {} bytes",
                limits.label_bytes
            ));
        }
        if labels[..at].iter().any(|(other, _)| other == key) {
            return Err(format!("label {key} is given twice"));
        }
        if !declared.labels.contains(key) {
            return Err(format!("label {key} is not declared in the manifest"));
        }
    }
    Ok(())
}

fn check_value(value: &mut Value, kind: MetricKind, limits: &Limits) -> Result<(), String> {
    match (value, kind) {
        (Value::Unavailable(reason), _) => {
            *reason = one_line(reason, limits.text_bytes);
            if reason.is_empty() {
                Err("unavailable without a reason".to_owned())
            } else {
                Ok(())
            }
        }
        (Value::Counter(_), MetricKind::Counter) => Ok(()),
        (Value::Gauge(number), MetricKind::Gauge) if number.is_finite() => Ok(()),
        (Value::Gauge(number), MetricKind::Gauge) => Err(format!("its value {number} is not finite")),
        (Value::Distribution(values), MetricKind::Distribution) => check_distribution(values, limits),
        (_, kind) => Err(format!("its value is no {}", kind_name(kind))),
    }
}

fn check_distribution(values: &[(f64, u64)], limits: &Limits) -> Result<(), String> {
    if values.len() > limits.distribution_values {
        return Err(format!(
            "{} distinct values, {} are allowed",
            values.len(),
            limits.distribution_values
        ));
    }
    if values
        .iter()
        .any(|(value, count)| !value.is_finite() || *count == 0)
    {
        return Err("a distribution has finite values with counts above 0".to_owned());
    }
    if values.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
        return Err("a distribution's values ascend".to_owned());
    }
    let total = values
        .iter()
        .try_fold(0_u64, |total, (_, count)| total.checked_add(*count));
    total
        .map(|_| ())
        .ok_or_else(|| "a distribution's counts add up to more than 2^64".to_owned())
}

const fn kind_name(kind: MetricKind) -> &'static str {
    match kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Distribution => "distribution",
    }
}

/// Adds each declared metric that was not reported as unavailable, with the reason.
pub(crate) fn complete(metrics: &mut Vec<Metric>, manifest: &Manifest, reason: &str) {
    for declared in &manifest.metrics {
        if metrics.iter().any(|metric| metric.name == declared.name) {
            continue;
        }
        metrics.push(Metric {
            name: declared.name.clone(),
            labels: Vec::new(),
            value: Value::Unavailable(reason.to_owned()),
            samples: 0,
        });
    }
    metrics.sort_by(|a, b| (&a.name, &a.labels).cmp(&(&b.name, &b.labels)));
}

#[cfg(test)]
mod tests {
    use lm_bench_plugin::Direction;

    use super::*;

    fn manifest() -> Manifest {
        let declare = |name: &str, kind| MetricDecl {
            name: name.to_owned(),
            unit: "1".to_owned(),
            kind,
            direction: Direction::Neither,
            formula: String::new(),
            about: String::new(),
            labels: vec!["layer".to_owned(), "a".to_owned()],
        };
        Manifest {
            schema: 1,
            id: "probe".to_owned(),
            version: "1.0.0".to_owned(),
            about: String::new(),
            license: String::new(),
            sdk: String::new(),
            requires: Vec::new(),
            metrics: vec![
                declare("count", MetricKind::Counter),
                declare("ratio", MetricKind::Gauge),
                declare("times", MetricKind::Distribution),
            ],
            kinds: Vec::new(),
        }
    }

    fn metric(name: &str, value: Value) -> Metric {
        Metric {
            name: name.to_owned(),
            labels: Vec::new(),
            value,
            samples: 1,
        }
    }

    fn labelled(labels: &[(&str, &str)]) -> Metric {
        let labels = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        Metric {
            labels,
            ..metric("count", Value::Counter(1))
        }
    }

    fn error(metrics: Vec<Metric>) -> String {
        check(metrics, &manifest(), &Limits::default())
            .expect_err("refused")
            .to_string()
    }

    #[test]
    fn a_report_as_declared_is_sorted() {
        let times = metric("times", Value::Distribution(vec![(-1.0, 2), (0.5, 1)]));
        let reported = vec![
            times.clone(),
            labelled(&[("layer", "1")]),
            labelled(&[("layer", "0")]),
            metric("ratio", Value::Gauge(0.5)),
        ];
        let checked = check(reported, &manifest(), &Limits::default()).expect("as declared");
        assert_eq!(
            checked,
            [
                labelled(&[("layer", "0")]),
                labelled(&[("layer", "1")]),
                metric("ratio", Value::Gauge(0.5)),
                times
            ]
        );
    }

    #[test]
    fn what_is_not_declared_is_refused() {
        let text = error(vec![metric("other", Value::Counter(1))]);
        assert_eq!(
            text,
            "reported metric \"other\": it is not declared in the manifest"
        );
        assert!(error(vec![metric("Bad", Value::Counter(1))]).contains("a-z"));
        assert!(error(vec![metric(&"x".repeat(129), Value::Counter(1))]).contains("1 to 128"));
        assert!(error(vec![metric("count", Value::Gauge(1.0))]).ends_with("its value is no counter"));
    }

    #[test]
    fn values_that_are_no_numbers_are_refused() {
        assert!(error(vec![metric("ratio", Value::Gauge(f64::NAN))]).contains("NaN is not finite"));
        assert!(error(vec![metric("ratio", Value::Gauge(f64::INFINITY))]).contains("inf is not finite"));
        let times =
            |values: &[(f64, u64)]| error(vec![metric("times", Value::Distribution(values.to_vec()))]);
        assert!(times(&[(f64::NAN, 1)]).contains("finite"));
        assert!(times(&[(1.0, 0)]).contains("above 0"));
        assert!(times(&[(1.0, 1), (1.0, 1)]).contains("ascend"));
        assert!(times(&[(1.0, u64::MAX), (2.0, 1)]).contains("2^64"));
        assert!(
            error(vec![metric("ratio", Value::Unavailable(" \n".to_owned()))]).contains("without a reason")
        );
    }

    #[test]
    fn labels_are_few_short_and_distinct() {
        let many: Vec<String> = (0..17).map(|at| format!("l{at}")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|key| (key.as_str(), "v")).collect();
        assert!(error(vec![labelled(&many)]).contains("17 labels, 16 are allowed"));
        assert!(error(vec![labelled(&[("a", &"v".repeat(129))])]).contains("at most 128"));
        assert!(error(vec![labelled(&[("a", "1"), ("a", "2")])]).contains("label a is given twice"));
        assert!(error(vec![labelled(&[("", "1")])]).contains("key"));
        assert!(error(vec![labelled(&[("b", "1")])]).contains("label b is not declared"));
        assert!(error(vec![labelled(&[("a", "1\u{1b}[0m")])]).contains("one line"));
        let twice = error(vec![labelled(&[("a", "1")]), labelled(&[("a", "1")])]);
        assert!(
            twice.contains("\"count\" twice with the labels [(\"a\", \"1\")]"),
            "{twice}"
        );
    }

    #[test]
    fn missing_metrics_become_unavailable() {
        let mut metrics = vec![metric("ratio", Value::Gauge(0.5))];
        complete(&mut metrics, &manifest(), "it trapped");
        let names: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(names, ["count", "ratio", "times"]);
        assert_eq!(metrics[0].value, Value::Unavailable("it trapped".to_owned()));
        assert_eq!(metrics[1].value, Value::Gauge(0.5));
    }
}
