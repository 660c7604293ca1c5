//! The numbers that people look for first.

use std::collections::BTreeMap;

use lm_bench_plugin::Direction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RunRecord;
use super::metric::{CONFIDENCE, IntervalRecord, MetricRecord, MetricValue};
use super::observer::ObserverEffect;
use crate::stats::{Distribution, Percent};

/// The numbers that people look for first, under the names they know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Headline {
    /// Median time of the prefill of one batch, in milliseconds.
    pub prefill_latency_ms: Option<f64>,
    /// Median over the iterations of decode time per decode step, in milliseconds: the time between two tokens of a
    /// sequence (TPOT).
    pub decode_latency_per_token_ms: Option<f64>,
    /// Most device memory in use, in 10^9 bytes; `null` without a GPU.
    pub peak_gpu_mem_gb: Option<f64>,
    /// Prompt and output tokens over the time of the measured iterations.
    pub total_tokens_per_second: Option<f64>,
    /// What these numbers are, by name.
    pub definitions: BTreeMap<String, Definition>,
}

/// What a number is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Definition {
    /// Unit.
    pub unit: String,
    /// Which values are better.
    pub direction: Direction,
    /// Statistic over the samples: `median`, `maximum` or `ratio of sums`.
    pub statistic: String,
    /// Formula.
    pub formula: String,
    /// Number of samples; 0 where the number is `null`.
    pub n: u64,
    /// Interval of the number; `null` where there are too few samples or the statistic has none.
    pub interval: Option<IntervalRecord>,
}

/// What one iteration took on the host's clock: a prefill, then decode steps of the whole batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Iteration {
    /// Time of the prefill until its tokens were known.
    pub prefill_ns: u64,
    /// Time of all decode steps.
    pub decode_ns: u64,
    /// Decode steps.
    pub decode_steps: u64,
    /// Prompt tokens over the batch.
    pub prompt_tokens: u64,
    /// Output tokens over the batch, the one that prefill yields included.
    pub output_tokens: u64,
}

/// Bytes as the unit of `peak_gpu_mem_gb`: 10^9 bytes.
pub fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

const NAMES: [&str; 4] = [
    "prefill_latency_ms",
    "decode_latency_per_token_ms",
    "peak_gpu_mem_gb",
    "total_tokens_per_second",
];
const MEDIAN: &str = "median";

impl Headline {
    /// The numbers of the measured iterations. `peak_gpu_bytes` is `None` without a GPU.
    pub fn of(iterations: &[Iteration], peak_gpu_bytes: Option<u64>) -> Self {
        let prefill = samples(iterations.iter().map(prefill_ms));
        let decode = samples(iterations.iter().filter_map(decode_ms));
        let tokens: u64 = iterations
            .iter()
            .map(|one| one.prompt_tokens + one.output_tokens)
            .sum();
        let time_ns: u64 = iterations.iter().map(|one| one.prefill_ns + one.decode_ns).sum();
        let mut headline = Self {
            prefill_latency_ms: prefill.as_ref().map(Distribution::median),
            decode_latency_per_token_ms: decode.as_ref().map(Distribution::median),
            peak_gpu_mem_gb: peak_gpu_bytes.map(gigabytes),
            total_tokens_per_second: (time_ns > 0).then(|| tokens as f64 / (time_ns as f64 / 1e9)),
            definitions: BTreeMap::new(),
        };
        headline.define(
            "prefill_latency_ms",
            prefill.as_ref(),
            (MEDIAN, "time of the prefill of one batch"),
        );
        let per_token = "(time of all decode steps of the iteration) / (decode steps of the iteration)";
        headline.define(
            "decode_latency_per_token_ms",
            decode.as_ref(),
            (MEDIAN, per_token),
        );
        let peak = ("maximum", "most device memory in use / 10^9 bytes");
        headline.define("peak_gpu_mem_gb", None, peak);
        let rate = (
            "ratio of sums",
            "(prompt_tokens + output_tokens) / (time of prefills and decode steps)",
        );
        headline.define("total_tokens_per_second", None, rate);
        let peaks = headline.peak_gpu_mem_gb.is_some();
        let rates = headline.total_tokens_per_second.is_some();
        for (name, measured) in [("peak_gpu_mem_gb", peaks), ("total_tokens_per_second", rates)] {
            if let Some(definition) = headline.definitions.get_mut(name).filter(|_| measured) {
                definition.n = iterations.len() as u64;
            }
        }
        headline
    }

    /// The two latencies alone, as warm-up reports them.
    pub fn latencies(iterations: &[Iteration]) -> (Option<f64>, Option<f64>) {
        let headline = Self::of(iterations, None);
        (headline.prefill_latency_ms, headline.decode_latency_per_token_ms)
    }

    fn define(&mut self, name: &str, samples: Option<&Distribution>, (statistic, formula): (&str, &str)) {
        let median = Percent::DEFAULT[0];
        let interval = samples.and_then(|samples| samples.percentile(median, CONFIDENCE).ok());
        let (unit, direction) = match name {
            "total_tokens_per_second" => ("{token}/s", Direction::Higher),
            "peak_gpu_mem_gb" => ("GBy", Direction::Lower),
            _ => ("ms", Direction::Lower),
        };
        let definition = Definition {
            unit: unit.to_owned(),
            direction,
            statistic: statistic.to_owned(),
            formula: formula.to_owned(),
            n: samples.map_or(0, Distribution::count),
            interval: interval.map(|found| IntervalRecord::new(found.low, found.high)),
        };
        self.definitions.insert(name.to_owned(), definition);
    }
}

/// The headline numbers of a record, ordered by name, and its observer effect as metrics of the plugin `lm-bench`, for forms
/// that list metrics.
pub fn headline_metrics(record: &RunRecord) -> Vec<MetricRecord> {
    let numbers = &record.headline;
    let value = |name: &str| match name {
        "prefill_latency_ms" => numbers.prefill_latency_ms,
        "decode_latency_per_token_ms" => numbers.decode_latency_per_token_ms,
        "peak_gpu_mem_gb" => numbers.peak_gpu_mem_gb,
        _ => numbers.total_tokens_per_second,
    };
    let known = numbers
        .definitions
        .iter()
        .filter(|(name, _)| NAMES.contains(&name.as_str()));
    known
        .map(|(name, definition)| definition.metric(name, value(name)))
        .chain(record.observer_effect.iter().flat_map(ObserverEffect::metrics))
        .collect()
}

impl Definition {
    fn metric(&self, name: &str, value: Option<f64>) -> MetricRecord {
        MetricRecord {
            unit: self.unit.clone(),
            direction: self.direction,
            formula: format!("{} of {}", self.statistic, self.formula),
            value: value.map(MetricValue::Number),
            reason: value
                .is_none()
                .then(|| "nothing was measured for it in this run".to_owned()),
            interval: self.interval,
            ..MetricRecord::empty("lm-bench", name, self.n)
        }
    }
}

fn samples(values: impl Iterator<Item = f64>) -> Option<Distribution> {
    Distribution::from_samples(values).ok()
}

pub(super) fn prefill_ms(iteration: &Iteration) -> f64 {
    iteration.prefill_ns as f64 / 1e6
}

pub(super) fn decode_ms(iteration: &Iteration) -> Option<f64> {
    (iteration.decode_steps > 0).then(|| iteration.decode_ns as f64 / iteration.decode_steps as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iteration(prefill_ns: u64, decode_ns: u64) -> Iteration {
        Iteration {
            prefill_ns,
            decode_ns,
            decode_steps: 4,
            prompt_tokens: 30,
            output_tokens: 10,
        }
    }

    #[test]
    fn medians_and_rates_by_hand() {
        let iterations = [
            iteration(3_000_000, 8_000_000),
            iteration(1_000_000, 4_000_000),
            iteration(2_000_000, 40_000_000),
        ];
        let headline = Headline::of(&iterations, Some(1_500_000_000));
        assert_eq!(headline.prefill_latency_ms, Some(2.0));
        // 8, 4 and 40 ms over 4 steps are 2, 1 and 10 ms.
        assert_eq!(headline.decode_latency_per_token_ms, Some(2.0));
        assert_eq!(headline.peak_gpu_mem_gb, Some(1.5));
        // 3 * 40 tokens in 58 ms.
        assert_eq!(headline.total_tokens_per_second, Some(120.0 / 0.058));
        let decode = &headline.definitions["decode_latency_per_token_ms"];
        assert_eq!((decode.n, decode.interval.as_ref()), (3, None));
        assert_eq!(headline.definitions.len(), 4);
        let n = |name: &str| headline.definitions[name].n;
        assert_eq!((n("peak_gpu_mem_gb"), n("total_tokens_per_second")), (3, 3));
    }

    #[test]
    fn six_iterations_give_the_median_an_interval() {
        let iterations: Vec<Iteration> = (1..=6).map(|ms| iteration(ms * 1_000_000, 4_000_000)).collect();
        let headline = Headline::of(&iterations, None);
        assert_eq!(headline.prefill_latency_ms, Some(3.5));
        let interval = headline.definitions["prefill_latency_ms"]
            .interval
            .as_ref()
            .unwrap();
        assert_eq!((interval.low, interval.high), (1.0, 6.0));
        assert_eq!(headline.peak_gpu_mem_gb, None);
        assert_eq!(
            headline.definitions["peak_gpu_mem_gb"].n, 0,
            "no sample without a GPU"
        );
    }

    #[test]
    fn nothing_measured_is_null() {
        let headline = Headline::of(&[], None);
        assert_eq!(
            (headline.prefill_latency_ms, headline.total_tokens_per_second),
            (None, None)
        );
        assert!(headline.definitions.values().all(|definition| definition.n == 0));
        let only_prefill = Iteration {
            decode_steps: 0,
            decode_ns: 0,
            ..iteration(1_000_000, 0)
        };
        assert_eq!(Headline::latencies(&[only_prefill]), (Some(1.0), None));
    }
}
