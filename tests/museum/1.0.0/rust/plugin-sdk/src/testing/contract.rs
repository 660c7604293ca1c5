//! What the host refuses, as checks.

use std::collections::BTreeSet;

use crate::collector::{Collector, Info};
use crate::erased;
use crate::metric::{MAX_METRICS, Metric, MetricDef, MetricKind, Value};
use crate::run_info::RunInfo;
use crate::subscription::{Sampling, Subscription};

use super::{Failure, Metrics};

/// Most bytes of a name, a label's key and a label's value.
const MAX_TEXT: usize = 128;
/// Most labels of a metric.
const MAX_LABELS: usize = 16;

macro_rules! check {
    ($holds:expr, $($text:tt)*) => {
        if !$holds {
            return Err(Failure::Contract(format!($($text)*)));
        }
    };
}

/// The static declarations.
pub(super) fn declarations<C: Collector>() -> Result<(), Failure> {
    let Info {
        id,
        version,
        about,
        license,
    } = C::INFO;
    check!(valid_id(id), "id {id:?} is not [a-z][a-z0-9-]{{1,62}}");
    let parts: Vec<&str> = version.splitn(3, '.').collect();
    check!(
        parts.len() == 3 && parts[..2].iter().all(|part| part.parse::<u64>().is_ok()),
        "version {version:?} is not major.minor.patch"
    );
    check!(
        !about.is_empty() && !about.contains('\n'),
        "`about` must be one line"
    );
    check!(!license.is_empty(), "the licence is empty");
    check!(!C::METRICS.is_empty(), "no metric is declared");
    let mut names = BTreeSet::new();
    for metric in C::METRICS {
        check!(
            names.insert(metric.name),
            "metric {} is declared twice",
            metric.name
        );
        declaration(metric)?;
    }
    Ok(())
}

fn declaration(metric: &MetricDef) -> Result<(), Failure> {
    let name = metric.name;
    check!(
        valid_name(name),
        "metric name {name:?} is not 1 to {MAX_TEXT} of [a-z0-9_.]"
    );
    check!(!metric.unit.is_empty(), "metric {name} has no unit");
    check!(!metric.formula.is_empty(), "metric {name} has no formula");
    check!(
        !metric.about.is_empty(),
        "metric {name} does not say what it tells"
    );
    Ok(())
}

/// The configuration: `{}` is enough and unknown keys are refused.
pub(super) fn configuration<C: Collector>(run: &RunInfo) -> Result<(), Failure> {
    let run = serde_json::to_string(run).map_err(|error| Failure::Contract(error.to_string()))?;
    erased::config_schema::<C>();
    check!(
        serde_json::from_str::<C::Config>("{}").is_ok(),
        "the configuration {{}} is refused: give each key a default (#[serde(default)])"
    );
    check!(
        erased::subscribe::<C>(r#"{"no such key":0}"#, &run).is_err(),
        "an unknown configuration key is accepted: add #[serde(deny_unknown_fields)]"
    );
    Ok(())
}

/// What a collector asks for.
pub(super) fn subscription(subscription: &Subscription) -> Result<(), Failure> {
    check!(subscription.max_rows >= 1, "max_rows is 0");
    let mut kinds = BTreeSet::new();
    for want in &subscription.wants {
        check!(
            kinds.insert(&want.kind),
            "kind {} is subscribed to twice",
            want.kind
        );
        let mut columns = BTreeSet::new();
        for column in want.columns.iter().chain(&want.optional) {
            check!(
                columns.insert(column),
                "column {column} of {} is asked for twice",
                want.kind
            );
        }
        check!(
            want.sampling != Sampling::EveryNth(0),
            "kind {} is sampled every 0th row",
            want.kind
        );
    }
    Ok(())
}

/// What a collector reports.
pub(super) fn reported<C: Collector>(metrics: &[Metric]) -> Result<(), Failure> {
    check!(
        metrics.len() <= MAX_METRICS,
        "{} metrics are more than {MAX_METRICS}",
        metrics.len()
    );
    let mut seen = BTreeSet::new();
    for metric in metrics {
        let name = &metric.name;
        let Some(def) = C::METRICS.iter().find(|def| def.name == name) else {
            return Err(Failure::Contract(format!("metric {name} is not declared")));
        };
        labels(def, metric)?;
        let mut key = metric.labels.clone();
        key.sort();
        check!(
            seen.insert((name, key)),
            "metric {name} {:?} is reported twice",
            metric.labels
        );
        value(def.kind, metric)?;
    }
    Ok(())
}

fn labels(def: &MetricDef, metric: &Metric) -> Result<(), Failure> {
    let name = &metric.name;
    check!(
        metric.labels.len() <= MAX_LABELS,
        "metric {name} has more than {MAX_LABELS} labels"
    );
    let mut keys = BTreeSet::new();
    for (key, value) in &metric.labels {
        check!(
            def.labels.contains(&key.as_str()),
            "metric {name} does not declare the label {key}"
        );
        check!(
            valid_name(key),
            "label key {key:?} of {name} is not 1 to {MAX_TEXT} of [a-z0-9_.]"
        );
        check!(
            value.len() <= MAX_TEXT,
            "label {key} of {name} is longer than {MAX_TEXT} bytes"
        );
        check!(keys.insert(key), "metric {name} has the label {key} twice");
    }
    Ok(())
}

fn value(kind: MetricKind, metric: &Metric) -> Result<(), Failure> {
    let name = &metric.name;
    match (&metric.value, kind) {
        (Value::Counter(_), MetricKind::Counter) => {}
        (Value::Gauge(number), MetricKind::Gauge) => {
            check!(number.is_finite(), "metric {name} is {number}");
        }
        (Value::Distribution(buckets), MetricKind::Distribution) => {
            let sorted = buckets.windows(2).all(|pair| pair[0].0 < pair[1].0);
            check!(sorted, "the values of {name} do not ascend");
            let sound = buckets
                .iter()
                .all(|(value, count)| value.is_finite() && *count > 0);
            check!(sound, "{name} has a value that is not finite, or a count of 0");
        }
        (Value::Unavailable(reason), _) => {
            let one_line = !reason.is_empty() && !reason.contains('\n');
            check!(one_line, "metric {name} must give its reason in one line");
        }
        (other, _) => check!(
            false,
            "metric {name} is declared as {kind:?} but reports {other:?}"
        ),
    }
    Ok(())
}

/// Compares two runs whose batches differ: only rounding of sums may.
pub(super) fn same_but_for_rounding(given: &Metrics, single: &Metrics) -> Result<(), Failure> {
    let same = given.all().len() == single.all().len()
        && given.all().iter().zip(single.all()).all(|(a, b)| {
            a.name == b.name
                && a.labels == b.labels
                && a.samples == b.samples
                && same_value(&a.value, &b.value)
        });
    check!(
        same,
        "the metrics depend on how rows are cut into batches, or on the order of the kinds;\n\
         as given:\n{given}row by row, kinds one after another:\n{single}"
    );
    Ok(())
}

fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Gauge(a), Value::Gauge(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
        _ => a == b,
    }
}

fn valid_id(id: &str) -> bool {
    let mut bytes = id.bytes();
    (2..=63).contains(&id.len())
        && bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn valid_name(name: &str) -> bool {
    (1..=MAX_TEXT).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'.'))
}
