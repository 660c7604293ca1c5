//! A collector that does a little work per row, for the benchmarks of the doors.

use lm_bench_plugin::kinds::{moe_route, token};
use lm_bench_plugin::{
    Batch, Col, Collector, Cx, Direction, Fault, Info, List, MetricDef, Resolved, RunInfo, Sink,
    Subscription, Want, export,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// Nothing to configure.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}

/// Sums and histograms over tokens and routed layers.
#[derive(Debug)]
pub struct Probe {
    columns: Columns,
    gaps: [u64; 64],
    last_ns: u64,
    requests: u64,
    tokens: u64,
    chunks: u64,
    assignments: u64,
    busiest: u32,
    mix: u32,
}

#[derive(Debug)]
struct Columns {
    token: u16,
    t_ns: Col<u64>,
    request: Col<u64>,
    index: Col<u32>,
    chunk: Col<u32>,
    tokens_in_chunk: Col<u32>,
    route: u16,
    counts: Col<List<u32>>,
    prob_sum: Col<List<f32>>,
}

const TOKENS: MetricDef = MetricDef::counter("tokens").formula("sum(token.tokens_in_chunk)");
const REQUESTS: MetricDef = MetricDef::counter("request_mix").formula("xor over token.request");
const CHUNKS: MetricDef = MetricDef::counter("chunks").formula("sum(token.chunk + token.index)");
const GAPS: MetricDef =
    MetricDef::distribution("gap_log2_ns", "1").formula("floor(log2(t_ns - previous t_ns))");
const ASSIGNMENTS: MetricDef = MetricDef::counter("assignments").formula("sum(moe_route.counts)");
const BUSIEST: MetricDef = MetricDef::gauge("busiest", "1")
    .better(Direction::Neither)
    .formula("max(moe_route.counts)");
const PROBABILITY_MIX: MetricDef =
    MetricDef::counter("probability_mix").formula("xor over the bits of moe_route.prob_sum");

impl Probe {
    fn tokens(&mut self, batch: &Batch<'_>) {
        let columns = &self.columns;
        let (times, requests) = (batch.get(columns.t_ns), batch.get(columns.request));
        let (indices, chunks) = (batch.get(columns.index), batch.get(columns.chunk));
        let counts = batch.get(columns.tokens_in_chunk);
        for row in 0..batch.len() {
            let gap = times[row].saturating_sub(self.last_ns);
            self.last_ns = times[row];
            self.gaps[gap.checked_ilog2().unwrap_or(0) as usize] += 1;
            self.requests ^= requests[row];
            self.chunks += u64::from(indices[row]) + u64::from(chunks[row]);
            self.tokens += u64::from(counts[row]);
        }
    }

    /// Touches each value once, with operations that any order gives the same result of.
    fn routes(&mut self, batch: &Batch<'_>) {
        let (counts, probabilities) = (batch.get(self.columns.counts), batch.get(self.columns.prob_sum));
        for (counts, probabilities) in counts.iter().zip(probabilities.iter()) {
            let sum = counts.iter().fold(0_u32, |sum, count| sum.wrapping_add(*count));
            self.assignments += u64::from(sum);
            self.busiest = self.busiest.max(counts.iter().copied().max().unwrap_or(0));
            self.mix = probabilities
                .iter()
                .fold(self.mix, |mix, value| mix ^ value.to_bits());
        }
    }
}

impl Collector for Probe {
    const INFO: Info = Info {
        id: "probe-collector",
        version: env!("CARGO_PKG_VERSION"),
        about: "does a little work per row",
        license: "MIT OR Apache-2.0",
    };
    const METRICS: &'static [MetricDef] = &[
        TOKENS,
        REQUESTS,
        CHUNKS,
        GAPS,
        ASSIGNMENTS,
        BUSIEST,
        PROBABILITY_MIX,
    ];
    type Config = Config;

    fn subscribe(_: &Config, _: &RunInfo) -> Result<Subscription, Fault> {
        let (token, route) = (token::COLUMNS, moe_route::COLUMNS);
        Ok(Subscription::new([
            Want::kind(token::KIND)
                .column(token.t_ns)
                .column(token.request)
                .column(token.index)
                .column(token.chunk)
                .column(token.tokens_in_chunk),
            Want::kind(moe_route::KIND)
                .column(route.counts)
                .column(route.prob_sum),
        ]))
    }

    fn new(_: Config, _: &RunInfo, resolved: &Resolved) -> Result<Self, Fault> {
        let (token, route) = (resolved.kind(token::KIND)?, resolved.kind(moe_route::KIND)?);
        let columns = Columns {
            token: token.id,
            t_ns: token.column(token::COLUMNS.t_ns)?,
            request: token.column(token::COLUMNS.request)?,
            index: token.column(token::COLUMNS.index)?,
            chunk: token.column(token::COLUMNS.chunk)?,
            tokens_in_chunk: token.column(token::COLUMNS.tokens_in_chunk)?,
            route: route.id,
            counts: route.column(moe_route::COLUMNS.counts)?,
            prob_sum: route.column(moe_route::COLUMNS.prob_sum)?,
        };
        let (assignments, busiest, mix) = (0, 0, 0);
        let (gaps, last_ns, requests, tokens, chunks) = ([0; 64], 0, 0, 0, 0);
        Ok(Self {
            columns,
            gaps,
            last_ns,
            requests,
            tokens,
            chunks,
            assignments,
            busiest,
            mix,
        })
    }

    fn on_batch(&mut self, batch: &Batch<'_>, _: &mut Cx<'_>) -> Result<(), Fault> {
        if batch.kind == self.columns.token {
            self.tokens(batch);
        } else if batch.kind == self.columns.route {
            self.routes(batch);
        }
        Ok(())
    }

    fn checkpoint(&mut self, sink: &mut Sink<'_>) -> Result<(), Fault> {
        sink.counter(&TOKENS, &[], self.tokens);
        sink.counter(&REQUESTS, &[], self.requests);
        sink.counter(&CHUNKS, &[], self.chunks);
        let gaps = (0_u32..).zip(self.gaps).filter(|(_, count)| *count > 0);
        sink.distribution(
            &GAPS,
            &[],
            gaps.map(|(log2, count)| (f64::from(log2), count)).collect(),
        );
        sink.counter(&ASSIGNMENTS, &[], self.assignments);
        sink.gauge(&BUSIEST, &[], self.assignments, f64::from(self.busiest));
        sink.counter(&PROBABILITY_MIX, &[], u64::from(self.mix));
        Ok(())
    }
}

export!(Probe);
