//! What the collectors cost, and what they were given.

use super::super::record::{PluginRecord, RunRecord};
use super::format::{NONE, bytes, clean, count, number};
use super::style::Style;
use super::{finish, table};

/// The account of the plugins; the digests of their files in detail only.
pub(super) fn account(record: &RunRecord, style: Style) -> String {
    if record.plugins.is_empty() {
        return String::new();
    }
    let mut header = vec![
        "plugin", "version", "door", "rows", "lost", "ns/row", "CPU %", "memory", "state",
    ];
    header.extend(style.detail.then_some("sha256"));
    let mut table = table(style, &header);
    for plugin in &record.plugins {
        let mut row = vec![
            clean(&plugin.id),
            clean(&plugin.version),
            clean(&plugin.door),
            count(plugin.rows),
            count(plugin.lost),
            plugin.ns_per_row.map_or(NONE.to_owned(), number),
            plugin.cpu_share.map_or(NONE.to_owned(), percent),
            plugin.peak_memory.map_or(NONE.to_owned(), bytes),
            state(plugin).to_owned(),
        ];
        row.extend(
            style
                .detail
                .then(|| plugin.sha256.as_deref().map_or(NONE.to_owned(), clean)),
        );
        table.add_row(row);
    }
    finish(table, style, &[3, 4, 5, 6, 7])
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
        (true, _) => "ok",
        (false, true) => "fault, partial",
        (false, false) => "fault",
    }
}

/// Rows of the event stream by kind.
pub(super) fn events(record: &RunRecord, style: Style) -> String {
    if record.events.is_empty() {
        return String::new();
    }
    let mut table = table(style, &["events", "rows", "lost", "sampled"]);
    for (kind, totals) in &record.events {
        let sampled = if totals.weight > 1 {
            format!("1 step in {}", totals.weight)
        } else {
            "all".to_owned()
        };
        table.add_row([clean(kind), count(totals.rows), count(totals.lost), sampled]);
    }
    finish(table, style, &[1, 2])
}
