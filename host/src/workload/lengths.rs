//! How long prompts and answers are.

use std::fmt;
use std::str::FromStr;

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use super::arrivals::normal;

/// Greatest length, in tokens.
const MAX_TOKENS: u32 = 1 << 24;
/// Draws after which a truncated distribution is taken to have next to nothing inside its bounds.
const MAX_DRAWS: u32 = 10_000;

/// A distribution of lengths in tokens; each is at least 1.
///
/// Written `128`, `uniform:64-256`, `normal:MEAN,SD`, `lognormal:MEAN,SD`; the last two may end in `,LOW-HIGH`, which draws again
/// what falls outside (truncation, not clamping). Mean and standard deviation are those of the length before truncation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Lengths {
    shape: Shape,
    bounds: (u32, u32),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Fixed,
    Uniform,
    Normal { mean: f64, sd: f64 },
    LogNormal { mean: f64, sd: f64 },
}

/// A distribution of lengths that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no distribution of lengths: write 128, uniform:64-256, normal:MEAN,SD or lognormal:MEAN,SD, the last two with \
     ,LOW-HIGH to truncate; lengths are 1 to {MAX_TOKENS} and the bounds must hold some of the distribution"
)]
pub struct LengthsError(String);

impl Lengths {
    /// Always this many tokens.
    pub const fn fixed(tokens: u32) -> Self {
        Self {
            shape: Shape::Fixed,
            bounds: (tokens, tokens),
        }
    }

    /// Shortest and longest that can be drawn.
    pub const fn bounds(&self) -> (u32, u32) {
        self.bounds
    }

    /// Draws a length.
    pub(super) fn draw(&self, rng: &mut Pcg64Mcg) -> u32 {
        self.try_draw(rng).unwrap_or(self.bounds.0)
    }

    /// `None` where nothing of the distribution seems to lie inside the bounds.
    fn try_draw(&self, rng: &mut Pcg64Mcg) -> Option<u32> {
        let (low, high) = self.bounds;
        let inside = |length: f64| {
            let length = length.round();
            (length >= f64::from(low) && length <= f64::from(high)).then_some(length as u32)
        };
        match self.shape {
            Shape::Fixed => Some(low),
            Shape::Uniform => Some(rng.random_range(low..=high)),
            Shape::Normal { mean, sd } => (0..MAX_DRAWS).find_map(|_| inside(mean + sd * normal(rng))),
            Shape::LogNormal { mean, sd } => {
                // Of the logarithm: variance ln(1 + (sd / mean)^2), mean ln(mean) - variance / 2.
                let variance = libm::log1p((sd / mean) * (sd / mean));
                let log_mean = libm::log(mean) - variance / 2.0;
                (0..MAX_DRAWS).find_map(|_| inside(libm::exp(log_mean + variance.sqrt() * normal(rng))))
            }
        }
    }
}

impl FromStr for Lengths {
    type Err = LengthsError;

    fn from_str(text: &str) -> Result<Self, LengthsError> {
        let error = || LengthsError(text.to_owned());
        let found = parse(text).ok_or_else(error)?;
        let (low, high) = found.bounds;
        let possible = 1 <= low && low <= high && high <= MAX_TOKENS;
        let mut rng = <Pcg64Mcg as rand::SeedableRng>::seed_from_u64(0);
        if possible && found.try_draw(&mut rng).is_some() {
            Ok(found)
        } else {
            Err(error())
        }
    }
}

fn parse(text: &str) -> Option<Lengths> {
    let Some((name, rest)) = text.split_once(':') else {
        return Some(Lengths::fixed(text.parse().ok()?));
    };
    if name == "uniform" {
        return Some(Lengths {
            shape: Shape::Uniform,
            bounds: range(rest)?,
        });
    }
    let mut parts = rest.splitn(3, ',');
    let mut number = || {
        parts
            .next()?
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
    };
    let (mean, sd) = (number()?, number()?);
    let shape = match name {
        "normal" if sd >= 0.0 => Shape::Normal { mean, sd },
        "lognormal" if sd >= 0.0 && mean > 0.0 => Shape::LogNormal { mean, sd },
        _ => return None,
    };
    let bounds = parts.next().map_or(Some((1, MAX_TOKENS)), range)?;
    Some(Lengths { shape, bounds })
}

fn range(text: &str) -> Option<(u32, u32)> {
    let (low, high) = text.split_once('-')?;
    Some((low.parse().ok()?, high.parse().ok()?))
}

impl TryFrom<String> for Lengths {
    type Error = LengthsError;

    fn try_from(text: String) -> Result<Self, LengthsError> {
        text.parse()
    }
}

impl From<Lengths> for String {
    fn from(lengths: Lengths) -> Self {
        lengths.to_string()
    }
}

impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = self.bounds;
        match self.shape {
            Shape::Fixed => write!(f, "{low}"),
            Shape::Uniform => write!(f, "uniform:{low}-{high}"),
            Shape::Normal { mean, sd } => write!(f, "normal:{mean},{sd},{low}-{high}"),
            Shape::LogNormal { mean, sd } => write!(f, "lognormal:{mean},{sd},{low}-{high}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn drawn(text: &str) -> Vec<u32> {
        let lengths: Lengths = text.parse().expect("a distribution");
        assert_eq!(lengths.to_string().parse(), Ok(lengths), "{text}");
        let mut rng = Pcg64Mcg::seed_from_u64(3);
        (0..40_000).map(|_| lengths.draw(&mut rng)).collect()
    }

    fn mean_and_sd(lengths: &[u32]) -> (f64, f64) {
        let n = lengths.len() as f64;
        let mean = lengths.iter().map(|length| f64::from(*length)).sum::<f64>() / n;
        let square = |length: &u32| (f64::from(*length) - mean).powi(2);
        (mean, (lengths.iter().map(square).sum::<f64>() / n).sqrt())
    }

    #[test]
    fn means_and_deviations_are_those_that_were_asked_for() {
        for (text, mean, sd) in [
            ("300", 300.0, 0.0),
            ("uniform:1-101", 51.0, 29.15),
            ("normal:500,50", 500.0, 50.0),
            ("lognormal:500,250", 500.0, 250.0),
        ] {
            let (found_mean, found_sd) = mean_and_sd(&drawn(text));
            assert!(
                (found_mean - mean).abs() < 0.01 * mean,
                "{text}: mean {found_mean}"
            );
            assert!((found_sd - sd).abs() <= 0.03 * sd, "{text}: deviation {found_sd}");
        }
    }

    #[test]
    fn what_lies_outside_is_drawn_again_and_not_heaped_at_the_bounds() {
        let lengths = drawn("normal:100,50,90-110");
        assert!(lengths.iter().all(|length| (90..=110).contains(length)));
        let at_bounds = lengths.iter().filter(|length| matches!(length, 90 | 110)).count();
        assert!(at_bounds < lengths.len() / 10, "{at_bounds}");
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        for wrong in [
            "",
            "0",
            "-3",
            "x",
            "uniform:5-2",
            "uniform:0-2",
            "uniform:5",
            "normal:5",
            "normal:nan,1",
            "normal:5,-1",
            "lognormal:0,1",
            "normal:100,1,5000-6000",
            "gamma:1,2",
            "normal:5,1,2",
        ] {
            assert!(wrong.parse::<Lengths>().is_err(), "{wrong}");
        }
    }
}
