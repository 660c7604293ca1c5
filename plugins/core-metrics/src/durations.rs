//! Durations as histograms.

use hdrhistogram::Histogram;
use lm_bench_plugin::{Labels, MetricDef, Sink};

/// Nanoseconds in a millisecond and in a microsecond.
pub(crate) const MS: f64 = 1e6;
pub(crate) const US: f64 = 1e3;

/// Durations in ns with three significant digits, however long they are.
#[derive(Clone, Debug)]
pub(crate) struct Durations(Histogram<u64>);

impl Default for Durations {
    fn default() -> Self {
        Self(Histogram::new(3).expect("three digits are a supported precision"))
    }
}

impl Durations {
    pub(crate) fn record(&mut self, ns: u64) {
        self.0
            .record(ns)
            .expect("a histogram that resizes itself takes each value");
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> u64 {
        self.0.len()
    }

    /// The distinct values, in units of `unit_ns`.
    fn buckets(&self, unit_ns: f64) -> Vec<(f64, u64)> {
        let recorded = self.0.iter_recorded();
        let middle = |value| self.0.median_equivalent(value) as f64 / unit_ns;
        recorded
            .map(|at| (middle(at.value_iterated_to()), at.count_at_value()))
            .collect()
    }

    /// Reports the distribution in units of `unit_ns`, or why there is none.
    pub(crate) fn report(
        &self,
        (metric, unit_ns): (&MetricDef, f64),
        labels: Labels<'_>,
        reason: &str,
        sink: &mut Sink<'_>,
    ) {
        if self.is_empty() {
            sink.unavailable(metric, labels, reason);
        } else {
            sink.distribution(metric, labels, self.buckets(unit_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_three_digits_over_the_whole_range() {
        let mut durations = Durations::default();
        let recorded = [0, 1, 999, 1_000_000, 1_000_000, 3_600_000_000_000, u64::MAX / 4];
        for ns in recorded {
            durations.record(ns);
        }
        let buckets = durations.buckets(1.0);
        assert_eq!(
            buckets.iter().map(|&(_, count)| count).collect::<Vec<_>>(),
            [1, 1, 1, 2, 1, 1]
        );
        let mut distinct = recorded.to_vec();
        distinct.dedup();
        for (&(value, _), ns) in buckets.iter().zip(distinct) {
            let ns = ns as f64;
            assert!((value - ns).abs() <= ns * 1e-3, "{value} for {ns}");
        }
    }
}
