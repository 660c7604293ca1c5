use super::super::record::{Note, sample};
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

#[test]
fn no_line_is_wider_than_asked() {
    for width in [60, 80, 100, 200] {
        let text = render(
            &sample::record(),
            &Style {
                width,
                ..Style::PLAIN
            },
        );
        for line in text.lines() {
            assert!(line.chars().count() <= usize::from(width), "{width}: {line}");
        }
    }
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
fn an_invalid_result_ends_with_its_reasons() {
    let mut record = sample::record();
    record.judge(vec![Note::new("lag", "the client fell behind its schedule")]);
    let text = render(&record, &Style::PLAIN);
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
