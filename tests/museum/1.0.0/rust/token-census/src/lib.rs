//! A collector against the SDK and the contracts 1.0.0 as they were frozen. Never edited: it has to run on every later version
//! of lm-bench.

use lm_bench_plugin::kinds::token;
use lm_bench_plugin::{
    Batch, Col, Collector, Cx, Fault, Info, LogLevel, MetricDef, Resolved, RunInfo, Sink, Subscription, Want,
};

const ROWS: MetricDef = MetricDef::counter("rows");
const TOKENS: MetricDef = MetricDef::counter("tokens").labels(&["of"]);
const TOKENS_LOG: MetricDef = MetricDef::gauge("tokens_log", "1");
const INDICES: MetricDef = MetricDef::distribution("indices", "1");
const ENGINE_TIME: MetricDef = MetricDef::gauge("engine_time", "1");

#[derive(Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}

pub struct Census {
    index: Col<u32>,
    tokens_in_chunk: Col<u32>,
    begun: bool,
    rows: u64,
    tokens: u64,
    odd: u64,
}

impl Collector for Census {
    const INFO: Info = Info {
        id: "token-census",
        version: env!("CARGO_PKG_VERSION"),
        about: "Counts tokens",
        license: "MIT",
    };
    const METRICS: &'static [MetricDef] = &[ROWS, TOKENS, TOKENS_LOG, INDICES, ENGINE_TIME];
    type Config = Config;

    fn subscribe(_: &Config, _: &RunInfo) -> Result<Subscription, Fault> {
        let want = Want::kind(token::KIND)
            .column(token::COLUMNS.index)
            .column(token::COLUMNS.tokens_in_chunk);
        Ok(Subscription::new([want]).max_rows(32))
    }

    fn new(_: Config, _: &RunInfo, resolved: &Resolved) -> Result<Self, Fault> {
        let kind = resolved.kind(token::KIND)?;
        Ok(Self {
            index: kind.column(token::COLUMNS.index)?,
            tokens_in_chunk: kind.column(token::COLUMNS.tokens_in_chunk)?,
            begun: false,
            rows: 0,
            tokens: 0,
            odd: 0,
        })
    }

    fn on_batch(&mut self, batch: &Batch<'_>, cx: &mut Cx<'_>) -> Result<(), Fault> {
        if !std::mem::replace(&mut self.begun, true) {
            cx.log(LogLevel::Info, "the census begins");
        }
        for (index, tokens) in batch.get(self.index).iter().zip(batch.get(self.tokens_in_chunk)) {
            self.rows += 1;
            self.tokens += u64::from(*tokens);
            self.odd += u64::from(index % 2);
        }
        Ok(())
    }

    fn checkpoint(&mut self, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let logarithm = lm_bench_plugin::math::log(self.tokens as f64);
        let even = self.rows - self.odd;
        sink.counter(&ROWS, &[], self.rows);
        sink.counter(&TOKENS, &[("of", "all")], self.tokens);
        sink.gauge(&TOKENS_LOG, &[], self.rows, logarithm);
        if even > 0 && self.odd > 0 {
            sink.distribution(&INDICES, &[], vec![(0.0, even), (1.0, self.odd)]);
        }
        sink.unavailable(&ENGINE_TIME, &[], "a museum has no clock");
        Ok(())
    }
}

lm_bench_plugin::export!(Census);
