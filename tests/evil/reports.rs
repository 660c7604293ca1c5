//! Native plugins that keep to the calls, and break the contract in what they say.

use crate::case::{Case, Expect};
use crate::native::configured;

use Expect::{Harmless, Partial, Quarantined};

/// Reports that are not as declared, in the last call: what was reported before is kept.
#[expect(clippy::too_many_lines, reason = "it is a table of cases")]
fn reports() -> Vec<Case> {
    [
        (
            "an-undeclared-metric",
            "undeclared",
            "\"undeclared\": it is not declared",
        ),
        ("an-empty-name", "empty_name", "a name is 1 to 128"),
        (
            "a-name-with-control-characters",
            "control_name",
            "a name is 1 to 128",
        ),
        ("a-name-of-a-megabyte", "long_name", "a name is 1 to 128"),
        ("a-name-that-is-not-utf8", "bad_utf8", "a name is 1 to 128"),
        ("a-metric-twice", "duplicate", "\"index_sum\" twice"),
        (
            "an-undeclared-label",
            "undeclared_label",
            "label layer is not declared",
        ),
        ("an-empty-label", "empty_label", "a label's key is 1 to 128"),
        (
            "a-label-with-control-characters",
            "control_label",
            "label of: a value is one line",
        ),
        (
            "a-label-of-a-megabyte",
            "long_label",
            "label of: a value is one line",
        ),
        ("a-label-twice", "twin_labels", "label of is given twice"),
        (
            "labels-without-end",
            "many_labels",
            "more labels or values than are allowed",
        ),
        (
            "a-hundred-thousand-metrics",
            "many_metrics",
            "more than 4096 metrics",
        ),
        ("a-value-that-is-no-number", "not_a_number", "NaN is not finite"),
        ("an-infinite-value", "infinite", "-inf is not finite"),
        ("a-distribution-of-no-numbers", "nan_values", "finite values"),
        ("a-distribution-that-descends", "descending", "values ascend"),
        ("counts-beyond-64-bits", "overflow", "more than 2^64"),
        (
            "a-distribution-of-a-million-values",
            "huge_distribution",
            "more labels or values than are allowed",
        ),
        ("a-value-of-another-kind", "wrong_shape", "its value is no gauge"),
        ("a-value-of-an-unknown-shape", "unknown_shape", "unknown shape 77"),
        (
            "a-metric-with-a-wrong-size",
            "small_metric",
            "smaller than version 1",
        ),
        ("a-null-metric", "null_metric", "smaller than version 1"),
        (
            "no-value-and-no-reason",
            "no_reason",
            "unavailable without a reason",
        ),
        (
            "a-fault-that-the-status-denies",
            "fault_and_go_on",
            "a fault that the status denies",
        ),
    ]
    .into_iter()
    .map(|(name, misdeed, says)| configured(name, "finish", misdeed, Partial(says)))
    .collect()
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = reports();
    cases.extend([
        configured(
            "a-status-without-a-reason",
            "batch",
            "status",
            Partial("status 77 without a reason"),
        ),
        configured(
            "an-instance-that-is-null",
            "open",
            "no_instance",
            Quarantined("open succeeded without an instance"),
        ),
        configured(
            "no-subscription",
            "subscribe",
            "say_nothing",
            Quarantined("a call succeeded without an answer"),
        ),
        configured(
            "a-subscription-of-two-megabytes",
            "subscribe",
            "two_megabytes",
            Quarantined("answered with 2097151 bytes"),
        ),
        configured(
            "a-subscription-that-is-no-json",
            "subscribe",
            "no_json",
            Quarantined("subscription cannot be read"),
        ),
        configured(
            "a-subscription-that-nests-deeply",
            "subscribe",
            "deep_json",
            Quarantined("subscription cannot be read"),
        ),
        configured(
            "a-subscription-to-no-rows",
            "subscribe",
            "no_rows",
            Quarantined("max_rows is 0"),
        ),
        configured("a-million-log-lines", "batch", "log_flood", Harmless),
        configured(
            "a-million-log-lines-in-subscribe",
            "subscribe",
            "log_flood",
            Harmless,
        ),
        configured("escape-sequences-logged", "batch", "log_escapes", Harmless),
    ]);
    cases
}
