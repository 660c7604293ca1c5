//! What the collectors found.

use std::collections::{BTreeMap, BTreeSet};

use lm_bench_plugin::MetricKind;

use super::super::record::{IntervalRecord, MetricRecord, MetricValue, PercentileRecord, RunRecord};
use super::fold::{Row, rows};
use super::format::{NONE, clean, count, number, quantity, unit};
use super::style::Style;
use super::{finish, heading, table, wrap};
use crate::stats::Percent;

/// Distributions that are not per layer (all of them with detail): mean with interval, percentiles, largest sample.
pub(super) fn distributions(record: &RunRecord, style: Style) -> String {
    let shown: Vec<&MetricRecord> = record
        .metrics
        .iter()
        .filter(|metric| metric.mean.is_some() && is_whole(metric, style))
        .collect();
    if shown.is_empty() {
        return String::new();
    }
    let percentiles: BTreeSet<Percent> = shown
        .iter()
        .flat_map(|metric| metric.percentiles.keys().copied())
        .collect();
    let names: Vec<String> = percentiles.iter().map(Percent::to_string).collect();
    let mut header = vec!["distribution", "unit", "n", "mean", "95 % interval"];
    header.extend(names.iter().map(String::as_str));
    header.push("max");
    let mut table = table(style, &header);
    let mut needs = BTreeMap::new();
    for metric in shown {
        let mut row = vec![title(metric), unit(&metric.unit), count(metric.n)];
        row.extend([
            metric.mean.map_or(NONE.to_owned(), number),
            interval(metric.interval),
        ]);
        for percent in &percentiles {
            let found = metric.percentiles.get(percent);
            row.push(found.map_or(NONE.to_owned(), |found| percentile(found, style)));
            needs.extend(found.and_then(|found| found.needs).map(|needs| (*percent, needs)));
        }
        row.push(metric.max.map_or(NONE.to_owned(), number));
        table.add_row(row);
    }
    let right: Vec<usize> = (2..header.len()).collect();
    finish(table, style, &right) + &footnote(&needs, style)
}

fn is_whole(metric: &MetricRecord, style: Style) -> bool {
    style.detail || !metric.labels.contains_key("layer") && !metric.labels.contains_key("expert")
}

fn interval(interval: Option<IntervalRecord>) -> String {
    interval.map_or(NONE.to_owned(), |found| {
        format!("[{}, {}]", number(found.low), number(found.high))
    })
}

fn percentile(found: &PercentileRecord, style: Style) -> String {
    match (found.value, found.low, found.high) {
        (Some(value), Some(low), Some(high)) if style.detail => {
            format!("{} [{}, {}]", number(value), number(low), number(high))
        }
        (Some(value), ..) => number(value),
        (None, ..) => NONE.to_owned(),
    }
}

fn footnote(needs: &BTreeMap<Percent, u64>, style: Style) -> String {
    if needs.is_empty() {
        return String::new();
    }
    let each: Vec<String> = needs
        .iter()
        .map(|(percent, samples)| format!("{percent} {}", count(*samples)))
        .collect();
    wrap(
        style,
        "  - ",
        &format!("too few samples; needed: {}", each.join(", ")),
    ) + "\n"
}

/// Plugin, name and labels of a metric.
fn title(metric: &MetricRecord) -> String {
    let labels = labels(
        metric
            .labels
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str())),
    );
    let name = format!("{}.{}", metric.plugin, metric.name);
    clean(&if labels.is_empty() {
        name
    } else {
        format!("{name} {labels}")
    })
}

fn labels<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    pairs
        .map(|(key, value)| format!("{key}={value}"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Counters and gauges by plugin. Values per layer are folded to their smallest, middle and largest unless detail is
/// asked for; so are distributions per layer, by their means.
pub(super) fn values(record: &RunRecord, style: Style) -> String {
    let mut sections = Vec::new();
    for of_plugin in record.metrics.chunk_by(|left, right| left.plugin == right.plugin) {
        let shown: Vec<&MetricRecord> = of_plugin
            .iter()
            .filter(|metric| metric.value.is_some())
            .filter(|metric| metric.kind != MetricKind::Distribution || !is_whole(metric, style))
            .collect();
        let Some(first) = shown.first() else { continue };
        let rows = rows(&shown, style.detail);
        let folded = rows.iter().any(|row| matches!(row, Row::Many { .. }));
        let plugin = clean(&first.plugin);
        let mut header = vec![plugin.as_str(), "of", "unit", "n", "value"];
        header.extend(["min", "max"].iter().filter(|_| folded));
        let mut table = table(style, &header);
        for row in &rows {
            table.add_row(cells(row).into_iter().take(header.len()));
        }
        sections.push(finish(table, style, &[3, 4, 5, 6]));
    }
    sections.join("\n")
}

/// Name, labels, unit, samples, value, smallest and largest value.
fn cells(row: &Row<'_>) -> Vec<String> {
    match row {
        Row::One(metric) => {
            let (value, unit) = metric.value.map_or_else(
                || (NONE.to_owned(), unit(&metric.unit)),
                |value| quantity(value, &metric.unit),
            );
            let of = labels(
                metric
                    .labels
                    .iter()
                    .map(|(key, value)| (key.as_str(), value.as_str())),
            );
            let blank = String::new();
            vec![
                clean(&metric.name),
                clean(&of),
                unit,
                count(metric.n),
                value,
                blank.clone(),
                blank,
            ]
        }
        Row::Many {
            first,
            shared,
            over,
            count: values,
            min,
            median,
            max,
        } => {
            let over = format!("(median of {values} over {})", over.join(", "));
            let of = [labels(shared.iter().map(|(key, value)| (*key, *value))), over].join(" ");
            // One prefix for all three: that of the largest magnitude.
            let largest = if min.abs() > max.abs() { *min } else { *max };
            let (_, unit) = quantity(MetricValue::Number(largest), &first.unit);
            let factor = scale(largest, &first.unit);
            let mut cells = vec![clean(&first.name), clean(of.trim()), unit, String::new()];
            cells.extend([median, min, max].map(|value| number(value / factor)));
            cells
        }
    }
}

/// What [`quantity`] divides by.
fn scale(largest: f64, unit: &str) -> f64 {
    let (plain, prefixed) = (
        super::format::unit(unit),
        quantity(MetricValue::Number(largest), unit).1,
    );
    let prefix = prefixed.strip_suffix(&plain).unwrap_or("");
    let power = ["", "k", "M", "G", "T", "P", "E"]
        .iter()
        .position(|known| *known == prefix)
        .unwrap_or(0);
    1000f64.powi(power as i32)
}

/// Metrics without a value, by plugin and reason.
pub(super) fn unavailable(record: &RunRecord, style: Style) -> String {
    let mut groups: BTreeMap<(&str, &str), BTreeMap<&str, u64>> = BTreeMap::new();
    for metric in record.metrics.iter().filter(|metric| metric.value.is_none()) {
        let reason = metric.reason.as_deref().unwrap_or("no reason was given");
        *groups
            .entry((&metric.plugin, reason))
            .or_default()
            .entry(&metric.name)
            .or_default() += 1;
    }
    if groups.is_empty() {
        return String::new();
    }
    let mut text = heading(style, "Unavailable");
    for ((plugin, reason), names) in groups {
        let each = names.iter().map(|(name, times)| match times {
            1 => (*name).to_owned(),
            _ => format!("{name} ({times})"),
        });
        let names = each.collect::<Vec<_>>().join(", ");
        text += &wrap(style, "  ", &clean(&format!("{plugin}: {names}: {reason}")));
        text.push('\n');
    }
    text
}
