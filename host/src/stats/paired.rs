//! What a change does to a positive quantity, from pairs of measurements without and with it.

use libm::exp;
use lm_bench_plugin::math::{Sum, sqrt};

use super::interval::{Confidence, Interval};
use super::special::student_t;

/// Fewest pairs for which a ratio is given, as many as a median needs at 95 %.
pub const MIN_PAIRS: usize = 6;

/// Pairs of one kind, which stands for a known share of all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stratum {
    /// Share of this kind in what the ratio is about; the shares of all strata add up to 1.
    pub share: f64,
    /// Measurements `(without, with)` of the same work.
    pub pairs: Vec<(f64, f64)>,
}

/// A ratio with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioEstimate {
    /// Mean with the change over mean without it.
    pub ratio: f64,
    /// Its interval; above 0.
    pub interval: Interval,
}

/// The ratio of means `R = sum(share * mean(with)) / sum(share * mean(without))`: what the change does to the total, so that a
/// rare large effect counts for what it costs.
///
/// The interval is `R * exp(+-t * se / R)` with the standard error of the combined ratio estimate of a stratified sample,
/// `se^2 = sum(share^2 * s^2 / n) / mean(without)^2` over the residuals `with - R * without` of each stratum (Cochran, "Sampling
/// Techniques", 3rd ed. 1977, section 6.11), taken on the logarithm because a ratio is positive, and Student's t for
/// Satterthwaite's degrees of freedom (Biometrics Bulletin 2, 1946). Assumes that pairs are independent.
///
/// `None` below [`MIN_PAIRS`] pairs in all, below 2 in a stratum of a positive share, and where a mean is not positive.
pub fn ratio_of_means(strata: &[Stratum], confidence: Confidence) -> Option<RatioEstimate> {
    let strata: Vec<&Stratum> = strata.iter().filter(|stratum| stratum.share > 0.0).collect();
    let all: usize = strata.iter().map(|stratum| stratum.pairs.len()).sum();
    if all < MIN_PAIRS || strata.iter().any(|stratum| stratum.pairs.len() < 2) {
        return None;
    }
    let mean = |of: fn(&(f64, f64)) -> f64| {
        let mut sum = Sum::default();
        for stratum in &strata {
            sum.add(stratum.share * average(stratum.pairs.iter().map(of)));
        }
        sum.value()
    };
    let (without, with) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let ratio = with / without;
    if !(without > 0.0 && ratio > 0.0 && ratio.is_finite()) {
        return None;
    }
    let (mut variance, mut spread) = (Sum::default(), Sum::default());
    for stratum in strata {
        let n = stratum.pairs.len() as f64;
        let residual = |pair: &(f64, f64)| pair.1 - ratio * pair.0;
        let centre = average(stratum.pairs.iter().map(residual));
        let squares = average(stratum.pairs.iter().map(|pair| {
            let distance = residual(pair) - centre;
            distance * distance
        }));
        // n / (n - 1) for the variance of the residuals, 1 / n for that of their mean.
        let part = stratum.share * stratum.share * squares / (n - 1.0);
        variance.add(part);
        spread.add(part * part / (n - 1.0));
    }
    let (variance, spread) = (variance.value(), spread.value());
    let half = if variance > 0.0 {
        student_t(variance * variance / spread, confidence.tail()) * sqrt(variance) / without / ratio
    } else {
        0.0
    };
    let interval = Interval {
        low: ratio * exp(-half),
        high: ratio * exp(half),
    };
    interval
        .high
        .is_finite()
        .then_some(RatioEstimate { ratio, interval })
}

fn average(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    let mut sum = Sum::default();
    values.for_each(|value| sum.add(value));
    sum.value() / n
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(pairs: &[(f64, f64)]) -> Vec<Stratum> {
        vec![Stratum {
            share: 1.0,
            pairs: pairs.to_vec(),
        }]
    }

    fn near(estimate: RatioEstimate, (ratio, low, high): (f64, f64, f64)) {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-6;
        assert!(
            close(estimate.ratio, ratio)
                && close(estimate.interval.low, low)
                && close(estimate.interval.high, high),
            "{estimate:?}"
        );
    }

    // The expected numbers are those of NumPy and SciPy (numpy.var with ddof=1, scipy.stats.t.isf).
    const SIX: [(f64, f64); 6] = [
        (10.0, 10.5),
        (11.0, 11.2),
        (9.0, 9.4),
        (10.0, 10.1),
        (12.0, 12.7),
        (8.0, 8.3),
    ];

    #[test]
    fn six_pairs_by_numpy() {
        let estimate = ratio_of_means(&one(&SIX), Confidence::P95).unwrap();
        near(estimate, (1.036_666_667, 1.015_746_668, 1.058_017_527));
    }

    #[test]
    fn a_rare_large_effect_counts_for_its_share() {
        let rare = Stratum {
            share: 0.125,
            pairs: vec![(10.0, 15.0), (11.0, 17.0)],
        };
        let usual = Stratum {
            share: 0.875,
            pairs: vec![
                (10.0, 10.2),
                (9.0, 9.1),
                (12.0, 12.1),
                (11.0, 11.4),
                (10.0, 9.9),
                (8.0, 8.2),
            ],
        };
        // 4.19 degrees of freedom.
        let estimate = ratio_of_means(&[rare.clone(), usual.clone()], Confidence::P95).unwrap();
        near(estimate, (1.081_366_460, 1.057_376_835, 1.105_900_358));
        let single = Stratum {
            pairs: rare.pairs[..1].to_vec(),
            ..rare
        };
        assert_eq!(
            ratio_of_means(&[single.clone(), usual.clone()], Confidence::P95),
            None,
            "one pair tells nothing about its kind"
        );
        let absent = Stratum { share: 0.0, ..single };
        assert!(ratio_of_means(&[absent, Stratum { share: 1.0, ..usual }], Confidence::P95).is_some());
    }

    #[test]
    fn too_few_pairs_and_no_time_give_nothing() {
        assert_eq!(ratio_of_means(&one(&SIX[..5]), Confidence::P95), None);
        assert_eq!(ratio_of_means(&[], Confidence::P95), None);
        assert_eq!(ratio_of_means(&one(&[(0.0, 1.0); 6]), Confidence::P95), None);
        assert_eq!(ratio_of_means(&one(&[(1.0, 0.0); 6]), Confidence::P95), None);
    }

    #[test]
    fn equal_effects_leave_no_doubt_and_wide_ones_stay_positive() {
        let sure = ratio_of_means(&one(&[(10.0, 11.0); 6]), Confidence::P95).unwrap();
        near(sure, (1.1, 1.1, 1.1));
        let wild = [
            (1.0, 9.0),
            (9.0, 1.0),
            (1.0, 0.1),
            (0.1, 3.0),
            (2.0, 20.0),
            (5.0, 0.2),
        ];
        let wild = ratio_of_means(&one(&wild), Confidence::P95).unwrap();
        assert!(
            wild.interval.low > 0.0 && wild.interval.high > wild.ratio,
            "{wild:?}"
        );
    }
}
