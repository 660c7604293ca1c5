//! Counters and gauges.

use std::collections::BTreeMap;

use lm_bench_plugin::MetricKind;

use super::super::record::{MetricRecord, RunRecord};
use super::fold::{Folded, Row, folded, is_part, unfolded};
use super::format::{Scale, clean, count};
use super::grid::Grid;
use super::style::Style;
use super::{labels, ranking, wrap};

/// Values by plugin. Those per layer or expert are shown as a range beside the overall value unless detail is asked for;
/// so are the means of distributions per layer.
pub(super) fn render(record: &RunRecord, style: Style) -> String {
    let mut sections = Vec::new();
    for of_plugin in record.metrics.chunk_by(|left, right| left.plugin == right.plugin) {
        let shown = shown(of_plugin, style);
        let scales = scales(&shown);
        if style.detail {
            let rows = unfolded(&shown);
            sections.extend(block(&rows, None, &scales).map(|grid| grid.render(style)));
            continue;
        }
        let Folded { blocks, rankings } = folded(&shown);
        let mut parts = Vec::new();
        // Reversed: layers before experts.
        for (over, rows) in blocks.iter().rev() {
            let common = labels::common(rows);
            let grid = block(rows, Some(over), &scales).map(|grid| grid.render(style));
            let note = labels::text(common);
            let note = if note.is_empty() {
                note
            } else {
                wrap(style, "  ", &format!("each with {note}")) + "\n"
            };
            parts.extend(grid.map(|grid| grid + &note));
        }
        let scale_of = |rows: &[Row<'_>]| {
            let scale = rows.first().and_then(|row| scales.get(row.metric.name.as_str()));
            scale.copied().unwrap_or_default()
        };
        parts.extend(
            rankings
                .iter()
                .map(|rows| ranking::render(rows, scale_of(rows), style)),
        );
        sections.extend(parts);
    }
    sections.join("\n")
}

/// The metrics of a plugin that have a value; of distributions those per layer, with the whole that they belong to.
fn shown(of_plugin: &[MetricRecord], style: Style) -> Vec<&MetricRecord> {
    let has_parts = |metric: &MetricRecord| {
        of_plugin
            .iter()
            .any(|other| other.name == metric.name && is_part(other))
    };
    let valued = of_plugin.iter().filter(|metric| metric.value.is_some());
    valued
        .filter(|metric| metric.kind != MetricKind::Distribution || !style.detail && has_parts(metric))
        .collect()
}

/// One scale per metric, that of its largest value.
fn scales<'a>(metrics: &[&'a MetricRecord]) -> BTreeMap<&'a str, Scale> {
    let same_name = metrics.chunk_by(|left, right| left.name == right.name);
    same_name
        .map(|metrics| {
            let values = metrics.iter().filter_map(|metric| metric.value);
            let largest = values.map(|value| value.as_f64().abs()).fold(0.0, f64::max);
            (metrics[0].name.as_str(), Scale::of(largest, &metrics[0].unit))
        })
        .collect()
}

/// The table of rows that are folded over the same labels; none without rows.
fn block(rows: &[Row<'_>], over: Option<&[&str]>, scales: &BTreeMap<&str, Scale>) -> Option<Grid> {
    let first = rows.first()?;
    let common = over.map_or(Vec::new(), |_| labels::common(rows));
    let over = over.unwrap_or_default().join("+");
    let mut grid = Grid::default()
        .text(&clean(&first.metric.plugin))
        .text("of")
        .word("unit")
        .spare("n")
        .number("value")
        .spare(&format!("min {over}"))
        .spare(&format!("max {over}"));
    for row in rows {
        let (name, unit) = (row.metric.name.as_str(), row.metric.unit.as_str());
        let scale = scales.get(name).copied().unwrap_or_default();
        let own = row.labels.iter().copied().filter(|label| !common.contains(label));
        let (min, max) = row.range.unzip();
        let blank = |value: Option<_>| value.map_or(String::new(), |value| scale.value(value, unit));
        grid.push([
            clean(name),
            labels::with_remarks(&[labels::text(own), statistic(row), labels::partial(row)]),
            clean(&scale.unit(unit)),
            row.n.map_or(String::new(), count),
            scale.value(row.value, unit),
            blank(min),
            blank(max),
        ]);
    }
    Some(grid)
}

/// What the value is where it is not simply the metric's own.
fn statistic(row: &Row<'_>) -> String {
    match (row.median_of, row.metric.kind) {
        (Some(parts), MetricKind::Distribution) => format!("(median of {parts} means)"),
        (Some(parts), _) => format!("(median of {parts})"),
        (None, MetricKind::Distribution) => "(mean)".to_owned(),
        (None, _) => String::new(),
    }
}
