//! What the collectors cost, and what they were given.

use super::super::record::{PluginRecord, RunRecord};
use super::format::{NONE, bytes, clean, count, number};
use super::grid::Grid;
use super::style::Style;
use super::wrap;

/// The account of the plugins; the digests of their files in detail only.
pub(super) fn account(record: &RunRecord, style: Style) -> String {
    if record.plugins.is_empty() {
        return String::new();
    }
    let mut grid = Grid::default()
        .text("plugin")
        .text("version")
        .text("door")
        .number("rows")
        .number("lost")
        .spare("ns/row")
        .number("CPU %")
        .spare("memory")
        .text("state");
    for plugin in &record.plugins {
        grid.push([
            clean(&plugin.id),
            clean(&plugin.version),
            door(plugin),
            count(plugin.rows),
            count(plugin.lost),
            plugin.ns_per_row.map_or(NONE.to_owned(), number),
            plugin.cpu_share.map_or(NONE.to_owned(), percent),
            plugin.peak_memory.map_or(NONE.to_owned(), bytes),
            state(plugin).to_owned(),
        ]);
    }
    let detailed = record.plugins.iter().filter(|_| style.detail);
    let details = detailed.flat_map(|plugin| details(plugin, style));
    grid.render(style) + &details.collect::<String>()
}

/// Lines of a plugin that only the detailed table has.
fn details(plugin: &PluginRecord, style: Style) -> impl Iterator<Item = String> {
    let sha256 = plugin.sha256.as_ref().map(|sha256| format!("sha256 {sha256}"));
    let fuel = plugin.fuel.map(|fuel| format!("{} units of fuel", count(fuel)));
    let id = &plugin.id;
    let line = move |text: String| wrap(style, "  ", &clean(&format!("{id}: {text}"))) + "\n";
    sha256.into_iter().chain(fuel).map(line)
}

/// The door; for a native plugin also whether it shared this program's process.
fn door(plugin: &PluginRecord) -> String {
    match plugin.isolated {
        Some(false) => format!("{} in-process", plugin.door.name()),
        _ => plugin.door.name().to_owned(),
    }
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.01 {
        "<0.01".to_owned()
    } else {
        format!("{percent:.2}")
    }
}

fn state(plugin: &PluginRecord) -> &'static str {
    match (plugin.faults.is_empty(), plugin.partial) {
        (true, false) => "ok",
        (true, true) => "partial",
        (false, true) => "fault, partial",
        (false, false) => "fault",
    }
}

/// Rows of the event stream by kind.
pub(super) fn events(record: &RunRecord, style: Style) -> String {
    if record.events.is_empty() {
        return String::new();
    }
    let mut grid = Grid::default()
        .text("events")
        .number("rows")
        .number("lost")
        .text("sampled");
    for (kind, totals) in &record.events {
        let sampled = match (totals.weight, totals.least_weight) {
            (..=1, _) => "all".to_owned(),
            // Rows from before the first step are all there.
            (every, Some(1)) => format!("load and 1 step in {every}"),
            (every, _) => format!("1 step in {every}"),
        };
        grid.push([clean(kind), count(totals.rows), count(totals.lost), sampled]);
    }
    grid.render(style)
}
