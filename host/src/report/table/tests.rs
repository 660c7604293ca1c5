use super::super::record::{IntervalRecord, MetricRecord, MetricValue, Note, sample};
use super::*;

#[test]
fn the_table_of_the_published_record() {
    insta::assert_snapshot!(render(&sample::record(), &Style::PLAIN));
}

#[test]
fn the_table_in_detail_with_unicode() {
    let style = Style {
        detail: true,
        unicode: true,
        width: 140,
        ..Style::PLAIN
    };
    insta::assert_snapshot!(render(&sample::record(), &style));
}

/// A record with what a run of all operator collectors has: many operators, long names, long labels, large numbers.
fn crowded() -> RunRecord {
    let mut record = sample::record();
    let of = |name: &str, plugin: &str| {
        let found = record.metrics.iter().find(|metric| metric.name == name);
        let mut metric = found.unwrap().clone();
        plugin.clone_into(&mut metric.plugin);
        metric
    };
    let (distribution, mut gauge) = (of("decode_step_ms", "latency"), of("achieved_flops", "attention"));
    gauge.partial = false;
    let labels = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    };
    let mut added = Vec::new();
    for (op, scale) in ["qkv", "norm", "embed", "router", "experts", "lm_head", "o_proj"]
        .into_iter()
        .zip([1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6])
    {
        let mut metric = distribution.clone();
        "op_latency_us".clone_into(&mut metric.name);
        "us".clone_into(&mut metric.unit);
        metric.labels = labels(&[("op", op), ("phase", "decode")]);
        metric.value = Some(MetricValue::Number(1.2345 * scale));
        metric.mean = Some(1.2345 * scale);
        metric.max = Some(9.8765 * scale);
        metric.interval = Some(IntervalRecord::new(-3.4871 * scale, 9.4106 * scale));
        added.push(metric);
    }
    for (phase, value) in [("decode", 2.77e9), ("prefill", 1.287e6)] {
        for layer in [None, Some("0"), Some("1")] {
            let mut metric = gauge.clone();
            "attention_bandwidth_utilization_of_peak".clone_into(&mut metric.name);
            metric.labels = labels(&[("phase", phase), ("peak", "measured read of 64 MiB")]);
            metric
                .labels
                .extend(layer.map(|layer| ("layer".to_owned(), layer.to_owned())));
            metric.value = Some(MetricValue::Number(value));
            added.push(metric);
        }
    }
    record.metrics.extend(added);
    record.metrics.sort_by(|left, right| {
        let key = |metric: &MetricRecord| (metric.plugin.clone(), metric.name.clone());
        key(left).cmp(&key(right))
    });
    record
}

#[test]
fn a_run_of_many_operators_and_layers() {
    insta::assert_snapshot!(render(&crowded(), &Style::PLAIN));
}

/// Pieces of a line that are made of digits.
fn numbers(text: &str) -> Vec<&str> {
    let mut numbers: Vec<&str> = text
        .split([' ', '\n', '[', ']'])
        .map(|word| word.trim_end_matches([',', ';']))
        .filter(|word| word.chars().any(|char| char.is_ascii_digit()))
        .collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn no_line_is_wider_than_asked_and_no_number_is_split() {
    for (record, detail) in [
        (sample::record(), false),
        (sample::record(), true),
        (crowded(), false),
        (crowded(), true),
    ] {
        let at = |width| {
            let style = Style {
                width,
                detail,
                ..Style::PLAIN
            };
            render(&record, &style)
        };
        // A digest, which detail shows, takes 64 columns.
        let narrowest = if detail { 80 } else { 60 };
        for width in [narrowest, 80, 100, 140, 160] {
            let text = at(width);
            for line in text.lines() {
                assert!(line.chars().count() <= usize::from(width), "{width}: {line}");
            }
            // The text without limits has every number in one piece.
            let wide = at(1000);
            let whole = numbers(&wide);
            let split = numbers(&text)
                .into_iter()
                .filter(|number| !whole.contains(number))
                .filter(|number| *number != width.to_string())
                .collect::<Vec<_>>();
            assert!(split.is_empty(), "{width}: {split:?}\n{text}");
        }
    }
}

#[test]
fn everything_has_room_in_eighty_columns() {
    for record in [sample::record(), crowded()] {
        let style = Style {
            width: 80,
            ..Style::PLAIN
        };
        let text = render(&record, &style);
        assert!(!text.contains("no room"), "{text}");
    }
}

#[test]
fn values_per_layer_share_the_row_of_the_overall_value() {
    let text = render(
        &crowded(),
        &Style {
            width: 140,
            ..Style::PLAIN
        },
    );
    let row = |of: &str| {
        let rows = text
            .lines()
            .filter(|line| line.contains("attention_bandwidth") && line.contains(of));
        rows.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect::<Vec<_>>()
    };
    let name = "attention_bandwidth_utilization_of_peak";
    assert_eq!(
        row("decode"),
        [format!("{name} decode Gflop/s 40 2.770 2.770 2.770")]
    );
    // The same unit as the larger value above it.
    let small = format!("{name} prefill Gflop/s 40 0.001287 0.001287 0.001287");
    assert_eq!(row("prefill"), [small]);
    assert!(
        text.contains("  each with peak=measured read of 64 MiB\n"),
        "{text}"
    );
}

#[test]
fn intervals_of_means_are_for_detail() {
    let of = |detail| {
        let style = Style {
            detail,
            ..Style::PLAIN
        };
        render(&sample::record(), &style)
    };
    assert!(!of(false).contains("[1.644, 1.665]"));
    assert!(of(true).contains("[1.644, 1.665]"));
}

#[test]
fn plain_text_is_ascii_without_escapes() {
    let mut record = sample::record();
    record.model.name = "模型\u{1b}[2J".to_owned();
    let text = render(&record, &Style::PLAIN);
    assert!(
        text.bytes()
            .all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)),
        "{text}"
    );
    let colored = render(
        &record,
        &Style {
            color: true,
            unicode: true,
            ..Style::PLAIN
        },
    );
    assert!(colored.contains("\u{1b}[1;32mVerdict: VALID\u{1b}[0m") && !colored.contains("\u{1b}[2J"));
}

#[test]
fn an_invalid_result_begins_and_ends_with_its_reasons() {
    let mut record = sample::record();
    record.judge(vec![Note::new("lag", "the client fell behind its schedule")]);
    let text = render(&record, &Style::PLAIN);
    let reason = "  because the client fell behind its schedule\n";
    assert!(
        text.starts_with(&format!("lm-bench 0.1.0: INVALID\n{reason}")),
        "{text}"
    );
    assert!(
        text.ends_with("Verdict: INVALID\n  because the client fell behind its schedule\n"),
        "{text}"
    );
}

#[test]
fn a_run_that_measured_nothing_renders() {
    let mut record = sample::record();
    record.headline = super::super::record::Headline::of(&[], None);
    record.counts = super::super::record::Counts {
        iterations_planned: 10,
        ..Default::default()
    };
    record.metrics.clear();
    record.plugins.clear();
    record.events.clear();
    record.judge(Vec::new());
    let text = render(&record, &Style::PLAIN);
    assert!(
        text.contains("INVALID") && text.contains("0 of 10 iterations"),
        "{text}"
    );
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}
