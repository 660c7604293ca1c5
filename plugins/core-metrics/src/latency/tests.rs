use super::*;
use lm_bench_plugin::kinds::{op_code, request_phase};
use lm_bench_plugin::testing::{CollectorTest, Metrics};

type Test = CollectorTest<Latency>;

fn step(phase: u8, (batch, tokens): (u32, u32), host_ns: u64) -> step::Row<'static> {
    step::Row {
        phase,
        batch,
        tokens,
        host_ns,
        ..Default::default()
    }
}

/// A request that is due at 1 ms, sent at 2 ms, answers first at 7 ms and last at 12 ms with 6 tokens.
fn request(test: &mut Test, id: u64, last: &[(u8, u64)]) {
    for (phase, ms) in [
        (request_phase::DUE, 1),
        (request_phase::SENT, 2),
        (request_phase::FIRST_TOKEN, 7),
    ]
    .iter()
    .chain(last)
    {
        test.row(&request::Row {
            id,
            phase: *phase,
            t_ns: ms * 1_000_000,
            output_tokens: if *phase >= request_phase::LAST_CONTENT {
                6
            } else {
                0
            },
            ..Default::default()
        });
    }
}

/// Checks value and count of each bucket, to three digits.
#[track_caller]
fn assert_buckets(metrics: &Metrics, name: &str, labels: &[(&str, &str)], expected: &[(f64, u64)]) {
    let buckets = metrics.distribution(name, labels);
    assert_eq!(buckets.len(), expected.len(), "{name} {labels:?}: {buckets:?}");
    for (&(value, count), &(want, times)) in buckets.iter().zip(expected) {
        assert!(
            (value - want).abs() <= want * 1e-3 && count == times,
            "{name} {labels:?}: {buckets:?}"
        );
    }
}

#[test]
fn steps_are_told_apart_by_phase() {
    let mut test = Test::new();
    test.row(&step(phase::PREFILL, (2, 64), 30_000_000))
        .row(&step(phase::DECODE, (2, 2), 4_000_000))
        .row(&step(phase::DECODE, (2, 2), 4_000_000))
        .row(&step(phase::DECODE, (2, 2), 5_000_000))
        .row(&step(phase::MIXED, (3, 40), 9_000_000))
        .row(&step(phase::LOAD, (0, 0), 1));
    let metrics = test.metrics();
    assert_buckets(&metrics, "prefill_latency_ms", &[], &[(30.0, 1)]);
    assert_buckets(
        &metrics,
        "decode_latency_per_token_ms",
        &[],
        &[(4.0, 2), (5.0, 1)],
    );
    assert_buckets(&metrics, "decode_step_latency_ms", &[], &[(4.0, 2), (5.0, 1)]);
    assert_buckets(&metrics, "mixed_step_latency_ms", &[], &[(9.0, 1)]);
    assert_eq!(metrics.get("decode_step_latency_ms", &[]).samples, 3);
}

#[test]
fn a_step_that_gives_each_sequence_two_tokens_halves_the_time_per_token() {
    let mut test = Test::new();
    test.row(&step(phase::DECODE, (4, 8), 6_000_000))
        .row(&step(phase::DECODE, (4, 0), 6_000_000));
    let metrics = test.metrics();
    assert_buckets(&metrics, "decode_latency_per_token_ms", &[], &[(3.0, 1)]);
    assert_buckets(&metrics, "decode_step_latency_ms", &[], &[(6.0, 2)]);
}

#[test]
fn operators_have_distributions_and_weighted_shares() {
    let op = |op, device_ns| op::Row {
        phase: phase::DECODE,
        op,
        device_ns,
        ..Default::default()
    };
    let mut test = Test::new();
    test.weight(8.0)
        .row(&op(op_code::QKV, 30_000))
        .row(&op(op_code::MLP, 50_000));
    test.weight(1.0).row(&op(op_code::QKV, 80_000));
    test.row(&op::Row {
        phase: phase::PREFILL,
        ..op(op_code::MLP, 7_000)
    });
    let metrics = test.metrics();
    let qkv = &[("op", "qkv"), ("phase", "decode")];
    assert_buckets(&metrics, "op_latency_us", qkv, &[(30.0, 1), (80.0, 1)]);
    // qkv 8*30 + 80 = 320, mlp 8*50 = 400.
    metrics.assert("op_time_share", qkv, 320.0 / 720.0);
    metrics.assert("op_time_share", &[("op", "mlp"), ("phase", "prefill")], 1.0);
}

#[test]
fn requests_are_timed_from_due_and_from_sent() {
    let mut test = Test::new();
    request(
        &mut test,
        1,
        &[(request_phase::LAST_CONTENT, 12), (request_phase::FINISHED, 13)],
    );
    let metrics = test.metrics();
    assert_buckets(&metrics, "ttft_ms", &[("from", "due")], &[(6.0, 1)]);
    assert_buckets(&metrics, "ttft_ms", &[("from", "sent")], &[(5.0, 1)]);
    assert_buckets(&metrics, "e2e_latency_ms", &[("from", "due")], &[(11.0, 1)]);
    assert_buckets(&metrics, "e2e_latency_ms", &[("from", "sent")], &[(10.0, 1)]);
    // (12 - 7) / (6 - 1)
    assert_buckets(&metrics, "tpot_ms", &[], &[(1.0, 1)]);
}

#[test]
fn only_finished_requests_count() {
    let mut test = Test::new();
    request(&mut test, 1, &[(request_phase::FAILED, 12)]);
    request(
        &mut test,
        2,
        &[(request_phase::LAST_CONTENT, 12), (request_phase::CANCELLED, 12)],
    );
    request(&mut test, 3, &[(request_phase::LAST_CONTENT, 12)]);
    let metrics = test.metrics();
    let none = "no finished request was recorded";
    assert_eq!(metrics.unavailable("ttft_ms", &[("from", "due")]), none);
    assert_eq!(metrics.unavailable("e2e_latency_ms", &[("from", "sent")]), none);
}

#[test]
fn a_request_with_lost_rows_gives_what_is_left() {
    let mut test = Test::new();
    test.lose(4);
    for (phase, ms) in [(request_phase::LAST_CONTENT, 12), (request_phase::FINISHED, 13)] {
        test.row(&request::Row {
            id: 1,
            phase,
            t_ns: ms * 1_000_000,
            output_tokens: 6,
            ..Default::default()
        });
    }
    assert!(
        test.metrics()
            .unavailable("tpot_ms", &[])
            .starts_with("no finished request")
    );
}

#[test]
fn gaps_between_chunks_skip_lost_ones() {
    let token = |request, chunk, ms: u64| token::Row {
        request,
        chunk,
        t_ns: ms * 1_000_000,
        ..Default::default()
    };
    let mut test = Test::new();
    test.row(&token(1, 0, 10))
        .row(&token(2, 0, 11))
        .row(&token(1, 1, 14))
        .row(&token(2, 1, 18));
    test.lose(1).row(&token(1, 3, 30)).row(&token(1, 4, 34));
    assert_buckets(&test.metrics(), "itl_ms", &[], &[(4.0, 2), (7.0, 1)]);
}

#[test]
fn time_that_runs_backwards_is_refused() {
    let mut test = Test::new();
    request(
        &mut test,
        9,
        &[(request_phase::LAST_CONTENT, 6), (request_phase::FINISHED, 13)],
    );
    assert_eq!(
        test.fault().message,
        "request 9: an event of 6000000 ns follows one of 7000000 ns"
    );
}

#[test]
fn without_events_everything_says_why() {
    let metrics = Test::new().metrics();
    assert_eq!(
        metrics.unavailable("prefill_latency_ms", &[]),
        "no prefill step was recorded"
    );
    assert!(
        metrics
            .unavailable("op_latency_us", &[])
            .contains("--instrument ops")
    );
    let quiet = Test::new().config(r#"{"ops":false}"#).metrics();
    assert_eq!(quiet.named("op_latency_us").count(), 0);
}
