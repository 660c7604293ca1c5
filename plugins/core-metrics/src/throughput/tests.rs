use super::*;
use lm_bench_plugin::testing::CollectorTest;

type Test = CollectorTest<Throughput>;

fn step(phase: u8, tokens: u32, (end_ms, host_ms): (u64, u64)) -> step::Row<'static> {
    let (t_ns, host_ns) = (end_ms * 1_000_000, host_ms * 1_000_000);
    step::Row {
        phase,
        tokens,
        t_ns,
        host_ns,
        ..Default::default()
    }
}

/// Prefill of 64 tokens in 100..140 ms, decode of 2 tokens in 150..155 and 160..165 ms.
fn three_steps() -> Test {
    let mut test = Test::new();
    test.row(&step(phase::PREFILL, 64, (140, 40)))
        .row(&step(phase::DECODE, 2, (155, 5)))
        .row(&step(phase::DECODE, 2, (165, 5)));
    test
}

#[test]
fn wall_time_and_busy_time_are_told_apart() {
    let metrics = three_steps().metrics();
    // Wall 100..165 ms = 65 ms, busy 50 ms, 68 tokens.
    metrics.assert("tokens_computed_per_second", &[], 68.0 / 0.065);
    metrics.assert("tokens_computed_per_busy_second", &[], 68.0 / 0.050);
    metrics.assert("prefill_tokens_per_second", &[], 64.0 / 0.040);
    metrics.assert("decode_tokens_per_second", &[], 4.0 / 0.010);
    metrics.assert("prefill_tokens_per_wall_second", &[], 64.0 / 0.065);
    metrics.assert("decode_tokens_per_wall_second", &[], 4.0 / 0.065);
    metrics.assert("engine_busy_ratio", &[], 50.0 / 65.0);
    metrics.assert("steps", &[("phase", "decode")], 2.0);
    metrics.assert("tokens_computed", &[("phase", "prefill")], 64.0);
    assert_eq!(metrics.get("tokens_computed_per_second", &[]).samples, 3);
    assert_eq!(metrics.find("steps", &[("phase", "mixed")]), None);
}

#[test]
fn what_was_spent_on_measuring_is_wall_time_and_not_busy() {
    let mut test = Test::new();
    test.row(&step::Row {
        measuring_ns: 20_000_000,
        ..step(phase::PREFILL, 64, (140, 40))
    })
    .row(&step(phase::DECODE, 2, (160, 5)));
    let metrics = test.metrics();
    // Wall 80..160 ms, of which 40 and 5 are busy.
    metrics.assert("tokens_computed_per_second", &[], 66.0 / 0.080);
    metrics.assert("prefill_tokens_per_second", &[], 64.0 / 0.040);
    metrics.assert("engine_busy_ratio", &[], 45.0 / 80.0);
    let old = test.without(step::COLUMNS.measuring_ns);
    old.metrics()
        .assert("tokens_computed_per_second", &[], 66.0 / 0.060);
}

#[test]
fn mixed_steps_count_in_the_total_only() {
    let mut test = three_steps();
    test.row(&step(phase::MIXED, 32, (200, 10)));
    let metrics = test.metrics();
    metrics.assert("tokens_computed_per_second", &[], 100.0 / 0.1);
    metrics.assert("prefill_tokens_per_second", &[], 64.0 / 0.040);
}

#[test]
fn lost_rows_leave_only_busy_rates() {
    let mut test = three_steps();
    test.lose(5).row(&step(phase::DECODE, 2, (200, 5)));
    let metrics = test.metrics();
    let reason = "5 rows were lost, so the amount in the wall time is not known";
    assert_eq!(metrics.unavailable("tokens_computed_per_second", &[]), reason);
    metrics.assert("decode_tokens_per_second", &[], 6.0 / 0.015);
}

#[test]
fn rows_lost_at_the_end_count_too() {
    let mut test = three_steps();
    test.lose_after(step::KIND, 2);
    let reason = "2 rows were lost, so the amount in the wall time is not known";
    assert_eq!(
        test.metrics().unavailable("tokens_computed_per_second", &[]),
        reason
    );
}

#[test]
fn requests_per_second_of_those_that_finished() {
    let mut test = Test::new();
    for (id, phase, ms, output_tokens) in [
        (1, request_phase::DUE, 100, 0),
        (2, request_phase::DUE, 120, 0),
        (1, request_phase::FINISHED, 300, 10),
        (2, request_phase::FAILED, 900, 3),
        (3, request_phase::FINISHED, 600, 20),
    ] {
        let t_ns = ms * 1_000_000;
        test.row(&request::Row {
            id,
            phase,
            t_ns,
            output_tokens,
            ..Default::default()
        });
    }
    let metrics = test.metrics();
    metrics.assert("requests_per_second", &[], 2.0 / 0.5);
    metrics.assert("output_tokens_per_second", &[], 30.0 / 0.5);
}

#[test]
fn without_events_or_time_there_is_no_rate() {
    let metrics = Test::new().metrics();
    assert!(
        metrics
            .unavailable("tokens_computed_per_second", &[])
            .starts_with("nothing was measured")
    );
    assert_eq!(
        metrics.unavailable("requests_per_second", &[]),
        "no finished request was recorded"
    );
    let mut test = Test::new();
    test.row(&step(phase::DECODE, 2, (10, 0)));
    assert!(
        test.metrics()
            .unavailable("tokens_computed_per_second", &[])
            .starts_with("nothing")
    );
}
