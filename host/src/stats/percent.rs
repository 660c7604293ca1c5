//! A percentage as an exact key.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A percentage above 0 and below 100 with at most three decimals, held as thousandths of a percent so that ranks are
/// computed in integers. Written `p99.9`; ordered by size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u32);

/// Why something is no percentage.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "{0:?} is no percentile: give a number above 0 and below 100 with at most three decimals, such as 99.9"
)]
pub struct PercentError(String);

impl Percent {
    /// Thousandths of a percent in the whole.
    const WHOLE: u32 = 100_000;

    /// The percentiles that are reported unless others are asked for: 50, 90, 95, 99.
    pub const DEFAULT: [Self; 4] = [Self(50_000), Self(90_000), Self(95_000), Self(99_000)];

    /// The share, between 0 and 1.
    pub fn share(self) -> f64 {
        f64::from(self.0) / f64::from(Self::WHOLE)
    }

    /// Nearest rank, counted from 1, of this percentile among `n >= 1` samples: `ceil(n * p / 100)`.
    pub fn rank(self, n: u64) -> u64 {
        let rank = (u128::from(n) * u128::from(self.0)).div_ceil(u128::from(Self::WHOLE));
        u64::try_from(rank).unwrap_or(n).clamp(1, n.max(1))
    }
}

impl TryFrom<f64> for Percent {
    type Error = PercentError;

    fn try_from(percent: f64) -> Result<Self, PercentError> {
        let thousandths = percent * 1000.0;
        let nearest = thousandths.round();
        let exact = (thousandths - nearest).abs() <= 1e-6;
        if exact && nearest >= 1.0 && nearest < f64::from(Self::WHOLE) {
            Ok(Self(nearest as u32))
        } else {
            Err(PercentError(percent.to_string()))
        }
    }
}

impl FromStr for Percent {
    type Err = PercentError;

    /// Accepts `99.9` and `p99.9`.
    fn from_str(text: &str) -> Result<Self, PercentError> {
        let digits = text.trim();
        let digits = digits.strip_prefix('p').unwrap_or(digits);
        let number: f64 = digits.parse().map_err(|_| PercentError(text.to_owned()))?;
        Self::try_from(number).map_err(|_| PercentError(text.to_owned()))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, thousandths) = (self.0 / 1000, self.0 % 1000);
        if thousandths == 0 {
            write!(out, "p{whole}")
        } else {
            write!(
                out,
                "p{whole}.{}",
                format!("{thousandths:03}").trim_end_matches('0')
            )
        }
    }
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reads `"p99.9"`, `"99.9"` and `99.9`: the last is what people write in a plan file.
impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrNumber;

        impl de::Visitor<'_> for TextOrNumber {
            type Value = Percent;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a percentile such as 99.9")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Percent, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Percent, E> {
                number.to_string().parse().map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Percent, E> {
                number.to_string().parse().map_err(E::custom)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Percent, E> {
                number.to_string().parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(TextOrNumber)
    }
}

impl JsonSchema for Percent {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Percent".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": r"^p[0-9]{1,2}(\.[0-9]{1,3})?$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_number_name_the_same_percentile() {
        for (text, number, shown) in [
            ("50", 50.0, "p50"),
            ("p99.9", 99.9, "p99.9"),
            (" 99.99", 99.99, "p99.99"),
            ("0.001", 0.001, "p0.001"),
        ] {
            let percent: Percent = text.parse().unwrap();
            assert_eq!(Ok(percent), Percent::try_from(number));
            assert_eq!(percent.to_string(), shown);
            assert_eq!(Ok(percent), shown.parse());
        }
    }

    #[test]
    fn refuses_what_is_no_percentile() {
        for text in [
            "", "p", "0", "100", "-1", "99.9999", "NaN", "inf", "p p50", "0.0001", "fifty",
        ] {
            assert!(text.parse::<Percent>().is_err(), "{text}");
        }
        assert_eq!(
            "100".parse::<Percent>().unwrap_err().to_string(),
            "\"100\" is no percentile: give a number above 0 and below 100 with at most three decimals, such as 99.9"
        );
    }

    #[test]
    fn ranks_are_exact_where_floating_point_is_not() {
        let p = |text: &str| text.parse::<Percent>().unwrap();
        // 0.95 * 20 is 19 exactly and 0.999 * 1000 is 999: a product in f64 gives 18.999… or 999.0000…1.
        assert_eq!(p("95").rank(20), 19);
        assert_eq!(p("99.9").rank(1000), 999);
        assert_eq!((p("50").rank(1), p("50").rank(2), p("50").rank(3)), (1, 1, 2));
        assert_eq!(
            (p("0.001").rank(1), p("99.999").rank(u64::MAX)),
            (1, u64::MAX - u64::MAX / 100_000)
        );
    }

    #[test]
    fn orders_by_size_not_by_letters() {
        let mut all: Vec<Percent> = ["99", "5", "99.9", "10"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        all.sort();
        let shown: Vec<String> = all.iter().map(Percent::to_string).collect();
        assert_eq!(shown, ["p5", "p10", "p99", "p99.9"]);
    }
}
