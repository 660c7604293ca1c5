//! How well the KV cache is used.

use lm_bench_plugin::kinds::kv_cache;
use lm_bench_plugin::math::Moments;
use lm_bench_plugin::{
    Batch, Collector, Cx, Direction, Fault, Info, MetricDef, Resolved, RunInfo, Sink, Subscription, columns,
};

use crate::NoConfig;

const USAGE: MetricDef = MetricDef::gauge("kv_cache_usage_ratio", "1")
    .labels(&["stat"])
    .formula(
        "blocks_used / blocks_total of each row with blocks_total > 0; stat=peak: largest, stat=mean: mean",
    )
    .about(
        "Share of the cache's blocks that belong to a sequence (vLLM's kv_cache_usage_perc as a ratio). A cache that \
         reserves memory for whole sequences has one block per sequence: see kv_cache_waste_ratio for what it holds.",
    );

const TOKENS: MetricDef = MetricDef::gauge("kv_cache_peak_tokens", "{token}")
    .formula("max of tokens_stored")
    .about("Most tokens stored at once.");

const WASTE: MetricDef = MetricDef::gauge("kv_cache_waste_ratio", "1")
    .better(Direction::Lower)
    .labels(&["stat"])
    .formula(
        "stat=mean: sum of (blocks_used * block_tokens - tokens_stored) / sum of blocks_used * block_tokens; stat=max: \
         largest of that ratio over rows with blocks_used > 0",
    )
    .about(
        "Internal waste: share of the slots in used blocks that hold no token (PagedAttention, arXiv 2309.06180). A \
         cache reserved for the whole context at once has one block per sequence.",
    );

const HITS: MetricDef = MetricDef::gauge("prefix_cache_hit_ratio", "1")
    .better(Direction::Higher)
    .formula("sum of hits / sum of queries, both in tokens")
    .about("Share of the prompt tokens looked up in the prefix cache that were found.");

const EVICTIONS: MetricDef = MetricDef::counter("kv_cache_evictions")
    .better(Direction::Lower)
    .formula("sum of evictions")
    .about("Blocks taken from a sequence or a cached prefix to make room.");

const NO_ROW: &str = "no state of the KV cache was recorded";

columns! {
    struct Columns of kv_cache {
        blocks_total: u64,
        blocks_used: u64,
        tokens_stored: u64,
        block_tokens: u32,
        hits: u64,
        queries: u64,
        evictions: u64,
    }
}

/// The collector.
pub struct KvCache {
    columns: Columns,
    rows: u64,
    usage: Moments,
    usage_peak: f64,
    tokens_peak: u64,
    reserved: f64,
    empty: f64,
    waste_max: f64,
    hits: u64,
    queries: u64,
    evictions: u64,
}

impl Collector for KvCache {
    const INFO: Info = Info {
        id: "kv-cache",
        version: env!("CARGO_PKG_VERSION"),
        about: "Usage, waste and hits of the KV cache",
        license: "MIT OR Apache-2.0",
    };
    const METRICS: &'static [MetricDef] = &[USAGE, TOKENS, WASTE, HITS, EVICTIONS];
    type Config = NoConfig;

    fn subscribe(_: &NoConfig, _: &RunInfo) -> Result<Subscription, Fault> {
        Ok(Subscription::new([Columns::want()]))
    }

    fn new(_: NoConfig, _: &RunInfo, resolved: &Resolved) -> Result<Self, Fault> {
        Ok(Self {
            columns: Columns::resolve(resolved)?,
            rows: 0,
            usage: Moments::default(),
            usage_peak: 0.0,
            tokens_peak: 0,
            reserved: 0.0,
            empty: 0.0,
            waste_max: 0.0,
            hits: 0,
            queries: 0,
            evictions: 0,
        })
    }

    fn on_batch(&mut self, batch: &Batch<'_>, _: &mut Cx<'_>) -> Result<(), Fault> {
        let of = &self.columns;
        if batch.kind != of.kind {
            return Ok(());
        }
        let (total, used) = (batch.get(of.blocks_total), batch.get(of.blocks_used));
        let (tokens, block_tokens) = (batch.get(of.tokens_stored), batch.get(of.block_tokens));
        let (hits, queries) = (batch.get(of.hits), batch.get(of.queries));
        let evictions = batch.get(of.evictions);
        for row in 0..batch.len() {
            self.rows += 1;
            self.hits = self.hits.saturating_add(hits[row]);
            self.queries = self.queries.saturating_add(queries[row]);
            self.evictions = self.evictions.saturating_add(evictions[row]);
            self.tokens_peak = self.tokens_peak.max(tokens[row]);
            if total[row] > 0 {
                let usage = used[row] as f64 / total[row] as f64;
                self.usage.add(usage);
                self.usage_peak = self.usage_peak.max(usage);
            }
            let slots = u128::from(used[row]) * u128::from(block_tokens[row]);
            let empty = slots.checked_sub(tokens[row].into()).ok_or_else(|| {
                Fault::data(format!(
                    "kv_cache: {} tokens are stored in {slots} slots",
                    tokens[row]
                ))
            })?;
            if slots > 0 {
                self.reserved += slots as f64;
                self.empty += empty as f64;
                self.waste_max = self.waste_max.max(empty as f64 / slots as f64);
            }
        }
        Ok(())
    }

    fn checkpoint(&mut self, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let recorded = |reason| if self.rows == 0 { NO_ROW } else { reason };
        let mean = self.usage.mean();
        for (stat, value) in [("mean", mean), ("peak", mean.map(|_| self.usage_peak))] {
            let value = value.ok_or(recorded("the cache has no blocks"));
            sink.value(&USAGE, &[("stat", stat)], self.usage.count(), value);
        }
        let waste = (self.reserved > 0.0).then(|| self.empty / self.reserved);
        for (stat, value) in [("mean", waste), ("max", waste.map(|_| self.waste_max))] {
            let value = value.ok_or(recorded("no block was used"));
            sink.value(&WASTE, &[("stat", stat)], self.rows, value);
        }
        let hits = (self.queries > 0).then(|| self.hits as f64 / self.queries as f64);
        let hits = hits.ok_or(recorded("the prefix cache was not queried"));
        sink.value(&HITS, &[], self.queries, hits);
        if self.rows == 0 {
            sink.unavailable(&TOKENS, &[], NO_ROW);
            sink.unavailable(&EVICTIONS, &[], NO_ROW);
        } else {
            sink.gauge(&TOKENS, &[], self.rows, self.tokens_peak as f64);
            sink.counter(&EVICTIONS, &[], self.evictions);
        }
        Ok(())
    }
}

lm_bench_plugin::export_builtin!(KvCache);

#[cfg(test)]
mod tests {
    use super::*;
    use lm_bench_plugin::testing::CollectorTest;

    type Test = CollectorTest<KvCache>;

    fn row(used: u64, tokens: u64, counted: (u64, u64, u64)) -> kv_cache::Row<'static> {
        let (hits, queries, evictions) = counted;
        kv_cache::Row {
            blocks_total: 10,
            blocks_used: used,
            tokens_stored: tokens,
            block_tokens: 16,
            hits,
            queries,
            evictions,
            ..Default::default()
        }
    }

    #[test]
    fn usage_waste_and_hits() {
        let mut test = Test::new();
        test.row(&row(2, 24, (0, 40, 0)))
            .row(&row(5, 80, (30, 80, 3)))
            .row(&row(0, 0, (0, 0, 1)));
        let metrics = test.metrics();
        metrics.assert("kv_cache_usage_ratio", &[("stat", "peak")], 0.5);
        metrics.assert("kv_cache_usage_ratio", &[("stat", "mean")], 0.7 / 3.0);
        metrics.assert("kv_cache_peak_tokens", &[], 80.0);
        // Slots 32 and 80, of which 8 and 0 are empty.
        metrics.assert("kv_cache_waste_ratio", &[("stat", "mean")], 8.0 / 112.0);
        metrics.assert("kv_cache_waste_ratio", &[("stat", "max")], 0.25);
        metrics.assert("prefix_cache_hit_ratio", &[], 30.0 / 120.0);
        metrics.assert("kv_cache_evictions", &[], 4.0);
    }

    #[test]
    fn a_cache_in_one_piece_wastes_what_its_sequences_do_not_fill() {
        let contiguous = |tokens| kv_cache::Row {
            blocks_total: 2,
            blocks_used: 2,
            tokens_stored: tokens,
            block_tokens: 48,
            ..Default::default()
        };
        let mut test = Test::new();
        test.row(&contiguous(64)).row(&contiguous(96));
        let metrics = test.metrics();
        metrics.assert("kv_cache_usage_ratio", &[("stat", "mean")], 1.0);
        // 96 slots, of which 32 and 0 are empty.
        metrics.assert("kv_cache_waste_ratio", &[("stat", "mean")], 32.0 / 192.0);
        metrics.assert("kv_cache_waste_ratio", &[("stat", "max")], 32.0 / 96.0);
    }

    #[test]
    fn what_was_not_used_or_queried_has_no_ratio() {
        let mut test = Test::new();
        test.row(&row(0, 0, (0, 0, 0)));
        let metrics = test.metrics();
        assert_eq!(
            metrics.unavailable("prefix_cache_hit_ratio", &[]),
            "the prefix cache was not queried"
        );
        assert_eq!(
            metrics.unavailable("kv_cache_waste_ratio", &[("stat", "max")]),
            "no block was used"
        );
        metrics.assert("kv_cache_usage_ratio", &[("stat", "peak")], 0.0);
        let empty = Test::new().metrics();
        assert!(
            KvCache::METRICS
                .iter()
                .all(|def| { empty.named(def.name).all(|metric| metric.samples == 0) })
        );
        assert_eq!(
            empty.unavailable("kv_cache_evictions", &[]),
            "no state of the KV cache was recorded"
        );
    }

    #[test]
    fn more_tokens_than_slots_are_a_contradiction() {
        let mut test = Test::new();
        test.row(&row(1, 17, (0, 0, 0)));
        assert_eq!(test.fault().message, "kv_cache: 17 tokens are stored in 16 slots");
    }
}
