//! Labels as the table shows them.

use super::fold::{Labels, Row};
use super::format::clean;

/// A space at which no line is broken; shown as a space.
pub(super) const TIE: char = '\u{a0}';

/// Keys whose values speak for themselves: `decode` needs no `phase=` before it.
const BARE: [&str; 3] = ["op", "phase", "stat"];

/// Labels in one line, those without their key first.
pub(super) fn text<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let (bare, keyed): (Labels<'a>, Labels<'a>) = labels.into_iter().partition(|(key, _)| BARE.contains(key));
    let bare = bare.into_iter().map(|(_, value)| value.to_owned());
    let keyed = keyed.into_iter().map(|(key, value)| format!("{key}={value}"));
    clean(&bare.chain(keyed).collect::<Vec<_>>().join(" "))
}

/// Says that a value is from a part of the run only; empty otherwise.
pub(super) fn partial(row: &Row<'_>) -> String {
    if row.partial {
        "(partial)".to_owned()
    } else {
        String::new()
    }
}

/// Labels and remarks in one line, without the empty ones.
pub(super) fn with_remarks(parts: &[String]) -> String {
    let parts: Vec<&str> = parts
        .iter()
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
    parts.join(" ")
}

/// The labels with a key that all rows have, if there is more than one row: they are told once.
pub(super) fn common<'a>(rows: &[Row<'a>]) -> Labels<'a> {
    let Some((first, others)) = rows.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Vec::new();
    };
    let shared = first.labels.iter().copied();
    shared
        .filter(|label| !BARE.contains(&label.0) && others.iter().all(|row| row.labels.contains(label)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::record::sample;
    use super::*;

    #[test]
    fn keys_are_told_where_the_value_does_not_speak_for_itself() {
        let labels = [
            ("from", "due"),
            ("layer", "3"),
            ("op", "qkv"),
            ("phase", "decode"),
        ];
        assert_eq!(text(labels), "qkv decode from=due layer=3");
        assert_eq!(text([("x", "a\nb")]), "x=a\\nb");
        assert_eq!(text([]), "");
    }

    #[test]
    fn labels_of_all_rows_are_common_but_a_phase_is_not() {
        let record = sample::record();
        let row = |labels: Labels<'static>| Row {
            labels,
            ..record.metrics.iter().find_map(Row::of).unwrap()
        };
        let decode = row(vec![("format", "e4m3"), ("phase", "decode"), ("tensor", "q")]);
        let other = row(vec![("format", "e4m3"), ("phase", "decode"), ("tensor", "k")]);
        assert_eq!(common(&[decode.clone(), other]), [("format", "e4m3")]);
        assert_eq!(common(&[decode]), []);
    }
}
