//! A metric with many combinations of labels in few lines: the values that matter most, by phase.

use std::collections::BTreeMap;

use lm_bench_plugin::{Direction, MetricKind};

use super::fold::{MAX_ROWS, Row};
use super::format::{Scale, clean, count};
use super::labels::{self, TIE};
use super::style::Style;
use super::wrap;

/// Names the metric, then a paragraph per phase.
pub(super) fn render(rows: &[Row<'_>], scale: Scale, style: Style) -> String {
    let Some(first) = rows.first() else {
        return String::new();
    };
    let metric = first.metric;
    // Where more is better the smallest values are those to look at.
    let smallest_first = metric.direction == Direction::Higher;
    let mean = if metric.kind == MetricKind::Distribution {
        " mean"
    } else {
        ""
    };
    let unit = match clean(&scale.unit(&metric.unit)) {
        unit if unit.is_empty() => unit,
        unit => format!(" in {unit}"),
    };
    let order = if smallest_first { "smallest" } else { "largest" };
    let name = clean(&format!("{}.{}", metric.plugin, metric.name));
    let partial = match rows.iter().any(|row| row.partial) {
        true => " (partial)",
        false => "",
    };
    let title = format!("{name}{partial}:{mean}{unit}, {order} first (all with --detail)").replace(":,", ":");
    let mut text = wrap(style, "  ", &title) + "\n";
    let mut phases: BTreeMap<&str, Vec<&Row<'_>>> = BTreeMap::new();
    for row in rows {
        let phase = row.labels.iter().find(|(key, _)| *key == "phase");
        phases
            .entry(phase.map_or("", |(_, value)| value))
            .or_default()
            .push(row);
    }
    let longest = phases
        .keys()
        .map(|phase| phase.chars().count())
        .max()
        .unwrap_or(0);
    for (phase, mut rows) in phases {
        rows.sort_by(|left, right| {
            let order = left.value.as_f64().total_cmp(&right.value.as_f64());
            if smallest_first { order } else { order.reverse() }
        });
        let lead = if longest == 0 {
            "    ".to_owned()
        } else {
            format!("    {:<longest$}  ", clean(phase))
        };
        text += &(wrap(style, &lead, &items(&rows, scale)) + "\n");
    }
    text
}

/// The first rows with their values, and how many more there are.
fn items(rows: &[&Row<'_>], scale: Scale) -> String {
    let item = |row: &&Row<'_>| {
        let labels = row.labels.iter().copied().filter(|(key, _)| *key != "phase");
        let value = scale.value(row.value, &row.metric.unit);
        format!("{} {value}", labels::text(labels))
            .trim()
            .replace(' ', &TIE.to_string())
    };
    let mut items: Vec<String> = rows.iter().take(MAX_ROWS).map(item).collect();
    let more = rows.len().saturating_sub(MAX_ROWS);
    if more > 0 {
        items.push(format!("{}{TIE}more", count(more as u64)));
    }
    let samples = rows.iter().filter_map(|row| row.n);
    let (least, most) = (samples.clone().min(), samples.max());
    let samples = match (least, most) {
        (Some(least), Some(most)) if least < most => {
            format!("; n{TIE}{}{TIE}to{TIE}{}", count(least), count(most))
        }
        (Some(all), _) => format!("; n{TIE}{}", count(all)),
        (None, _) => String::new(),
    };
    items.join(", ") + &samples
}

#[cfg(test)]
mod tests {
    use super::super::super::record::{MetricRecord, MetricValue, sample};
    use super::super::fold::{Labels, Row};
    use super::*;

    fn row<'a>(metric: &'a MetricRecord, labels: Labels<'a>, value: f64) -> Row<'a> {
        Row {
            labels,
            value: MetricValue::Number(value),
            ..Row::of(metric).unwrap()
        }
    }

    #[test]
    fn the_six_largest_of_each_phase() {
        let mut metric = sample::record().metrics.remove(0);
        (metric.direction, metric.unit, metric.n) = (Direction::Lower, "us".to_owned(), 4);
        metric.partial = false;
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let mut rows: Vec<Row<'_>> = names
            .iter()
            .zip(1..)
            .map(|(name, value)| {
                row(
                    &metric,
                    vec![("op", *name), ("phase", "decode")],
                    f64::from(value),
                )
            })
            .collect();
        rows.push(row(&metric, vec![("op", "a"), ("phase", "load")], 0.5));
        let text = render(&rows, Scale::default(), Style::PLAIN).replace(TIE, " ");
        assert_eq!(
            text,
            "  attention-efficiency.achieved_flops: in us, largest first (all with --detail)\n    \
             decode  h 8.000, g 7.000, f 6.000, e 5.000, d 4.000, c 3.000, 2 more; n 4\n    \
             load    a 0.5000; n 4\n"
        );
    }

    #[test]
    fn the_smallest_come_first_where_more_is_better() {
        let mut metric = sample::record().metrics.remove(0);
        (metric.direction, metric.unit) = (Direction::Higher, "1".to_owned());
        let rows = [
            row(&metric, vec![("tensor", "q")], 3.0),
            row(&metric, vec![("tensor", "k")], 1.0),
        ];
        let text = render(&rows, Scale::default(), Style::PLAIN).replace(TIE, " ");
        assert!(
            text.contains("achieved_flops (partial): smallest first"),
            "{text}"
        );
        assert!(
            text.contains("\n    tensor=k 1.000, tensor=q 3.000; n 40\n"),
            "{text}"
        );
    }
}
