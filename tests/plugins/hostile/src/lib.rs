//! A collector that misbehaves as its configuration says, for the tests of the doors.

mod misdeeds;

use lm_bench_plugin::kinds::token;
use lm_bench_plugin::{
    Batch, Col, Collector, Cx, Fault, Info, LogLevel, MetricDef, Resolved, RunInfo, Sink, Subscription, Want,
    export,
};
use schemars::JsonSchema;
use serde::Deserialize;

use misdeeds::Mode;

/// What to do wrong, and when.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What to do.
    mode: Mode,
    /// The call in which to do it.
    at: At,
    /// Batches that go well before.
    after: u64,
}

/// A call of the contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum At {
    /// `subscribe`.
    Subscribe,
    /// `new`.
    Open,
    /// `on_batch`.
    #[default]
    Batch,
    /// `checkpoint`.
    Checkpoint,
    /// `finish`.
    Finish,
}

/// Counts rows until it misbehaves.
#[derive(Debug)]
pub struct Hostile {
    config: Config,
    index: Col<u32>,
    batches: u64,
    rows: u64,
    lost: u64,
    weighted: f64,
    sum: u64,
}

const ROWS: MetricDef = MetricDef::counter("rows")
    .formula("count(token)")
    .labels(&["at", "of"]);
const RATIO: MetricDef = MetricDef::gauge("mean_index", "1")
    .formula("sum(index) / count(token)")
    .labels(&["of"]);
const TIMES: MetricDef = MetricDef::distribution("batches", "1")
    .formula("histogram of the number of batches")
    .labels(&["of"]);

impl Hostile {
    fn act(&self, at: At) -> Result<(), Fault> {
        if self.config.at == at && self.batches >= self.config.after {
            self.config.mode.act()
        } else {
            Ok(())
        }
    }

    fn report(&self, sink: &mut Sink<'_>, at: At) {
        sink.counter(&ROWS, &[], self.rows);
        sink.ratio(
            &RATIO,
            &[("of", "index")],
            self.rows,
            (self.sum as f64, self.rows as f64),
        );
        sink.gauge(&RATIO, &[("of", "weight")], self.rows, self.weighted);
        sink.distribution(&TIMES, &[], vec![(self.batches as f64, 1 + self.lost)]);
        if self.config.at == at && self.batches >= self.config.after {
            self.config.mode.report(sink);
        }
    }
}

impl Collector for Hostile {
    const INFO: Info = Info {
        id: "hostile",
        version: env!("CARGO_PKG_VERSION"),
        about: "misbehaves as it is told",
        license: "MIT OR Apache-2.0",
    };
    const METRICS: &'static [MetricDef] = &[ROWS, RATIO, TIMES];
    type Config = Config;

    fn subscribe(config: &Config, _: &RunInfo) -> Result<Subscription, Fault> {
        if config.at == At::Subscribe {
            config.mode.act()?;
        }
        let want = Want::kind(token::KIND).column(token::COLUMNS.index);
        Ok(config.mode.subscription(want))
    }

    fn new(config: Config, _: &RunInfo, resolved: &Resolved) -> Result<Self, Fault> {
        if config.at == At::Open {
            config.mode.act()?;
        }
        let index = resolved.kind(token::KIND)?.column(token::COLUMNS.index)?;
        Ok(Self {
            config,
            index,
            batches: 0,
            rows: 0,
            lost: 0,
            weighted: 0.0,
            sum: 0,
        })
    }

    fn on_batch(&mut self, batch: &Batch<'_>, cx: &mut Cx<'_>) -> Result<(), Fault> {
        if self.config.mode == Mode::LogFlood && self.config.at == At::Batch {
            (0..100_000).for_each(|_| cx.log(LogLevel::Info, "a line that nobody needs"));
        }
        self.act(At::Batch)?;
        self.batches += 1;
        self.rows += batch.len() as u64;
        self.weighted += batch.weight * batch.len() as f64;
        self.sum += batch
            .get(self.index)
            .iter()
            .map(|index| u64::from(*index))
            .sum::<u64>();
        Ok(())
    }

    fn on_loss(&mut self, _: u16, rows: u64) {
        self.lost += rows;
    }

    fn checkpoint(&mut self, sink: &mut Sink<'_>) -> Result<(), Fault> {
        self.act(At::Checkpoint)?;
        self.report(sink, At::Checkpoint);
        Ok(())
    }

    fn finish(self, sink: &mut Sink<'_>) -> Result<(), Fault> {
        self.act(At::Finish)?;
        self.report(sink, At::Finish);
        Ok(())
    }
}

export!(Hostile);
