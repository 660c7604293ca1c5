//! Numbers, units and foreign text as the table shows them. The exact values are in the record.

use super::super::record::MetricValue;

/// Significant digits of a number that is no count.
const DIGITS: i32 = 4;
/// Shown for a number that does not exist.
pub(super) const NONE: &str = "-";

/// A number with four significant digits and thousands set apart; an exponent where it would be long.
pub(super) fn number(value: f64) -> String {
    let magnitude = value.abs();
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e9).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    let exponent = magnitude.log10().floor() as i32;
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

/// Value and unit; bytes, rates and operations with a prefix (decimal, as SI has it).
pub(super) fn quantity(value: MetricValue, of: &str) -> (String, String) {
    let number_of = value.as_f64();
    let scalable = of.starts_with("By") || of.to_ascii_lowercase().contains("flop");
    if scalable && number_of.abs() >= 1000.0 && number_of.is_finite() {
        let prefixes = ["", "k", "M", "G", "T", "P", "E"];
        let step = ((number_of.abs().log10() / 3.0).floor() as usize).min(prefixes.len() - 1);
        let scaled = number_of / 1000f64.powi(step as i32);
        return (number(scaled), format!("{}{}", prefixes[step], unit(of)));
    }
    match value {
        MetricValue::Count(exact) => (count(exact), unit(of)),
        MetricValue::Number(rounded) => (number(rounded), unit(of)),
    }
}

/// Bytes with a prefix, such as `49.38 MB`.
pub(super) fn bytes(value: u64) -> String {
    let (text, unit) = quantity(MetricValue::Count(value), "By");
    format!("{text} {unit}")
}

/// A large count in words for a line of text, such as `12.35 M`.
pub(super) fn short(value: u64) -> String {
    let (text, unit) = quantity(MetricValue::Count(value), "By");
    format!("{text} {}", unit.trim_end_matches('B'))
        .trim_end()
        .to_owned()
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
        let flops = quantity(MetricValue::Number(1.25e13), "{flop}/s");
        assert_eq!(flops, ("12.50".to_owned(), "Tflop/s".to_owned()));
        assert_eq!(
            quantity(MetricValue::Number(0.5), "1"),
            ("0.5000".to_owned(), String::new())
        );
        assert_eq!(quantity(MetricValue::Count(12_345), "1").0, "12,345");
    }

    #[test]
    fn text_from_outside_cannot_steer_the_terminal() {
        assert_eq!(clean("a\u{1b}[31mb\nc"), "a\\u{1b}[31mb\\nc");
        assert_eq!(clean("right\u{202e}left"), "right\\u{202e}left");
        assert_eq!(clean("Grüße 你好"), "Grüße 你好");
    }
}
