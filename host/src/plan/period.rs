//! How often probes are asked.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest period, in milliseconds: an hour.
const LONGEST_MS: u64 = 3_600_000;

/// Time between two samples of a probe: whole milliseconds or seconds with their unit, `100ms` or `2s`, from 1 ms to an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct ProbePeriod(u64);

/// Why something is no period.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no period: give whole milliseconds or seconds from 1ms to 3600s, such as 100ms")]
pub struct PeriodError(String);

impl ProbePeriod {
    /// The period as a time.
    pub const fn time(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl Default for ProbePeriod {
    fn default() -> Self {
        Self(100)
    }
}

impl FromStr for ProbePeriod {
    type Err = PeriodError;

    fn from_str(text: &str) -> Result<Self, PeriodError> {
        let (digits, factor) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
            (Some(digits), _) => (digits, 1),
            (None, Some(digits)) => (digits, 1_000),
            (None, None) => return Err(PeriodError(text.to_owned())),
        };
        let ms = digits
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| digits.parse::<u64>().ok()?.checked_mul(factor))
            .flatten();
        match ms {
            Some(ms) if (1..=LONGEST_MS).contains(&ms) => Ok(Self(ms)),
            _ => Err(PeriodError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for ProbePeriod {
    type Error = PeriodError;

    fn try_from(text: String) -> Result<Self, PeriodError> {
        text.parse()
    }
}

impl From<ProbePeriod> for String {
    fn from(period: ProbePeriod) -> Self {
        period.to_string()
    }
}

impl fmt::Display for ProbePeriod {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}ms", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_has_a_unit_and_a_range() {
        for (text, ms) in [("1ms", 1), ("100ms", 100), ("2s", 2_000), ("3600s", 3_600_000)] {
            assert_eq!(text.parse::<ProbePeriod>(), Ok(ProbePeriod(ms)));
        }
        for text in [
            "",
            "100",
            "0ms",
            "0s",
            "1.5s",
            "-1ms",
            "+1ms",
            "ms",
            "s",
            "3601s",
            "1us",
            "99999999999999999999s",
        ] {
            assert!(text.parse::<ProbePeriod>().is_err(), "{text}");
        }
    }
}
