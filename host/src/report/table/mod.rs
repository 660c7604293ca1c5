//! The record for people: the verdict, what ran, the headline numbers, distributions, the collectors' values, what they
//! cost, and the verdict again, where the eye is when the run is over.

use super::record::RunRecord;

mod distributions;
mod fold;
mod format;
mod grid;
mod headline;
mod labels;
mod observer;
mod plugins;
mod probes;
mod ranking;
mod style;
#[cfg(test)]
mod tests;
mod unavailable;
mod values;

use style::Paint;
pub use style::Style;

/// The record as text of `style.width` columns, with a line feed at its end.
pub fn render(record: &RunRecord, style: &Style) -> String {
    let sections = [
        headline::facts(record, *style),
        headline::numbers(record, *style),
        observer::render(record, *style),
        distributions::render(record, *style),
        values::render(record, *style),
        unavailable::render(record, *style),
        plugins::events(record, *style),
        plugins::account(record, *style),
        probes::account(record, *style),
        notes(record, *style),
    ];
    let mut text = sections
        .into_iter()
        .filter(|section| !section.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
        .replace(labels::TIE, " ");
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
    text + &reasons(record, style)
}

/// Why the result is invalid, a line each.
fn reasons(record: &RunRecord, style: Style) -> String {
    let reasons = record.verdict.reasons.iter();
    reasons
        .map(|reason| wrap(style, "  because ", &format::clean(&reason.text)) + "\n")
        .collect()
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
