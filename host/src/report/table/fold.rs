//! Fewer rows: values per layer and expert become the smallest and largest beside the overall value, and a metric with many
//! other labels becomes a ranking.

use std::collections::BTreeMap;

use super::super::record::{MetricRecord, MetricValue};
use crate::stats::Distribution;

/// Labels over which values are folded unless detail is asked for.
const FOLDED: [&str; 2] = ["expert", "layer"];
/// Combinations of the remaining labels beyond which a metric becomes a ranking.
pub(super) const MAX_ROWS: usize = 6;

/// Labels as key and value.
pub(super) type Labels<'a> = Vec<(&'a str, &'a str)>;

/// One row of the table of values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row<'a> {
    /// The metric, or one of those behind the median.
    pub(super) metric: &'a MetricRecord,
    /// Labels of the value.
    pub(super) labels: Labels<'a>,
    /// The overall value; where there is none the median of the parts.
    pub(super) value: MetricValue,
    /// Samples behind the value; none for a median.
    pub(super) n: Option<u64>,
    /// Number of parts of which the value is the median.
    pub(super) median_of: Option<usize>,
    /// Smallest and largest of the parts.
    pub(super) range: Option<(MetricValue, MetricValue)>,
    /// Whether any value behind it is from a part of the run only.
    pub(super) partial: bool,
    /// Labels that tell the parts apart.
    pub(super) over: Vec<&'a str>,
}

/// The rows of a plugin, most of them folded.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Folded<'a> {
    /// Rows by the labels over which they are folded; rows that are not are with the layers.
    pub(super) blocks: BTreeMap<Vec<&'a str>, Vec<Row<'a>>>,
    /// Rows of metrics with too many combinations of labels, by name.
    pub(super) rankings: Vec<Vec<Row<'a>>>,
}

/// The metrics that have a value as they are; values per layer and expert last and by number.
pub(super) fn unfolded<'a>(metrics: &[&'a MetricRecord]) -> Vec<Row<'a>> {
    let mut all = metrics.to_vec();
    all.sort_by_cached_key(|metric| (metric.name.clone(), is_part(metric), natural(metric)));
    all.into_iter().filter_map(Row::of).collect()
}

/// Folds the metrics that have a value; they are in order of their names.
pub(super) fn folded<'a>(metrics: &[&'a MetricRecord]) -> Folded<'a> {
    let mut all = Folded::default();
    for same_name in metrics.chunk_by(|left, right| left.name == right.name) {
        let rows = rows(same_name);
        let mut ranked = rows.clone();
        ranked.dedup_by(|left, right| left.labels == right.labels);
        if ranked.len() > MAX_ROWS {
            all.rankings.push(ranked);
            continue;
        }
        for row in rows {
            let over = if row.over.is_empty() {
                vec!["layer"]
            } else {
                row.over.clone()
            };
            all.blocks.entry(over).or_default().push(row);
        }
    }
    all
}

/// Whether a metric is about one layer or expert.
pub(super) fn is_part(metric: &MetricRecord) -> bool {
    metric.labels.keys().any(|key| FOLDED.contains(&key.as_str()))
}

/// The rows of one name.
fn rows<'a>(metrics: &[&'a MetricRecord]) -> Vec<Row<'a>> {
    let mut parts: BTreeMap<(Labels<'a>, Labels<'a>), Vec<&'a MetricRecord>> = BTreeMap::new();
    let mut wholes: BTreeMap<Labels<'a>, Row<'a>> = BTreeMap::new();
    for metric in metrics {
        let (over, kept): (Labels<'a>, Labels<'a>) =
            labels_of(metric).partition(|(key, _)| FOLDED.contains(key));
        if over.is_empty() {
            wholes.extend(Row::of(metric).map(|row| (kept, row)));
        } else {
            // Only the keys tell which parts belong together.
            let keys = over.into_iter().map(|(key, _)| (key, "")).collect();
            parts.entry((kept, keys)).or_default().push(metric);
        }
    }
    let mut rows = Vec::new();
    for ((kept, over), parts) in &parts {
        let over = over.iter().map(|(key, _)| *key).collect();
        rows.extend(fold(parts, wholes.get(kept), over));
    }
    wholes.retain(|kept, _| !parts.keys().any(|(of_parts, _)| of_parts == kept));
    rows.extend(wholes.into_values());
    rows.sort_by(|left, right| left.labels.cmp(&right.labels));
    rows
}

/// One row for the parts; a single part without an overall value stays as it is.
fn fold<'a>(parts: &[&'a MetricRecord], whole: Option<&Row<'a>>, over: Vec<&'a str>) -> Option<Row<'a>> {
    let (first, others) = parts.split_first()?;
    if whole.is_none() && others.is_empty() {
        return Row::of(first);
    }
    let mut values: Vec<MetricValue> = parts.iter().filter_map(|part| part.value).collect();
    values.sort_by(|left, right| left.as_f64().total_cmp(&right.as_f64()));
    let range = Some((*values.first()?, *values.last()?));
    let partial = parts.iter().any(|part| part.partial);
    if let Some(whole) = whole {
        return Some(Row {
            range,
            partial: partial || whole.partial,
            over,
            ..whole.clone()
        });
    }
    let median = Distribution::from_samples(values.iter().map(|value| value.as_f64()))
        .ok()?
        .median();
    Some(Row {
        metric: first,
        labels: labels_of(first)
            .filter(|(key, _)| !FOLDED.contains(key))
            .collect(),
        // The middle one of counts is a count.
        value: values
            .into_iter()
            .find(|value| value.as_f64() == median)
            .unwrap_or(MetricValue::Number(median)),
        n: None,
        median_of: Some(parts.len()),
        range,
        partial,
        over,
    })
}

impl<'a> Row<'a> {
    /// A metric as it is; none if it has no value.
    pub(super) fn of(metric: &'a MetricRecord) -> Option<Self> {
        Some(Self {
            metric,
            labels: labels_of(metric).collect(),
            value: metric.value?,
            n: Some(metric.n),
            median_of: None,
            range: None,
            partial: metric.partial,
            over: Vec::new(),
        })
    }
}

fn labels_of(metric: &MetricRecord) -> impl Iterator<Item = (&str, &str)> {
    let pairs = metric.labels.iter();
    pairs.map(|(key, value)| (key.as_str(), value.as_str()))
}

/// Labels in an order that puts layer 2 before layer 10.
fn natural(metric: &MetricRecord) -> Vec<(String, u64, String)> {
    labels_of(metric)
        .map(|(key, value)| {
            (
                key.to_owned(),
                value.parse().unwrap_or(u64::MAX),
                value.to_owned(),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::record::sample;
    use super::MetricValue::{Count, Number};
    use super::*;

    /// Counts 0, 1, 2, … of one metric with these labels.
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
            value: Some(Count(index as u64)),
            ..template.clone()
        };
        labels.iter().enumerate().map(of).collect()
    }

    #[test]
    fn layers_are_the_range_of_the_overall_value_of_their_phase() {
        let all = metrics(&[
            &[("phase", "decode")],
            &[("layer", "0"), ("phase", "decode")],
            &[("layer", "1"), ("phase", "decode")],
            &[("layer", "0"), ("phase", "prefill")],
            &[("phase", "load")],
        ]);
        let folded = folded(&all.iter().collect::<Vec<_>>());
        let rows = &folded.blocks[&vec!["layer"]];
        assert_eq!(
            (folded.blocks.len(), folded.rankings.len(), rows.len()),
            (1, 0, 3)
        );
        let decode = rows
            .iter()
            .find(|row| row.labels == [("phase", "decode")])
            .unwrap();
        assert_eq!(
            (decode.value, decode.n, decode.median_of),
            (Count(0), Some(40), None)
        );
        assert_eq!(decode.range, Some((Count(1), Count(2))));
        let single = rows.iter().find(|row| row.labels.len() == 2).unwrap();
        assert_eq!(
            (single.value, single.range),
            (Count(3), None),
            "one part stays as it is"
        );
        let load = rows.iter().find(|row| row.labels == [("phase", "load")]).unwrap();
        assert_eq!((load.value, load.range), (Count(4), None));
    }

    #[test]
    fn parts_alone_give_their_median_and_experts_are_apart_from_layers() {
        let all = metrics(&[
            &[("expert", "0")],
            &[("expert", "1")],
            &[("layer", "0")],
            &[("layer", "1")],
            &[("layer", "2")],
        ]);
        let folded = folded(&all.iter().collect::<Vec<_>>());
        let experts = &folded.blocks[&vec!["expert"]][0];
        assert_eq!(
            (experts.value, experts.median_of, experts.n),
            (Number(0.5), Some(2), None)
        );
        let layers = &folded.blocks[&vec!["layer"]][0];
        assert_eq!((layers.value, layers.median_of), (Count(3), Some(3)));
        assert_eq!(layers.range, Some((Count(2), Count(4))));
    }

    #[test]
    fn many_values_of_any_label_become_a_ranking() {
        let names: Vec<String> = (0..9).map(|index| index.to_string()).collect();
        let labels: Vec<[(&str, &str); 1]> = names.iter().map(|name| [("tensor", name.as_str())]).collect();
        let all = metrics(&labels.iter().map(|label| label.as_slice()).collect::<Vec<_>>());
        let folded = folded(&all.iter().collect::<Vec<_>>());
        assert!(folded.blocks.is_empty());
        assert_eq!(folded.rankings.len(), 1);
        assert_eq!(folded.rankings[0].len(), 9);
    }

    #[test]
    fn unfolded_lists_overall_values_first_and_layers_by_number() {
        let all = metrics(&[&[("layer", "10")], &[("layer", "2")], &[("phase", "decode")]]);
        let values: Vec<MetricValue> = unfolded(&all.iter().collect::<Vec<_>>())
            .iter()
            .map(|row| row.value)
            .collect();
        assert_eq!(values, [Count(2), Count(1), Count(0)]);
    }
}
