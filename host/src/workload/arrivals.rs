//! When requests are due.

use std::fmt;
use std::str::FromStr;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

/// Requests per second, or as fast as they can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum RequestRate {
    /// All requests are due at once.
    Unlimited,
    /// This many per second on average, above 0.
    PerSecond(f64),
}

/// A rate that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a request rate is a number of requests per second above 0, or inf; not {0:?}")]
pub struct RateError(String);

impl FromStr for RequestRate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        match text.parse::<f64>() {
            Ok(f64::INFINITY) => Ok(Self::Unlimited),
            Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(Self::PerSecond(rate)),
            _ => Err(RateError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for RequestRate {
    type Error = RateError;

    fn try_from(text: String) -> Result<Self, RateError> {
        text.parse()
    }
}

impl fmt::Display for RequestRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("inf"),
            Self::PerSecond(rate) => rate.fmt(f),
        }
    }
}

impl From<RequestRate> for String {
    fn from(rate: RequestRate) -> Self {
        rate.to_string()
    }
}

/// Due times of an open loop in nanoseconds from its start, never falling.
///
/// Gaps are gamma distributed with shape `burstiness` and mean `1 / rate` (vLLM's definition): 1 is a Poisson process, less is
/// burstier, more is steadier, and infinity has all gaps equal. The first request is due at once.
#[derive(Clone, Debug)]
pub struct Arrivals {
    rate: RequestRate,
    burstiness: f64,
    rng: Pcg64Mcg,
    /// Due time of the next request in seconds; a sum of floats would drift less than a microsecond in a day.
    next_s: f64,
}

impl Arrivals {
    /// Arrivals from a seed. `burstiness` is above 0 and may be infinite.
    pub fn new(rate: RequestRate, burstiness: f64, seed: u64) -> Self {
        Self {
            rate,
            burstiness,
            rng: Pcg64Mcg::seed_from_u64(seed),
            next_s: 0.0,
        }
    }

    fn gap_s(&mut self) -> f64 {
        let RequestRate::PerSecond(rate) = self.rate else {
            return 0.0;
        };
        if self.burstiness.is_infinite() {
            return 1.0 / rate;
        }
        gamma(&mut self.rng, self.burstiness) / (self.burstiness * rate)
    }
}

impl Iterator for Arrivals {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let due = self.next_s;
        self.next_s += self.gap_s();
        // Saturates after 584 years.
        Some((due * 1e9) as u64)
    }
}

/// A sample of the gamma distribution with this shape and scale 1: Marsaglia and Tsang, "A simple method for generating gamma
/// variables", 2000. A shape below 1 is raised by one and corrected by a power of a uniform number (section 6 there).
fn gamma(rng: &mut Pcg64Mcg, shape: f64) -> f64 {
    if shape < 1.0 {
        let boost = libm::pow(open_unit(rng), 1.0 / shape);
        return gamma(rng, shape + 1.0) * boost;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(rng);
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && libm::log(open_unit(rng)) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v;
        }
    }
}

/// A sample of the standard normal distribution (Box and Muller, 1958).
pub(super) fn normal(rng: &mut Pcg64Mcg) -> f64 {
    let radius = (-2.0 * libm::log(open_unit(rng))).sqrt();
    radius * libm::cos(std::f64::consts::TAU * open_unit(rng))
}

/// A uniform number above 0 and at most 1.
fn open_unit(rng: &mut Pcg64Mcg) -> f64 {
    1.0 - rng.random::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(rate: f64, burstiness: f64) -> Vec<f64> {
        let due: Vec<u64> = Arrivals::new(RequestRate::PerSecond(rate), burstiness, 7)
            .take(20_001)
            .collect();
        due.windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64 * 1e-9)
            .collect()
    }

    /// Largest distance between the empirical distribution of gaps and a function.
    fn kolmogorov_smirnov(mut gaps: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let distance = |(at, gap): (usize, &f64)| {
            (cdf(*gap) - at as f64 / n)
                .abs()
                .max((cdf(*gap) - (at + 1) as f64 / n).abs())
        };
        gaps.iter().enumerate().map(distance).fold(0.0, f64::max)
    }

    #[test]
    fn poisson_arrivals_pass_a_kolmogorov_smirnov_test() {
        for rate in [1.0, 100.0, 5_000.0] {
            let distance = kolmogorov_smirnov(gaps(rate, 1.0), |gap| 1.0 - (-gap * rate).exp());
            // Critical value at the level of 1 %: 1.63 / sqrt(n).
            assert!(distance < 1.63 / 20_000_f64.sqrt(), "{rate}/s: {distance}");
        }
    }

    #[test]
    fn shape_two_is_the_erlang_distribution() {
        let erlang = |gap: f64| 1.0 - (-2.0 * gap).exp() * (1.0 + 2.0 * gap);
        let distance = kolmogorov_smirnov(gaps(1.0, 2.0), erlang);
        assert!(distance < 1.63 / 20_000_f64.sqrt(), "{distance}");
    }

    #[test]
    fn burstiness_is_one_over_the_squared_variation_of_gaps() {
        for burstiness in [0.25, 0.5, 1.0, 4.0] {
            let gaps = gaps(10.0, burstiness);
            let n = gaps.len() as f64;
            let mean = gaps.iter().sum::<f64>() / n;
            let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n;
            assert!((mean * 10.0 - 1.0).abs() < 0.05, "{burstiness}: mean {mean}");
            let found = mean * mean / variance;
            assert!((found / burstiness - 1.0).abs() < 0.1, "{burstiness}: {found}");
        }
    }

    #[test]
    fn steady_and_unlimited_arrivals_are_exact() {
        let due = |rate, burstiness| Arrivals::new(rate, burstiness, 1).take(4).collect::<Vec<_>>();
        assert_eq!(
            due(RequestRate::PerSecond(8.0), f64::INFINITY),
            [0, 125_000_000, 250_000_000, 375_000_000]
        );
        assert_eq!(due(RequestRate::Unlimited, 1.0), [0; 4]);
    }

    #[test]
    fn rates_are_read_and_refused() {
        assert_eq!("inf".parse(), Ok(RequestRate::Unlimited));
        assert_eq!("2.5".parse(), Ok(RequestRate::PerSecond(2.5)));
        for wrong in ["0", "-1", "nan", "", "ten"] {
            assert!(wrong.parse::<RequestRate>().is_err(), "{wrong}");
        }
    }
}
