//! Numbers, units and foreign text as the table shows them. The exact values are in the record.

use super::super::record::MetricValue;

/// Significant digits of a number that is no count.
const DIGITS: i32 = 4;
/// Shown for a number that does not exist.
pub(super) const NONE: &str = "-";

/// A number with four significant digits and thousands set apart; an exponent where it would be long.
pub(super) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let exponent = exponent(value);
    if !(-4..9).contains(&exponent) {
        return format!("{value:.3e}");
    }
    let decimals = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let whole = group(whole);
    if fraction.is_empty() {
        whole
    } else {
        format!("{whole}.{fraction}")
    }
}

/// The decimal exponent of a number once it is rounded to the digits that are shown: 3 for 999.96.
fn exponent(value: f64) -> i32 {
    let text = format!("{value:.3e}");
    text.split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or(0)
}

/// A count in full, thousands set apart.
pub(super) fn count(value: u64) -> String {
    group(&value.to_string())
}

fn group(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let mut text = sign.to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A unit for the eye: no braces, nothing for `1`.
pub(super) fn unit(unit: &str) -> String {
    if unit == "1" {
        String::new()
    } else {
        unit.replace(['{', '}'], "").replace("By", "B")
    }
}

/// The power of 1000 by which all values of one metric are divided, so that they can be compared at a glance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scale(usize);

impl Scale {
    /// Decimal prefixes, as SI has them.
    const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];

    /// For values up to this magnitude: bytes and operations, and rates of these, are scaled so that it has at most three
    /// digits before the point; others are not.
    pub(super) fn of(largest: f64, unit: &str) -> Self {
        let scalable = unit.starts_with("By") || unit.to_ascii_lowercase().contains("flop");
        // A unit that names a ratio of both, such as flop per byte, is no amount of either.
        if !scalable || unit.ends_with("/By") {
            return Self(0);
        }
        let power = usize::try_from(exponent(largest) / 3).unwrap_or(0);
        Self(power.min(Self::PREFIXES.len() - 1))
    }

    /// The unit with its prefix.
    pub(super) fn unit(self, of: &str) -> String {
        format!("{}{}", Self::PREFIXES[self.0], unit(of))
    }

    /// A value without its unit: counts, and whole numbers of things such as tokens, in full.
    pub(super) fn value(self, value: MetricValue, of: &str) -> String {
        match value {
            _ if self.0 > 0 => number(value.as_f64() / 1000f64.powi(self.0 as i32)),
            MetricValue::Count(exact) => count(exact),
            MetricValue::Number(whole) if of.starts_with('{') && of.ends_with('}') && is_count(whole) => {
                count(whole as u64)
            }
            MetricValue::Number(rounded) => number(rounded),
        }
    }
}

fn is_count(value: f64) -> bool {
    value.fract() == 0.0 && (0.0..9e15).contains(&value)
}

/// Bytes with a prefix, such as `49.38 MB`.
pub(super) fn bytes(value: u64) -> String {
    let scale = Scale::of(value as f64, "By");
    let text = scale.value(MetricValue::Count(value), "By");
    format!("{text} {}", scale.unit("By"))
}

/// A large count with a prefix for a line of text, such as `12.35 M`.
pub(super) fn short(value: u64) -> String {
    bytes(value).trim_end_matches('B').trim_end().to_owned()
}

/// Text from outside on one line: control characters, which could steer the terminal, are shown as escapes.
pub(super) fn clean(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_control()
            || ('\u{202a}'..='\u{202e}').contains(&char)
            || ('\u{2066}'..='\u{2069}').contains(&char)
        {
            shown.extend(char.escape_default());
        } else {
            shown.push(char);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1.000"),
            (1.23456, "1.235"),
            (-98.765, "-98.77"),
            (1234.5, "1,234"),
            (999_999.6, "1,000,000"),
            (123_456_789.0, "123,456,789"),
            (999.96, "1,000"),
            (0.999_96, "1.000"),
            (999_999_999.6, "1.000e9"),
            (1.5e9, "1.500e9"),
            (0.000_123_4, "0.0001234"),
            (0.000_012_3, "1.230e-5"),
            (f64::MAX, "1.798e308"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn counts_are_exact() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(group("-1234567"), "-1,234,567");
    }

    #[test]
    fn bytes_and_operations_take_prefixes_and_others_do_not() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(49_382_712), "49.38 MB");
        assert_eq!(short(12_345_678), "12.35 M");
        assert_eq!(short(7), "7");
        let flops = Scale::of(1.25e13, "{flop}/s");
        assert_eq!(flops.unit("{flop}/s"), "Tflop/s");
        assert_eq!(flops.value(MetricValue::Number(1.25e13), "{flop}/s"), "12.50");
        assert_eq!(flops.value(MetricValue::Number(1.25e9), "{flop}/s"), "0.001250");
        assert_eq!(Scale::of(5e6, "1"), Scale(0));
        assert_eq!(Scale::of(5e6, "{flop}/By"), Scale(0));
    }

    #[test]
    fn a_scaled_number_has_at_most_three_digits_before_the_point() {
        assert_eq!(bytes(1_287_000), "1.287 MB");
        assert_eq!(bytes(999_949), "999.9 kB");
        assert_eq!(bytes(999_960), "1.000 MB", "not 1,000 kB");
        assert_eq!(bytes(u64::MAX), "18.45 EB");
    }

    #[test]
    fn whole_numbers_of_things_have_no_decimals_and_ratios_do() {
        let plain = Scale::default();
        assert_eq!(plain.value(MetricValue::Count(12_345), "1"), "12,345");
        assert_eq!(plain.value(MetricValue::Number(159.0), "{token}"), "159");
        assert_eq!(plain.value(MetricValue::Number(159.5), "{token}"), "159.5");
        assert_eq!(plain.value(MetricValue::Number(159.0), "{token}/s"), "159.0");
        assert_eq!(plain.value(MetricValue::Number(0.5), "1"), "0.5000");
        assert_eq!(plain.value(MetricValue::Number(1.0), "1"), "1.000");
    }

    #[test]
    fn text_from_outside_cannot_steer_the_terminal() {
        assert_eq!(clean("a\u{1b}[31mb\nc"), "a\\u{1b}[31mb\\nc");
        assert_eq!(clean("right\u{202e}left"), "right\\u{202e}left");
        assert_eq!(clean("Grüße 你好"), "Grüße 你好");
    }
}
