//! The record for people: what ran, the headline numbers, distributions, the collectors' values, what they cost, and the
//! verdict last, where the eye is when the run is over.

use super::record::RunRecord;

mod fold;
mod format;
mod headline;
mod metrics;
mod plugins;
mod style;
#[cfg(test)]
mod tests;

use style::Paint;
pub use style::Style;

/// The record as text of `style.width` columns, with a line feed at its end.
pub fn render(record: &RunRecord, style: &Style) -> String {
    let sections = [
        headline::facts(record, *style),
        headline::numbers(record, *style),
        metrics::distributions(record, *style),
        metrics::values(record, *style),
        metrics::unavailable(record, *style),
        plugins::account(record, *style),
        plugins::events(record, *style),
        notes(record, *style),
    ];
    let mut text = sections
        .into_iter()
        .filter(|section| !section.is_empty())
        .collect::<Vec<_>>()
        .join("\n");
    if !style.unicode {
        text = text
            .chars()
            .map(|char| if char.is_ascii() { char } else { '?' })
            .collect();
    }
    text
}

/// Warnings and the verdict with its reasons.
fn notes(record: &RunRecord, style: Style) -> String {
    let mut text = String::new();
    for warning in &record.warnings {
        text += &style.paint(
            Paint::Caution,
            &wrap(style, "warning: ", &format::clean(&warning.text)),
        );
        text.push('\n');
    }
    if record.verdict.valid {
        text += &style.paint(Paint::Good, "Verdict: VALID");
        text.push('\n');
        return text;
    }
    text += &style.paint(Paint::Bad, "Verdict: INVALID");
    text.push('\n');
    for reason in &record.verdict.reasons {
        text += &wrap(style, "  because ", &format::clean(&reason.text));
        text.push('\n');
    }
    text
}

/// A section's heading.
fn heading(style: Style, text: &str) -> String {
    style.paint(Paint::Heading, text) + "\n"
}

/// Text broken at spaces to the width, its lines after the first indented below the end of `lead`.
fn wrap(style: Style, lead: &str, text: &str) -> String {
    let indent = lead.chars().count();
    let width = usize::from(style.width).max(indent + 20);
    let (mut lines, mut line) = (String::from(lead), indent);
    for (index, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        if index > 0 && line + 1 + length > width {
            lines.push('\n');
            lines.extend(std::iter::repeat_n(' ', indent));
            line = indent;
        } else if index > 0 {
            lines.push(' ');
            line += 1;
        }
        lines.push_str(word);
        line += length;
    }
    lines
}

/// An empty table of the style. Columns exist once a row was added.
fn table(style: Style, header: &[&str]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table
        .force_no_tty()
        .load_style(style.lines())
        .set_content_arrangement(comfy_table::ContentArrangement::Dynamic)
        .set_width(style.width)
        .set_header(header.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    table
}

/// The table as text, the columns in `right` aligned right and the others left. Names stay in one piece where they leave
/// room for the rest.
fn finish(mut table: comfy_table::Table, style: Style, right: &[usize]) -> String {
    let names = table.column_max_content_widths().first().copied().unwrap_or(0);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((if index == 0 { 2 } else { 0 }, 1));
        if index == 0 && names <= style.width / 2 {
            column.set_constraint(comfy_table::ColumnConstraint::ContentWidth);
        }
        if right.contains(&index) {
            column.set_cell_alignment(comfy_table::CellAlignment::Right);
        }
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned() + "\n");
    lines.collect()
}
