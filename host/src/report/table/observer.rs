//! What being measured cost the engine.

use super::super::record::{Observed, ObserverEffect, Overhead, RunRecord};
use super::format::{NONE, number};
use super::grid::Grid;
use super::style::Style;
use super::wrap;

/// Times without and with observation, and what the difference covers; empty where it was not measured.
pub(super) fn render(record: &RunRecord, style: Style) -> String {
    let Some(effect) = &record.observer_effect else {
        return String::new();
    };
    let mut grid = Grid::default()
        .text("observer effect")
        .number("%")
        .number("95 % interval")
        .spare("bare ms")
        .spare("instrumented ms");
    for (name, figure) in effect.figures() {
        let interval = figure.interval.map_or(NONE.to_owned(), |found| {
            format!("[{}, {}]", percent(found.low), percent(found.high))
        });
        grid.push([
            name.to_owned(),
            figure.overhead_pct.map_or(NONE.to_owned(), percent),
            interval,
            figure.bare_ms.map_or(NONE.to_owned(), number),
            figure.instrumented_ms.map_or(NONE.to_owned(), number),
        ]);
    }
    grid.render(style) + &wrap(style, "  - ", &remark(effect)) + "\n"
}

/// Two decimals and a sign: a negative overhead is noise, and looks like it.
fn percent(value: f64) -> String {
    format!("{value:+.2}")
}

fn remark(effect: &ObserverEffect) -> String {
    let covers = match effect.covers {
        Observed::Recording => {
            "of recording alone: the collectors ran after the timed part (--collect live adds them)"
        }
        Observed::RecordingAndCollectors => {
            "of recording and collectors: wall time ends when they have had the iteration's last row"
        }
    };
    let pairs = effect.pairs;
    let mut text = format!("{pairs} pairs of a bare and an instrumented iteration, {covers}");
    if let Some(limit) = effect.max_overhead_pct {
        text += &format!("; at most {limit} % allowed");
    }
    let needs = effect
        .figures()
        .into_iter()
        .filter_map(|(_, Overhead { needs, .. })| *needs);
    if let Some(needs) = needs.max() {
        text += &format!("; needed for all figures: {needs} pairs (--num-iters)");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::super::record::sample;
    use super::*;

    #[test]
    fn it_says_what_the_figures_cover() {
        let mut record = sample::record();
        let text = render(&record, Style::PLAIN);
        assert!(text.contains("--collect live adds them"), "{text}");
        assert!(text.contains("at most 5 % allowed"), "{text}");
        let effect = record.observer_effect.as_mut().unwrap();
        effect.covers = Observed::RecordingAndCollectors;
        effect.prefill_latency = Overhead {
            needs: Some(16),
            ..Overhead::default()
        };
        let text = render(&record, Style::PLAIN);
        assert!(
            text.contains("recording and collectors") && text.contains("needed for all figures: 16"),
            "{text}"
        );
        let cells: Vec<&str> = text.lines().nth(2).unwrap().split_whitespace().collect();
        assert_eq!(cells, ["prefill_latency", "-", "-", "-", "-"]);
        record.observer_effect = None;
        assert_eq!(render(&record, Style::PLAIN), "");
    }
}
