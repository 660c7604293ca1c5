//! How much being measured may cost.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most overhead in per cent, from 0 on. Written with its sign, `1%`, because 0.01 and 1 are easily mistaken for each other.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct MaxOverhead(f64);

/// Why something is no overhead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no overhead: give a number from 0 on with a per cent sign, such as 1%")]
pub struct OverheadError(String);

impl MaxOverhead {
    /// The overhead in per cent.
    pub const fn percent(self) -> f64 {
        self.0
    }
}

impl FromStr for MaxOverhead {
    type Err = OverheadError;

    fn from_str(text: &str) -> Result<Self, OverheadError> {
        let number = text
            .trim()
            .strip_suffix('%')
            .map(|digits| digits.trim().parse::<f64>());
        match number {
            Some(Ok(percent)) if percent.is_finite() && percent >= 0.0 => Ok(Self(percent)),
            _ => Err(OverheadError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for MaxOverhead {
    type Error = OverheadError;

    fn try_from(text: String) -> Result<Self, OverheadError> {
        text.parse()
    }
}

impl From<MaxOverhead> for String {
    fn from(overhead: MaxOverhead) -> Self {
        overhead.to_string()
    }
}

impl fmt::Display for MaxOverhead {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}%", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_needs_its_sign() {
        for (text, percent) in [("1%", 1.0), ("0.5 %", 0.5), (" 0%", 0.0), ("250%", 250.0)] {
            assert_eq!(text.parse::<MaxOverhead>().map(MaxOverhead::percent), Ok(percent));
        }
        for text in ["1", "0.01", "-1%", "%", "", "NaN%", "inf%", "one%", "1%%"] {
            assert!(text.parse::<MaxOverhead>().is_err(), "{text}");
        }
        assert_eq!(
            "1".parse::<MaxOverhead>().unwrap_err().to_string(),
            "\"1\" is no overhead: give a number from 0 on with a per cent sign, such as 1%"
        );
    }

    #[test]
    fn it_is_written_as_it_is_read() {
        let overhead: MaxOverhead = serde_json::from_str("\"1.5%\"").unwrap();
        assert_eq!(serde_json::to_string(&overhead).unwrap(), "\"1.5%\"");
        assert!(serde_json::from_str::<MaxOverhead>("1.5").is_err());
    }
}
