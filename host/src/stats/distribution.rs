//! Distinct values with their counts.

use lm_bench_plugin::math::{Sum, sqrt};

/// Counts that stored histograms can hold, so that each distribution can be stored.
const MAX_COUNT: u64 = i64::MAX as u64;

/// Samples as distinct finite values in ascending order, each with its count of at least 1; never empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    buckets: Vec<(f64, u64)>,
    count: u64,
}

/// Why samples make no distribution.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum DistributionError {
    /// There was no sample, or all counts were 0.
    #[error("no samples")]
    Empty,
    /// A sample was NaN or infinite.
    #[error("a sample is {0}, which is no finite number")]
    NotFinite(f64),
    /// The counts add up to 2^63 or more.
    #[error("the counts of the samples exceed 63 bits")]
    TooMany,
}

impl Distribution {
    /// Sorts buckets `(value, count)` in any order, adds up equal values and leaves out counts of 0. `-0.0` counts as
    /// `0.0`.
    ///
    /// # Errors
    /// See [`DistributionError`].
    pub fn from_buckets(buckets: impl IntoIterator<Item = (f64, u64)>) -> Result<Self, DistributionError> {
        let mut sorted: Vec<(f64, u64)> = Vec::new();
        for (value, count) in buckets.into_iter().filter(|(_, count)| *count > 0) {
            if !value.is_finite() {
                return Err(DistributionError::NotFinite(value));
            }
            sorted.push((value + 0.0, count));
        }
        sorted.sort_by(|left, right| left.0.total_cmp(&right.0));
        let mut total: u64 = 0;
        let mut merged: Vec<(f64, u64)> = Vec::with_capacity(sorted.len());
        for (value, count) in sorted {
            total = total
                .checked_add(count)
                .filter(|sum| *sum <= MAX_COUNT)
                .ok_or(DistributionError::TooMany)?;
            match merged.last_mut() {
                Some(last) if last.0 == value => last.1 += count,
                _ => merged.push((value, count)),
            }
        }
        if merged.is_empty() {
            Err(DistributionError::Empty)
        } else {
            Ok(Self {
                buckets: merged,
                count: total,
            })
        }
    }

    /// As [`Self::from_buckets`] with a count of 1 each.
    ///
    /// # Errors
    /// See [`DistributionError`].
    pub fn from_samples(samples: impl IntoIterator<Item = f64>) -> Result<Self, DistributionError> {
        Self::from_buckets(samples.into_iter().map(|value| (value, 1)))
    }

    /// Distinct values in ascending order with their counts.
    pub fn buckets(&self) -> &[(f64, u64)] {
        &self.buckets
    }

    /// Number of samples, at least 1.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Smallest sample.
    pub fn min(&self) -> f64 {
        self.buckets[0].0
    }

    /// Largest sample.
    pub fn max(&self) -> f64 {
        self.buckets[self.buckets.len() - 1].0
    }

    /// The sample at a rank counted from 1; ranks beyond the ends give the ends.
    pub(super) fn at_rank(&self, rank: u64) -> f64 {
        let mut seen = 0;
        for (value, count) in &self.buckets {
            seen += count;
            if seen >= rank {
                return *value;
            }
        }
        self.max()
    }

    /// Median: the middle sample, or the mean of the two middle ones.
    pub fn median(&self) -> f64 {
        let half = self.count / 2;
        if self.count % 2 == 1 {
            self.at_rank(half + 1)
        } else {
            f64::midpoint(self.at_rank(half), self.at_rank(half + 1))
        }
    }

    /// Arithmetic mean.
    pub fn mean(&self) -> f64 {
        // Dividing each term keeps sums of huge samples finite; the clamp undoes the rounding of equal samples.
        let count = self.count as f64;
        let mut sum = Sum::default();
        for (value, weight) in &self.buckets {
            sum.add(*value * (*weight as f64 / count));
        }
        sum.value().clamp(self.min(), self.max())
    }

    /// Standard deviation of the samples (divides by `n - 1`). `None` below two samples, or where it overflows.
    pub fn std_dev(&self) -> Option<f64> {
        let mean = self.mean();
        let mut squares = Sum::default();
        for (value, weight) in &self.buckets {
            squares.add((value - mean) * (value - mean) * *weight as f64);
        }
        let freedom = self.count.checked_sub(1).filter(|freedom| *freedom > 0)?;
        Some(sqrt(squares.value() / freedom as f64)).filter(|deviation| deviation.is_finite())
    }

    /// Coefficient of variation: standard deviation over the mean's magnitude. `None` below two samples or where the
    /// mean is 0.
    pub fn variation(&self) -> Option<f64> {
        let mean = self.mean();
        self.std_dev()
            .filter(|_| mean != 0.0)
            .map(|deviation| deviation / mean.abs())
    }

    /// The samples of both, as if they had been measured together: what shards of a load and repeats of a run are joined with
    /// where the samples themselves are at hand. Stored results merge by their histograms.
    ///
    /// # Errors
    /// [`DistributionError::TooMany`] where the counts overflow.
    pub fn merge(&self, other: &Self) -> Result<Self, DistributionError> {
        Self::from_buckets(self.buckets.iter().chain(&other.buckets).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::super::percent::Percent;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_textbook_sample() {
        // 2 4 4 4 5 5 7 9: mean 5, squares 9+1+1+1+0+0+4+16 = 32, over 7.
        let sample =
            Distribution::from_buckets([(9.0, 1), (2.0, 1), (4.0, 3), (7.0, 1), (5.0, 2), (3.0, 0)]).unwrap();
        assert_eq!(
            sample.buckets(),
            [(2.0, 1), (4.0, 3), (5.0, 2), (7.0, 1), (9.0, 1)]
        );
        assert_eq!(
            (sample.count(), sample.min(), sample.max(), sample.mean()),
            (8, 2.0, 9.0, 5.0)
        );
        assert_eq!(sample.std_dev(), Some((32.0f64 / 7.0).sqrt()));
        assert_eq!(sample.variation(), Some((32.0f64 / 7.0).sqrt() / 5.0));
        assert_eq!(sample.median(), 4.5);
        // Nearest ranks of p50 and p90: ceil(8 * 0.5) = 4 and ceil(8 * 0.9) = 8.
        assert_eq!((sample.at_rank(4), sample.at_rank(8)), (4.0, 9.0));
    }

    #[test]
    fn one_sample_has_no_spread() {
        let one = Distribution::from_samples([3.0]).unwrap();
        assert_eq!(
            (one.mean(), one.median(), one.std_dev(), one.variation()),
            (3.0, 3.0, None, None)
        );
        let zeros = Distribution::from_samples([0.0, -0.0]).unwrap();
        assert_eq!(zeros.buckets().len(), 1);
        assert_eq!((zeros.std_dev(), zeros.variation()), (Some(0.0), None));
    }

    #[test]
    fn refuses_nothing_and_non_numbers() {
        assert_eq!(Distribution::from_samples([]), Err(DistributionError::Empty));
        assert_eq!(
            Distribution::from_buckets([(1.0, 0)]),
            Err(DistributionError::Empty)
        );
        assert_eq!(
            Distribution::from_samples([1.0, f64::INFINITY]),
            Err(DistributionError::NotFinite(f64::INFINITY))
        );
        assert!(matches!(
            Distribution::from_samples([f64::NAN]),
            Err(DistributionError::NotFinite(_))
        ));
        assert_eq!(
            Distribution::from_buckets([(1.0, u64::MAX), (2.0, 1)]),
            Err(DistributionError::TooMany)
        );
        // A count of 0 takes its value with it, finite or not.
        assert!(Distribution::from_buckets([(1.0, 1), (f64::NAN, 0)]).is_ok());
    }

    #[test]
    fn a_merge_adds_counts_and_refuses_too_many() {
        let left = Distribution::from_buckets([(1.0, 2), (3.0, 1)]).unwrap();
        let right = Distribution::from_buckets([(3.0, 4), (0.5, 1)]).unwrap();
        let both = left.merge(&right).unwrap();
        assert_eq!(both.buckets(), [(0.5, 1), (1.0, 2), (3.0, 5)]);
        assert_eq!(both.count(), 8);
        let full = Distribution::from_buckets([(1.0, MAX_COUNT)]).unwrap();
        assert_eq!(full.merge(&left), Err(DistributionError::TooMany));
    }

    #[test]
    fn huge_samples_keep_a_finite_mean() {
        let huge = Distribution::from_samples([f64::MAX, f64::MAX]).unwrap();
        assert_eq!(huge.mean(), f64::MAX);
        let wide = Distribution::from_samples([f64::MAX, -f64::MAX]).unwrap();
        assert_eq!(wide.std_dev(), None);
    }

    proptest! {
        #[test]
        fn agrees_with_the_sorted_list(samples in prop::collection::vec((-50i32..50, 1u64..6), 1..60), percent in 1u32..100) {
            let mut list: Vec<f64> = Vec::new();
            for (value, count) in &samples {
                list.extend(std::iter::repeat_n(f64::from(*value), usize::try_from(*count).unwrap()));
            }
            list.sort_by(f64::total_cmp);
            let sample = Distribution::from_buckets(samples.iter().map(|(v, c)| (f64::from(*v), *c))).unwrap();
            let rank = (list.len() * percent as usize).div_ceil(100).max(1);
            let percent = Percent::try_from(f64::from(percent)).unwrap();
            prop_assert_eq!(percent.rank(sample.count()), rank as u64);
            prop_assert_eq!(sample.at_rank(rank as u64), list[rank - 1]);
            prop_assert_eq!(sample.count(), list.len() as u64);
            let mean = list.iter().sum::<f64>() / list.len() as f64;
            prop_assert!((sample.mean() - mean).abs() < 1e-9);
            if list.len() > 1 {
                let squares: f64 = list.iter().map(|value| (value - mean).powi(2)).sum();
                let deviation = (squares / (list.len() - 1) as f64).sqrt();
                prop_assert!((sample.std_dev().unwrap() - deviation).abs() < 1e-9);
            }
        }

        #[test]
        fn merging_is_sampling_both(left in prop::collection::vec(-9i32..9, 1..40), right in prop::collection::vec(-9i32..9, 1..40)) {
            let of = |list: &[i32]| Distribution::from_samples(list.iter().map(|v| f64::from(*v))).unwrap();
            let both = [left.as_slice(), right.as_slice()].concat();
            prop_assert_eq!(of(&left).merge(&of(&right)).unwrap(), of(&both));
        }
    }
}
