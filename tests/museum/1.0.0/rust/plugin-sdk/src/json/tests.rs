//! Held against `serde_json`, the parser of record.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::*;

fn same(text: &str) {
    let ours: Result<Value, Error> = from_str(text);
    let theirs: Result<Value, serde_json::Error> = serde_json::from_str(text);
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => assert_eq!(ours, theirs, "{text}"),
        (Err(_), Err(_)) => {}
        (ours, theirs) => panic!("{text}: {ours:?}, {theirs:?}"),
    }
}

#[test]
fn what_is_json_and_what_is_not() {
    for text in [
        "null",
        "true",
        "false",
        " [ ] ",
        "{}",
        "[1,2]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\":1,}",
        "{\"a\" : [ {} ] }",
        "",
        " ",
        "nul",
        "truee",
        "[",
        "{",
        "{\"a\"}",
        "{a:1}",
        "{1:2}",
        "\"",
        "\"a",
        "1 1",
        "[1]]",
        "\u{a0}1",
        "'a'",
        "{}{",
        "\"\\u00e4\\ud83d\\ude00\\n\\/\\\\\"",
        "\"\\ud83d\"",
        "\"\\ud83dx\"",
        "\"\\ude00\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u+123\"",
        "\"a\tb\"",
        "\"ä€\"",
        "\"\\u0000\"",
        "[true,false,null]",
        "{\"a\":{\"b\":[[]]}}",
    ] {
        same(text);
    }
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    same(&deep(64));
    assert!(from_str::<Value>(&deep(65)).is_err());
    assert!(from_str::<Value>(&"[".repeat(1_000_000)).is_err());
}

#[test]
fn numbers_are_the_nearest_ones() {
    for text in [
        "0",
        "-0",
        "00",
        "01",
        "-",
        "+1",
        "1.",
        ".5",
        "1e",
        "1e+",
        "1e5",
        "1E-5",
        "0.1",
        "-0.1",
        "-1",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "-9223372036854775809",
        "1e400",
        "-1e400",
        "5e-324",
        "2.4703282292062327e-324",
        "1e-400",
        "0.30000000000000004",
        "9007199254740993.0",
        "1.7976931348623157e308",
        "123456789012345678901234567890",
        "3.141592653589793238462643383279502884197",
        "1e23",
        "8.41e21",
        "2.2250738585072011e-308",
    ] {
        same(text);
    }
    assert_eq!(
        from_str::<f64>("2.2250738585072011e-308")
            .expect("a number")
            .to_bits(),
        0x000f_ffff_ffff_ffff
    );
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Choice {
    Plain,
    Of(u32),
    Pair(u8, i8),
    Named { a: Option<f32> },
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    choices: Vec<Choice>,
    by_layer: BTreeMap<u16, f64>,
    name: Option<String>,
    wrapped: Wrapped,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Wrapped(u64);

#[test]
fn types_are_read_as_serde_json_reads_them() {
    let both = |text: &str| {
        let ours: Result<Config, Error> = from_str(text);
        let theirs: Result<Config, serde_json::Error> = serde_json::from_str(text);
        assert_eq!(
            ours.as_ref().ok(),
            theirs.as_ref().ok(),
            "{text}: {ours:?}, {theirs:?}"
        );
        ours
    };
    let good = r#"{"choices":["plain",{"of":3},{"pair":[1,-2]},{"named":{"a":0.5}},{"named":{"a":null}},{"plain":null}],
        "by_layer":{"0":0.1,"17":2}, "name":"a\"b", "wrapped":7}"#;
    assert_eq!(both(good).expect("good").choices.len(), 6);
    for bad in [
        "{}",
        r#"{"by_layer":{},"wrapped":-1}"#,
        r#"{"by_layer":{},"wrapped":1.5}"#,
        r#"{"by_layer":{"x":1},"wrapped":1}"#,
        r#"{"by_layer":{"70000":1},"wrapped":1}"#,
        r#"{"by_layer":[],"wrapped":1}"#,
        r#"{"by_layer":{},"wrapped":1,"choices":["odd"]}"#,
        r#"{"by_layer":{},"wrapped":1,"choices":[{"of":3,"plain":null}]}"#,
        r#"{"by_layer":{},"wrapped":1,"choices":[{"pair":[1]}]}"#,
        r#"{"by_layer":{},"wrapped":1,"choices":[{"pair":[1,2,3]}]}"#,
        r#"{"by_layer":{},"wrapped":1,"wrapped":2}"#,
    ] {
        assert!(both(bad).is_err(), "{bad}");
    }
    let text = both(r#"{"by_layer":{},"wrapped":1,"nam":"x"}"#)
        .expect_err("unknown")
        .to_string();
    assert!(
        text.starts_with("unknown field `nam`, expected one of `choices`"),
        "{text}"
    );
}
