//! What the collectors could not find out.

use std::collections::BTreeMap;

use super::super::record::RunRecord;
use super::format::clean;
use super::style::Style;
use super::{heading, wrap};

/// Metrics without a value, by plugin and reason.
pub(super) fn render(record: &RunRecord, style: Style) -> String {
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
