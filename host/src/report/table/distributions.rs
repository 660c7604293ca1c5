//! Distributions by plugin: mean, percentiles and the largest sample.

use std::collections::{BTreeMap, BTreeSet};

use super::super::record::{IntervalRecord, MetricRecord, PercentileRecord, RunRecord};
use super::fold::{Row, folded, is_part, unfolded};
use super::format::{NONE, Scale, clean, count, number};
use super::grid::Grid;
use super::style::Style;
use super::{labels, ranking, wrap};
use crate::stats::Percent;

/// Distributions that are not per layer (all of them with detail). Those with many labels are ranked by their means unless
/// detail is asked for.
pub(super) fn render(record: &RunRecord, style: Style) -> String {
    let shown: Vec<&MetricRecord> = record
        .metrics
        .iter()
        .filter(|metric| metric.mean.is_some() && (style.detail || !is_part(metric)))
        .collect();
    let percentiles: BTreeSet<Percent> = shown
        .iter()
        .flat_map(|metric| metric.percentiles.keys().copied())
        .collect();
    let mut sections = Vec::new();
    for of_plugin in shown.chunk_by(|left, right| left.plugin == right.plugin) {
        let (rows, rankings) = if style.detail {
            (unfolded(of_plugin), Vec::new())
        } else {
            let folded = folded(of_plugin);
            (folded.blocks.into_values().flatten().collect(), folded.rankings)
        };
        if !rows.is_empty() {
            sections.push(table(&rows, &percentiles, style) + &footnote(&rows, style));
        }
        let scale = Scale::default();
        sections.extend(rankings.iter().map(|rows| ranking::render(rows, scale, style)));
    }
    sections.join("\n")
}

/// The table of one plugin; with the intervals of the percentiles where detail is asked for and the width allows.
fn table(rows: &[Row<'_>], percentiles: &BTreeSet<Percent>, style: Style) -> String {
    let full = grid(rows, percentiles, style.detail, true);
    if style.detail && full.fits_whole(style) {
        return full.render(style);
    }
    grid(rows, percentiles, style.detail, false).render(style)
}

fn grid(rows: &[Row<'_>], percentiles: &BTreeSet<Percent>, detail: bool, intervals: bool) -> Grid {
    let plugin = rows.first().map_or("", |row| row.metric.plugin.as_str());
    let mut grid = Grid::default()
        .text(&clean(plugin))
        .text("of")
        .word("unit")
        .number("n")
        .number("mean");
    for percent in percentiles {
        grid = grid.spare(&percent.to_string());
    }
    grid = grid.number("max");
    if detail {
        grid = grid.spare("95 % interval");
    }
    for row in rows {
        let metric = row.metric;
        let mut cells = vec![
            clean(&metric.name),
            labels::with_remarks(&[labels::text(row.labels.iter().copied()), labels::partial(row)]),
            clean(&super::format::unit(&metric.unit)),
            count(metric.n),
            metric.mean.map_or(NONE.to_owned(), number),
        ];
        for percent in percentiles {
            let found = metric.percentiles.get(percent);
            cells.push(found.map_or(NONE.to_owned(), |found| percentile(found, intervals)));
        }
        cells.push(metric.max.map_or(NONE.to_owned(), number));
        cells.push(interval(metric.interval));
        grid.push(cells);
    }
    grid
}

fn interval(interval: Option<IntervalRecord>) -> String {
    interval.map_or(NONE.to_owned(), |found| {
        format!("[{}, {}]", number(found.low), number(found.high))
    })
}

fn percentile(found: &PercentileRecord, interval: bool) -> String {
    match (found.value, found.low, found.high) {
        (Some(value), Some(low), Some(high)) if interval => {
            format!("{} [{}, {}]", number(value), number(low), number(high))
        }
        (Some(value), ..) => number(value),
        (None, ..) => NONE.to_owned(),
    }
}

/// How many samples the percentiles need that are missing.
fn footnote(rows: &[Row<'_>], style: Style) -> String {
    let percentiles = rows.iter().flat_map(|row| &row.metric.percentiles);
    let needs: BTreeMap<Percent, u64> = percentiles
        .filter_map(|(percent, found)| Some((*percent, found.needs?)))
        .collect();
    if needs.is_empty() {
        return String::new();
    }
    let each: Vec<String> = needs
        .iter()
        .map(|(percent, samples)| format!("{percent} {}", count(*samples)))
        .collect();
    let text = format!("too few samples; needed: {}", each.join(", "));
    wrap(style, "  - ", &text) + "\n"
}
