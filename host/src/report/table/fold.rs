//! Fewer rows: the values of one metric over layers, experts or many other labels become their smallest, middle and largest.

use std::collections::{BTreeMap, BTreeSet};

use super::super::record::MetricRecord;
use crate::stats::Distribution;

/// Labels over which values are folded unless detail is asked for.
const FOLDED: [&str; 2] = ["layer", "expert"];
/// Rows of one metric beyond which the remaining labels are folded too.
const MAX_ROWS: usize = 6;

/// One row of the table of values.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Row<'a> {
    /// A value as reported.
    One(&'a MetricRecord),
    /// Several values.
    Many {
        /// One of them, for name and unit.
        first: &'a MetricRecord,
        /// Labels that they share.
        shared: BTreeMap<&'a str, &'a str>,
        /// Labels in which they differ.
        over: Vec<&'a str>,
        /// Number of values.
        count: usize,
        /// Smallest.
        min: f64,
        /// Middle.
        median: f64,
        /// Largest.
        max: f64,
    },
}

/// The rows of metrics that have a value, in their order: all of them with `detail`, else folded.
pub(super) fn rows<'a>(metrics: &[&'a MetricRecord], detail: bool) -> Vec<Row<'a>> {
    if detail {
        let mut all = metrics.to_vec();
        all.sort_by_cached_key(|metric| {
            (
                metric.plugin.clone(),
                metric.name.clone(),
                folds(metric),
                natural(metric),
            )
        });
        return all.into_iter().map(Row::One).collect();
    }
    let mut rows = Vec::new();
    for same_name in
        metrics.chunk_by(|left, right| (&left.plugin, &left.name) == (&right.plugin, &right.name))
    {
        let (parts, wholes): (Vec<&MetricRecord>, Vec<&MetricRecord>) =
            same_name.iter().copied().partition(|metric| folds(metric));
        rows.extend(fold_all(&wholes));
        rows.extend(fold_all(&parts));
    }
    rows
}

/// A row per combination of the labels that are kept, or one row where there are too many combinations.
fn fold_all<'a>(metrics: &[&'a MetricRecord]) -> Vec<Row<'a>> {
    let mut groups: BTreeMap<Vec<(&str, &str)>, Vec<&MetricRecord>> = BTreeMap::new();
    for metric in metrics {
        groups.entry(kept(metric)).or_default().push(metric);
    }
    if groups.len() > MAX_ROWS {
        return vec![fold(metrics)];
    }
    groups.values().map(|group| fold(group)).collect()
}

fn folds(metric: &MetricRecord) -> bool {
    metric.labels.keys().any(|key| FOLDED.contains(&key.as_str()))
}

/// Labels in an order that puts layer 2 before layer 10.
fn natural(metric: &MetricRecord) -> Vec<(String, u64, String)> {
    let pairs = metric.labels.iter();
    pairs
        .map(|(key, value)| (key.clone(), value.parse().unwrap_or(u64::MAX), value.clone()))
        .collect()
}

fn kept(metric: &MetricRecord) -> Vec<(&str, &str)> {
    let pairs = metric
        .labels
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    pairs.filter(|(key, _)| !FOLDED.contains(key)).collect()
}

fn fold<'a>(group: &[&'a MetricRecord]) -> Row<'a> {
    let values = group
        .iter()
        .filter_map(|metric| metric.value)
        .map(|value| value.as_f64());
    let (Ok(values), Some((first, others))) = (Distribution::from_samples(values), group.split_first())
    else {
        unreachable!("groups are made of metrics with finite values");
    };
    if others.is_empty() {
        return Row::One(first);
    }
    let keys: BTreeSet<&str> = group
        .iter()
        .flat_map(|metric| metric.labels.keys().map(String::as_str))
        .collect();
    let same = |key: &str| {
        others
            .iter()
            .all(|other| other.labels.get(key) == first.labels.get(key))
    };
    let (shared, over): (Vec<&str>, Vec<&str>) = keys.into_iter().partition(|key| same(key));
    Row::Many {
        first,
        shared: shared
            .into_iter()
            .map(|key| (key, first.labels[key].as_str()))
            .collect(),
        over,
        count: group.len(),
        min: values.min(),
        median: values.median(),
        max: values.max(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::record::{MetricValue, sample};
    use super::*;

    fn metrics(labels: &[&[(&str, &str)]]) -> Vec<MetricRecord> {
        let template = sample::record()
            .metrics
            .into_iter()
            .find(|metric| metric.name == "dead_experts")
            .unwrap();
        let of = |(index, labels): (usize, &&[(&str, &str)])| MetricRecord {
            labels: labels
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            value: Some(MetricValue::Count(index as u64)),
            ..template.clone()
        };
        labels.iter().enumerate().map(of).collect()
    }

    #[test]
    fn layers_fold_within_a_phase_and_overall_values_stay() {
        let all = metrics(&[
            &[("phase", "decode")],
            &[("layer", "0"), ("phase", "decode")],
            &[("layer", "1"), ("phase", "decode")],
            &[("layer", "2"), ("phase", "decode")],
            &[("layer", "0"), ("phase", "prefill")],
        ]);
        let borrowed: Vec<&MetricRecord> = all.iter().collect();
        let rows = rows(&borrowed, false);
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0], Row::One(&all[0]));
        let Row::Many {
            shared,
            over,
            count,
            min,
            median,
            max,
            ..
        } = &rows[1]
        else {
            panic!("{rows:?}")
        };
        assert_eq!(
            (shared["phase"], over.as_slice(), *count),
            ("decode", ["layer"].as_slice(), 3)
        );
        assert_eq!((*min, *median, *max), (1.0, 2.0, 3.0));
        assert_eq!(rows[2], Row::One(&all[4]), "a single value is shown as it is");
    }

    #[test]
    fn detail_lists_overall_values_first_and_layers_by_number() {
        let all = metrics(&[&[("layer", "10")], &[("layer", "2")], &[("phase", "decode")]]);
        let rows = rows(&all.iter().collect::<Vec<_>>(), true);
        assert_eq!(rows, [Row::One(&all[2]), Row::One(&all[1]), Row::One(&all[0])]);
    }

    #[test]
    fn many_values_of_any_label_fold() {
        let names: Vec<String> = (0..9).map(|index| index.to_string()).collect();
        let labels: Vec<[(&str, &str); 1]> = names.iter().map(|name| [("tensor", name.as_str())]).collect();
        let all = metrics(&labels.iter().map(|label| label.as_slice()).collect::<Vec<_>>());
        let rows = rows(&all.iter().collect::<Vec<_>>(), false);
        let [Row::Many { over, count, .. }] = rows.as_slice() else {
            panic!("{rows:?}")
        };
        assert_eq!((over.as_slice(), *count), (["tensor"].as_slice(), 9));
    }
}
