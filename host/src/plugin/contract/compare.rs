//! Compares what a plugin reported twice.

use lm_bench_plugin::{Metric, Value};

/// How far numbers may be apart, relative to the larger one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tolerance {
    /// Not at all: the same bits.
    Bits,
    /// By this share.
    Relative(f64),
}

impl Tolerance {
    fn accepts(self, a: f64, b: f64) -> bool {
        match self {
            Self::Bits => a.to_bits() == b.to_bits(),
            Self::Relative(share) => (a - b).abs() <= share * a.abs().max(b.abs()),
        }
    }
}

/// The first difference between two reports, which are in order; `names` says which is which.
pub(super) fn difference(
    first: &[Metric],
    second: &[Metric],
    names: (&str, &str),
    tolerance: Tolerance,
) -> Option<String> {
    let key = |metric: &Metric| (metric.name.clone(), metric.labels.clone());
    for metric in first {
        let Some(other) = second.iter().find(|other| key(other) == key(metric)) else {
            return Some(format!(
                "{} is reported {} and not {}",
                shown(metric),
                names.0,
                names.1
            ));
        };
        if !same(metric, other, tolerance) {
            let (a, b) = (value(metric), value(other));
            return Some(match a == b {
                false => format!("{} is {a} {} and {b} {}", shown(metric), names.0, names.1),
                true => format!(
                    "{} stands for {} samples {} and {} {}",
                    shown(metric),
                    metric.samples,
                    names.0,
                    other.samples,
                    names.1
                ),
            });
        }
    }
    let missing = second
        .iter()
        .find(|metric| first.iter().all(|other| key(other) != key(metric)));
    missing.map(|metric| format!("{} is reported {} and not {}", shown(metric), names.1, names.0))
}

fn same(a: &Metric, b: &Metric, tolerance: Tolerance) -> bool {
    let values = match (&a.value, &b.value) {
        (Value::Gauge(a), Value::Gauge(b)) => tolerance.accepts(*a, *b),
        (Value::Distribution(a), Value::Distribution(b)) => {
            let near = |(a, b): (&(f64, u64), &(f64, u64))| a.1 == b.1 && tolerance.accepts(a.0, b.0);
            a.len() == b.len() && a.iter().zip(b).all(near)
        }
        (a, b) => a == b,
    };
    values && a.samples == b.samples
}

/// A metric's name and labels, as they came from a plugin.
fn shown(metric: &Metric) -> String {
    let labels: Vec<String> = metric
        .labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let name = if labels.is_empty() {
        metric.name.clone()
    } else {
        format!("{}{{{}}}", metric.name, labels.join(","))
    };
    crate::plugin::failure::one_line(&name, 200)
}

fn value(metric: &Metric) -> String {
    let text = match &metric.value {
        Value::Counter(value) => value.to_string(),
        Value::Gauge(value) => value.to_string(),
        Value::Distribution(values) => format!("a distribution {values:?}"),
        Value::Unavailable(reason) => format!("unavailable ({reason})"),
    };
    crate::plugin::failure::one_line(&text, 120)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(name: &str, value: Value) -> Metric {
        Metric {
            name: name.to_owned(),
            labels: vec![("of".to_owned(), "x".to_owned())],
            value,
            samples: 1,
        }
    }

    #[test]
    fn numbers_may_differ_by_the_tolerance_and_nothing_else() {
        let gauge = |value| [metric("g", Value::Gauge(value))];
        let near = |a, b| {
            let tolerance = Tolerance::Relative(1e-9);
            difference(&gauge(a), &gauge(b), ("here", "there"), tolerance)
        };
        assert_eq!(near(1.0, 1.0 + 1e-12), None);
        assert_eq!(near(0.0, 0.0), None);
        assert_eq!(near(1.0, 1.5), Some("g{of=x} is 1 here and 1.5 there".to_owned()));
        let bits = difference(&gauge(0.0), &gauge(-0.0), ("a", "b"), Tolerance::Bits);
        assert!(bits.is_some());
        let counts = |count| [metric("c", Value::Counter(count))];
        let tolerance = Tolerance::Relative(0.5);
        assert!(difference(&counts(10), &counts(11), ("a", "b"), tolerance).is_some());
    }

    #[test]
    fn a_metric_that_only_one_has_is_named() {
        let one = [metric("a", Value::Counter(1))];
        let told = |a: &[Metric], b: &[Metric]| difference(a, b, ("here", "there"), Tolerance::Bits);
        assert_eq!(
            told(&one, &[]).as_deref(),
            Some("a{of=x} is reported here and not there")
        );
        assert_eq!(
            told(&[], &one).as_deref(),
            Some("a{of=x} is reported there and not here")
        );
        let mut more = one.clone();
        more[0].samples = 2;
        let text = told(&one, &more).expect("another number of samples");
        assert!(text.contains("stands for 1 samples here and 2 there"), "{text}");
    }
}
