//! What can be done wrong.

use std::hint::black_box;

use lm_bench_plugin::{Fault, MetricDef, Sampling, Sink, Subscription, Want};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{RATIO, ROWS, TIMES};

/// What to do wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    /// Nothing.
    #[default]
    None,
    /// Panic.
    Panic,
    /// Panic with a long text of several lines.
    LongPanic,
    /// Never return.
    Loop,
    /// Sleep for 150 ms, where the door has a clock.
    Sleep,
    /// Allocate without end.
    Alloc,
    /// Recurse without end.
    Recurse,
    /// Index out of bounds.
    OutOfBounds,
    /// Return a data fault.
    DataFault,
    /// Return a configuration fault.
    ConfigFault,
    /// Want a kind that there is not.
    UnknownKind,
    /// Want a column that there is not.
    UnknownColumn,
    /// Want a vendor's kind that there is not.
    VendorKind,
    /// Want the same kind twice.
    SameKindTwice,
    /// Want batches of no rows.
    NoRows,
    /// Want batches of three rows.
    ThreeRows,
    /// Want one row of two.
    EverySecond,
    /// Want one row of none.
    EveryZeroth,
    /// Report a metric that is not declared.
    Undeclared,
    /// Report a metric with a bad name.
    BadName,
    /// Report a distribution with NaN.
    Nan,
    /// Report a distribution that descends.
    Descending,
    /// Report a distribution of a million values.
    HugeDistribution,
    /// Report 5,000 metrics.
    ManyMetrics,
    /// Report a metric with a long label.
    LongLabel,
    /// Report a metric with 17 labels.
    ManyLabels,
    /// Report a metric twice.
    Duplicate,
    /// Report a gauge where a counter is declared.
    WrongKind,
    /// Report a reason of 100,000 bytes, which is cut and no fault.
    LongReason,
    /// Write 100,000 lines to the log, which are limited and no fault.
    LogFlood,
}

impl Mode {
    /// Misbehaves in any call.
    pub(crate) fn act(self) -> Result<(), Fault> {
        match self {
            Self::Panic => panic!("told to panic"),
            Self::LongPanic => panic!("{}", "a line\n".repeat(10_000)),
            Self::Loop => spin(),
            Self::Sleep => sleep(),
            Self::Alloc => allocate(),
            Self::Recurse => {
                black_box(recurse(black_box(1)));
            }
            Self::OutOfBounds => {
                let values = black_box(vec![1_u64]);
                black_box(values[black_box(7)]);
            }
            Self::DataFault => return Err(Fault::data("told to find the data wrong")),
            Self::ConfigFault => return Err(Fault::config("told to dislike the configuration")),
            _ => {}
        }
        Ok(())
    }

    /// Turns a proper subscription into a bad one.
    pub(crate) fn subscription(self, mut want: Want) -> Subscription {
        match self {
            Self::UnknownKind => Subscription::new([want, Want::kind("colour")]),
            Self::UnknownColumn => {
                want.columns.push("colour".to_owned());
                Subscription::new([want])
            }
            Self::VendorKind => Subscription::new([Want::kind("vendor.acme.colour"), want]),
            Self::SameKindTwice => Subscription::new([want.clone(), want]),
            Self::NoRows => Subscription::new([want]).max_rows(0),
            Self::ThreeRows => Subscription::new([want]).max_rows(3),
            Self::EverySecond => Subscription::new([want.sampling(Sampling::EveryNth(2))]),
            Self::EveryZeroth => Subscription::new([want.sampling(Sampling::EveryNth(0))]),
            _ => Subscription::new([want]),
        }
    }

    /// Adds what must not be reported.
    pub(crate) fn report(self, sink: &mut Sink<'_>) {
        const UNDECLARED: MetricDef = MetricDef::counter("undeclared");
        const BAD_NAME: MetricDef = MetricDef::counter("Bad Name!");
        let long = "x".repeat(100_000);
        match self {
            Self::Undeclared => sink.counter(&UNDECLARED, &[], 1),
            Self::BadName => sink.counter(&BAD_NAME, &[], 1),
            Self::Nan => sink.distribution(&TIMES, &[("of", "nan")], vec![(f64::NAN, 1)]),
            Self::Descending => sink.distribution(&TIMES, &[("of", "all")], vec![(2.0, 1), (1.0, 1)]),
            Self::HugeDistribution => {
                let values = (0..1_000_000).map(|at| (f64::from(at), 1)).collect();
                sink.distribution(&TIMES, &[("of", "all")], values);
            }
            Self::ManyMetrics => {
                (0..5_000).for_each(|at| sink.counter(&ROWS, &[("at", &at.to_string())], 1));
            }
            Self::LongLabel => sink.counter(&ROWS, &[("of", &long)], 1),
            Self::ManyLabels => {
                let keys: Vec<String> = (0..17).map(|at| format!("l{at}")).collect();
                let labels: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), "v")).collect();
                sink.counter(&ROWS, &labels, 1);
            }
            Self::Duplicate => sink.counter(&ROWS, &[], 1),
            Self::WrongKind => sink.gauge(&ROWS, &[("of", "all")], 1, 0.5),
            Self::LongReason => sink.unavailable(&RATIO, &[("of", "nothing")], &long),
            _ => {}
        }
    }
}

fn spin() -> ! {
    let mut value = 1_u64;
    loop {
        value = black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn sleep() {
    std::thread::sleep(std::time::Duration::from_millis(150));
}

#[cfg(target_arch = "wasm32")]
fn sleep() {}

fn allocate() -> ! {
    let mut blocks = Vec::new();
    loop {
        blocks.push(black_box(vec![1_u8; 1 << 20]));
    }
}

#[expect(unconditional_recursion, reason = "that is what it is for")]
fn recurse(value: u64) -> u64 {
    let frame = black_box([value; 64]);
    recurse(frame[3] + 1) + frame[5]
}
