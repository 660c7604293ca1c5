//! Intervals, and how many samples they need.

use libm::{ceil, floor, log, sqrt};

use super::distribution::Distribution;
use super::percent::Percent;
use super::special::{binomial_at_most, student_t};

/// Beyond this many samples binomial tails are taken from the normal distribution, which is then off by less than one
/// rank in a thousand of the interval's width.
const NORMAL_ABOVE: u64 = 1_000_000;

/// How often an interval must hold the true value, with equal tails on both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Confidence {
    /// 95 %.
    P95,
    /// 99 %.
    P99,
}

impl Confidence {
    /// The confidence, between 0 and 1.
    pub const fn share(self) -> f64 {
        match self {
            Self::P95 => 0.95,
            Self::P99 => 0.99,
        }
    }

    pub(super) const fn tail(self) -> f64 {
        match self {
            Self::P95 => 0.025,
            Self::P99 => 0.005,
        }
    }

    /// Fewest samples with which `percent` can be given: the smallest `n` with `p^n <= tail` and `(1-p)^n <= tail`, that
    /// is, with which the samples reach beyond the true percentile on both sides with this confidence. At 95 %: 6 for
    /// p50, 36 for p90, 72 for p95, 368 for p99, 3,688 for p99.9.
    ///
    /// S. S. Wilks, "Determination of sample sizes for setting tolerance limits", Ann. Math. Statist. 12 (1941); the early
    /// stopping rule of MLPerf's LoadGen has the same form.
    pub fn min_samples(self, percent: Percent) -> u64 {
        let outer = percent.share().max(1.0 - percent.share());
        ceil(log(self.tail()) / log(outer)) as u64
    }
}

/// A closed interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A percentile with its interval; all three are samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PercentileEstimate {
    /// The sample at the nearest rank.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Too few samples for a percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{have} samples, needs {need}")]
pub struct Undersampled {
    /// Samples at hand.
    pub have: u64,
    /// Samples needed.
    pub need: u64,
}

/// Why a mean has no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoInterval {
    /// One sample has no spread.
    #[error("one sample has no spread")]
    OneSample,
    /// The spread of the samples is beyond the range of numbers.
    #[error("the spread of the samples is too large for a number")]
    Overflow,
    /// Student's interval of samples that are never negative reaches below 0, so that it holds values which the quantity
    /// cannot have.
    #[error(
        "Student's interval of {samples} samples reaches below 0, where none of them is: they are too few for their skew"
    )]
    BelowZero {
        /// Samples at hand.
        samples: u64,
    },
}

impl Distribution {
    /// The percentile and its interval from order statistics: `[x_(l), x_(u)]` with the largest `l` and smallest `u` for
    /// which a binomial count of `n` trials of probability `p` is below `l`, or at least `u`, with at most the tail's
    /// probability (Hahn and Meeker, "Statistical Intervals", 1991, section 5.2). Assumes independent samples only.
    ///
    /// # Errors
    /// [`Undersampled`] below [`Confidence::min_samples`].
    pub fn percentile(
        &self,
        percent: Percent,
        confidence: Confidence,
    ) -> Result<PercentileEstimate, Undersampled> {
        let (have, need) = (self.count(), confidence.min_samples(percent));
        if have < need {
            return Err(Undersampled { have, need });
        }
        let (low, high) = ranks(have, percent.share(), confidence.tail());
        Ok(PercentileEstimate {
            value: self.at_rank(percent.rank(have)),
            low: self.at_rank(low),
            high: self.at_rank(high),
        })
    }

    /// The interval of the mean: `mean ± t * s / sqrt(n)` with Student's t. Assumes independent samples, and normal ones
    /// where they are few.
    ///
    /// # Errors
    /// [`NoInterval`] where there is none, or where its assumptions plainly do not hold.
    pub fn mean_interval(&self, confidence: Confidence) -> Result<Interval, NoInterval> {
        let deviation = match self.std_dev() {
            Some(deviation) => deviation,
            None if self.count() < 2 => return Err(NoInterval::OneSample),
            None => return Err(NoInterval::Overflow),
        };
        let half =
            deviation / sqrt(self.count() as f64) * student_t((self.count() - 1) as f64, confidence.tail());
        let mean = self.mean();
        let (low, high) = (mean - half, mean + half);
        if !(low.is_finite() && high.is_finite()) {
            return Err(NoInterval::Overflow);
        }
        if low < 0.0 && self.min() >= 0.0 {
            return Err(NoInterval::BelowZero {
                samples: self.count(),
            });
        }
        Ok(Interval { low, high })
    }
}

/// Ranks, counted from 1, of the ends of the interval of the `p`-quantile of `n` samples.
fn ranks(n: u64, p: f64, tail: f64) -> (u64, u64) {
    if n > NORMAL_ABOVE {
        let (centre, deviation) = (n as f64 * p, sqrt(n as f64 * p * (1.0 - p)));
        let z = student_t(1e6, tail);
        let low = floor(centre - z * deviation).max(1.0) as u64;
        return (low, (ceil(centre + z * deviation) as u64 + 1).min(n));
    }
    // The largest l has P(B <= l-1) <= tail; the smallest u has P(B <= u-1) >= 1 - tail.
    let low = first(n, |k| binomial_at_most(k, n, p) > tail);
    let high = first(n, |k| binomial_at_most(k, n, p) >= 1.0 - tail) + 1;
    (low.max(1), high.min(n))
}

/// The smallest `k <= n` that holds; `holds` changes from false to true once.
fn first(n: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn percent(text: &str) -> Percent {
        text.parse().unwrap()
    }

    #[test]
    fn minimum_sample_counts() {
        // ln 0.025 = -3.68888 over ln 0.5 = -0.69315, ln 0.9 = -0.10536, ln 0.95 = -0.05129, ln 0.99 = -0.010050,
        // ln 0.999 = -0.0010005, rounded up. Low percentiles mirror high ones.
        for (text, need) in [
            ("50", 6),
            ("90", 36),
            ("10", 36),
            ("95", 72),
            ("99", 368),
            ("1", 368),
            ("99.9", 3688),
        ] {
            assert_eq!(Confidence::P95.min_samples(percent(text)), need, "{text}");
        }
        // ln 0.005 = -5.29832 over ln 0.99.
        assert_eq!(Confidence::P99.min_samples(percent("99")), 528);
    }

    #[test]
    fn interval_of_the_median_of_ten() {
        // P(B <= 1) = 11/1024 <= 0.025 < P(B <= 2) = 56/1024: the 2nd and, by symmetry, the 9th sample.
        assert_eq!(ranks(10, 0.5, 0.025), (2, 9));
        let ten = Distribution::from_samples((1..=10).map(f64::from)).unwrap();
        let median = ten.percentile(percent("50"), Confidence::P95).unwrap();
        assert_eq!(
            median,
            PercentileEstimate {
                value: 5.0,
                low: 2.0,
                high: 9.0
            }
        );
    }

    #[test]
    fn a_percentile_below_its_minimum_says_what_it_needs() {
        let few = Distribution::from_samples((0..71).map(f64::from)).unwrap();
        let error = few.percentile(percent("99"), Confidence::P95).unwrap_err();
        assert_eq!(error, Undersampled { have: 71, need: 368 });
        assert_eq!(error.to_string(), "71 samples, needs 368");
        let enough = Distribution::from_samples((1..=368).map(f64::from)).unwrap();
        let p99 = enough.percentile(percent("99"), Confidence::P95).unwrap();
        // Rank ceil(364.32) = 365; all 368 samples lie below the true p99 with probability 0.99^368 = 0.02477 <= 0.025.
        assert_eq!((p99.value, p99.high), (365.0, 368.0));
    }

    #[test]
    fn exact_and_normal_ranks_meet() {
        for p in [0.5, 0.9, 0.99] {
            let exact = ranks(NORMAL_ABOVE, p, 0.025);
            let normal = ranks(NORMAL_ABOVE + 1, p, 0.025);
            assert!(
                exact.0.abs_diff(normal.0) <= 2 && exact.1.abs_diff(normal.1) <= 2,
                "{exact:?} {normal:?}"
            );
        }
    }

    #[test]
    fn interval_of_a_mean() {
        // 1..=10: mean 5.5, s = sqrt(55/6) = 3.02765, t(9) = 2.262157: half width 2.262157 * 3.02765 / sqrt(10) = 2.16585.
        let ten = Distribution::from_samples((1..=10).map(f64::from)).unwrap();
        let interval = ten.mean_interval(Confidence::P95).unwrap();
        assert!(
            (interval.low - 3.334_15).abs() < 1e-5 && (interval.high - 7.665_85).abs() < 1e-5,
            "{interval:?}"
        );
        let one = Distribution::from_samples([3.0]).unwrap();
        assert_eq!(one.mean_interval(Confidence::P95), Err(NoInterval::OneSample));
        let wide = Distribution::from_samples([-f64::MAX, f64::MAX]).unwrap();
        assert_eq!(wide.mean_interval(Confidence::P95), Err(NoInterval::Overflow));
    }

    #[test]
    fn no_interval_holds_what_the_samples_cannot_be() {
        // 1, 1, 7: mean 3, s = sqrt(12) = 3.4641, t(2) = 4.30265: half width 4.30265 * 3.4641 / sqrt(3) = 8.6053.
        let skewed = Distribution::from_samples([1.0, 1.0, 7.0]).unwrap();
        let error = skewed.mean_interval(Confidence::P95).unwrap_err();
        assert_eq!(error, NoInterval::BelowZero { samples: 3 });
        assert_eq!(
            error.to_string(),
            "Student's interval of 3 samples reaches below 0, where none of them is: they are too few for their skew"
        );
        // The same about a point that lies 5 lower: a quantity that can be negative.
        let shifted = Distribution::from_samples([-4.0, -4.0, 2.0]).unwrap();
        let interval = shifted.mean_interval(Confidence::P95).unwrap();
        assert!(
            (interval.low + 10.6053).abs() < 1e-4 && (interval.high - 6.6053).abs() < 1e-4,
            "{interval:?}"
        );
        let zeros = Distribution::from_samples([0.0, 0.0]).unwrap();
        assert_eq!(
            zeros.mean_interval(Confidence::P95),
            Ok(Interval { low: 0.0, high: 0.0 })
        );
    }

    /// `P(B <= k)` by adding up the probabilities.
    fn naive_at_most(k: u64, n: u64, p: f64) -> f64 {
        let mut term = (1.0 - p).powi(i32::try_from(n).unwrap());
        let mut sum = term;
        for i in 0..k {
            term *= (n - i) as f64 / (i + 1) as f64 * p / (1.0 - p);
            sum += term;
        }
        sum
    }

    proptest! {
        #[test]
        fn ranks_agree_with_summed_probabilities(n in 6u64..220, thousandths in 50u32..950) {
            let p = f64::from(thousandths) / 1000.0;
            let (low, high) = ranks(n, p, 0.025);
            let near = |value: f64| (value - 0.025).abs() < 1e-9;
            if low > 1 {
                let tail = naive_at_most(low - 1, n, p);
                prop_assert!(tail <= 0.025 || near(tail));
            }
            let next = naive_at_most(low, n, p);
            prop_assert!(next > 0.025 || near(next));
            if high < n {
                let tail = 1.0 - naive_at_most(high - 1, n, p);
                prop_assert!(tail <= 0.025 || near(tail));
            }
            prop_assert!(low <= high);
        }
    }
}
