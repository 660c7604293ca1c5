//! A collector that can be told to break each rule.

use std::borrow::Cow;
use std::sync::Arc;

use super::*;
use crate::block::ColumnBuf;
use crate::column::{Col, ColumnDef, ElementType, KindDef, Level};
use crate::kinds::{step, token};
use crate::metric::{Metric, MetricDef, Sink, Value};
use crate::subscription::{Resolved, Sampling, Subscription, Want};
use crate::{Batch, Cx, Direction, Info};

const STEPS: MetricDef = MetricDef::gauge("steps", "1")
    .better(Direction::Higher)
    .formula("sum of weights")
    .about("Steps seen.")
    .labels(&["part"]);
const LOST: MetricDef = MetricDef::counter("lost")
    .formula("rows lost")
    .about("Rows lost.");
const STRAY: MetricDef = MetricDef::counter("stray").formula("-").about("Not declared.");
const VENDOR: Column<u32> = Column::new("vendor.acme.beat", "pulse");

#[derive(Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Config {
    rule: String,
    every: u32,
}

struct Sample {
    rule: String,
    tokens: Option<Col<u32>>,
    vendor: Option<Col<u32>>,
    sum: f64,
    batches: f64,
    lost: u64,
    saw_token_first: Option<bool>,
    checkpoints: f64,
}

impl Collector for Sample {
    const INFO: Info = Info {
        id: "sample",
        version: "1.0.0",
        about: "Counts.",
        license: "MIT",
    };
    const METRICS: &'static [MetricDef] = &[STEPS, LOST];
    type Config = Config;

    fn subscribe(config: &Config, _: &RunInfo) -> Result<Subscription, Fault> {
        let sampling = match config.every {
            0 => Sampling::All,
            n => Sampling::EveryNth(n),
        };
        let steps = Want::kind(step::KIND)
            .optional(step::COLUMNS.tokens)
            .sampling(sampling);
        let mut wants = vec![steps, Want::kind(token::KIND).column(token::COLUMNS.chunk)];
        if config.rule == "vendor" {
            wants.push(Want::kind(VENDOR.kind).column(VENDOR));
        }
        Ok(Subscription::new(wants).max_rows(3))
    }

    fn new(config: Config, _: &RunInfo, resolved: &Resolved) -> Result<Self, Fault> {
        let vendor = resolved
            .kind(VENDOR.kind)
            .ok()
            .map(|kind| kind.column(VENDOR))
            .transpose()?;
        Ok(Self {
            rule: config.rule,
            tokens: resolved.kind(step::KIND)?.optional(step::COLUMNS.tokens),
            vendor,
            sum: 0.0,
            batches: 0.0,
            lost: 0,
            saw_token_first: None,
            checkpoints: 0.0,
        })
    }

    fn on_batch(&mut self, batch: &Batch<'_>, cx: &mut Cx<'_>) -> Result<(), Fault> {
        self.batches += 1.0;
        self.saw_token_first.get_or_insert(batch.kind == 1);
        match (batch.kind, self.tokens, self.vendor) {
            (0, Some(tokens), _) => {
                for &tokens in batch.get(tokens) {
                    self.sum += batch.weight * f64::from(tokens);
                }
            }
            (2, _, Some(vendor)) => {
                self.sum += batch
                    .get(vendor)
                    .iter()
                    .map(|&pulse| f64::from(pulse))
                    .sum::<f64>();
            }
            _ => {}
        }
        if self.rule == "symbol" {
            let text = cx.symbol(1).ok_or_else(|| Fault::data("no symbol"))?;
            cx.log(crate::LogLevel::Info, &text);
        }
        Ok(())
    }

    fn on_loss(&mut self, _: u16, rows: u64) {
        self.lost += rows;
    }

    fn checkpoint(&mut self, sink: &mut Sink<'_>) -> Result<(), Fault> {
        self.checkpoints += 1.0;
        sink.counter(&LOST, &[], self.lost);
        match self.rule.as_str() {
            "undeclared" => sink.counter(&STRAY, &[], 1),
            "label" => sink.gauge(&STEPS, &[("layer", "0")], 1, 1.0),
            "kind" => sink.counter(&STEPS, &[], 1),
            "twice" => sink.gauge(&STEPS, &[], 1, 1.0),
            "distribution" => sink.distribution(&STEPS, &[], vec![(1.0, 1)]),
            "count checkpoints" => sink.gauge(&STEPS, &[("part", "x")], 1, self.checkpoints),
            "count batches" => sink.gauge(&STEPS, &[("part", "x")], 1, self.batches),
            "order" => {
                let first = f64::from(u8::from(self.saw_token_first == Some(true)));
                sink.gauge(&STEPS, &[("part", "x")], 1, first);
            }
            "reason" => sink.unavailable(&STEPS, &[("part", "x")], ""),
            "fault" => return Err(Fault::data("as told")),
            _ => {}
        }
        sink.gauge(&STEPS, &[], 1, self.sum);
        Ok(())
    }
}

fn test(rule: &str) -> CollectorTest<Sample> {
    let mut test = CollectorTest::new().config(&format!(r#"{{"rule":"{rule}"}}"#));
    for tokens in [1, 2, 3, 4] {
        test.row(&step::Row {
            tokens,
            ..Default::default()
        });
    }
    test.row(&token::Row::default());
    test
}

fn broken(rule: &str) -> String {
    match test(rule).run() {
        Err(Failure::Contract(text)) => text,
        other => panic!("{rule}: {other:?}"),
    }
}

#[test]
fn a_sound_collector_gives_its_metrics() {
    let metrics = test("").metrics();
    metrics.assert("steps", &[], 10.0);
    assert_eq!(metrics.get("lost", &[]).value, Value::Counter(0));
    assert_eq!(metrics.find("steps", &[("part", "x")]), None);
}

#[test]
fn each_broken_rule_is_told() {
    for (rule, text) in [
        ("undeclared", "metric stray is not declared"),
        ("label", "does not declare the label layer"),
        ("kind", "declared as Gauge but reports Counter"),
        ("distribution", "declared as Gauge but reports Distribution"),
        ("twice", "is reported twice"),
        ("reason", "must give its reason"),
        ("count checkpoints", "two checkpoints in a row differ"),
        ("count batches", "depend on how rows are cut"),
        ("order", "depend on how rows are cut"),
    ] {
        let told = broken(rule);
        assert!(told.contains(text), "{rule}: {told}");
    }
}

#[test]
fn a_fault_of_the_collector_is_handed_on() {
    assert_eq!(test("fault").fault(), Fault::data("as told"));
    let fault = CollectorTest::<Sample>::new().config(r#"{"rules":1}"#).fault();
    assert!(fault.message.contains("unknown field `rules`"), "{fault}");
}

#[test]
fn weights_and_losses_reach_the_collector() {
    let mut test = CollectorTest::<Sample>::new();
    test.row(&step::Row {
        tokens: 1,
        ..Default::default()
    });
    test.lose(7).weight(8.0).row(&step::Row {
        tokens: 2,
        ..Default::default()
    });
    let metrics = test.metrics();
    metrics.assert("steps", &[], 17.0);
    metrics.assert("lost", &[], 7.0);
}

#[test]
fn sampling_keeps_the_first_of_each_n_rows() {
    // Rows 0 and 3 of 4 are kept, each with weight 3: 3 * (1 + 4).
    let test = test("").config(r#"{"every":3}"#);
    test.metrics().assert("steps", &[], 15.0);
}

#[test]
fn an_optional_column_may_be_absent_and_a_required_one_may_not() {
    test("")
        .without(step::COLUMNS.tokens)
        .metrics()
        .assert("steps", &[], 0.0);
    let refused = test("").without(token::COLUMNS.chunk).run();
    let text = "this host has no column chunk in kind token".to_owned();
    assert_eq!(refused, Err(Failure::Contract(text)));
}

#[test]
fn symbols_and_logs_are_served() {
    let mut test = test("symbol");
    assert_eq!(test.symbol("hello"), 1);
    assert_eq!(test.symbol("hello"), 1);
    assert_eq!(test.symbol(""), 0);
    assert_eq!(test.metrics().logs()[0].1, "hello");
}

#[test]
fn vendor_kinds_come_as_blocks() {
    let column = |name: &'static str, element| ColumnDef {
        name: Cow::Borrowed(name),
        element,
        list: false,
        unit: Cow::Borrowed("1"),
        since: Cow::Borrowed("1.0"),
        nonfinite: false,
        about: Cow::Borrowed(""),
    };
    let kind = Arc::new(KindDef {
        name: Cow::Borrowed(VENDOR.kind),
        level: Level::Off,
        since: Cow::Borrowed("1.0"),
        about: Cow::Borrowed(""),
        columns: Cow::Owned(vec![
            column("t_ns", ElementType::U64),
            column("pulse", ElementType::U32),
        ]),
    });
    let columns = vec![(1, ColumnBuf::U64(vec![0, 1])), (1, ColumnBuf::U32(vec![60, 70]))];
    let block = Block::from_columns(kind, 2, columns).expect("columns fit the kind");
    let mut test = test("vendor");
    test.block(&block);
    test.metrics().assert("steps", &[], 140.0);
}

#[test]
fn look_ups_tell_what_is_there() {
    let metrics = Metrics::new(
        vec![Metric {
            name: "a".to_owned(),
            labels: vec![("x".to_owned(), "1".to_owned())],
            value: Value::Unavailable("why".to_owned()),
            samples: 0,
        }],
        Vec::new(),
    );
    assert_eq!(metrics.unavailable("a", &[("x", "1")]), "why");
    assert_eq!(metrics.named("a").count(), 1);
    let told = std::panic::catch_unwind(|| metrics.value("a", &[])).expect_err("has other labels");
    let told = told.downcast_ref::<String>().expect("a formatted text");
    assert!(told.contains(r#"[("x", "1")]"#), "{told}");
}
