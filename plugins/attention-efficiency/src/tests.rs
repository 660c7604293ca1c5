use super::*;
use lm_bench_plugin::kinds::phase::{DECODE, PREFILL};
use lm_bench_plugin::testing::{CollectorTest, Metrics};

type Test = CollectorTest<AttentionEfficiency>;

const ALL: &[(&str, &str)] = &[("phase", "decode")];
const LAYER_1: &[(&str, &str)] = &[("phase", "decode"), ("layer", "1")];

fn peak(of: &str, measured: bool, per_second: f64) -> Peak {
    Peak {
        of: of.to_owned(),
        source: format!("source of {of}"),
        measured,
        per_second,
    }
}

fn gpu(peaks: &[Peak]) -> RunInfo {
    RunInfo {
        device: "cuda:0 NVIDIA H200".to_owned(),
        peaks: peaks.to_vec(),
        ..Default::default()
    }
}

fn call(layer: u16, (flops, bytes): (f64, f64), device_ns: u64) -> attention::Row<'static> {
    attention::Row {
        phase: DECODE,
        layer,
        flops,
        bytes,
        device_ns,
        ..Default::default()
    }
}

/// Layer 0: 2e6 flop and 1e6 bytes in 10 us; layer 1: 6e6 flop and 1e6 bytes in 30 us.
fn two_calls() -> Test {
    let mut test = Test::new().run_info(gpu(&[peak("flops", true, 1e12), peak("bytes", true, 5e11)]));
    test.row(&call(0, (2e6, 1e6), 10_000))
        .row(&call(1, (6e6, 1e6), 30_000));
    test
}

fn with(labels: &[(&'static str, &'static str)], peak: &'static str) -> Vec<(&'static str, &'static str)> {
    [labels, &[("peak", peak)]].concat()
}

#[test]
fn rates_come_from_shape_and_time() {
    let metrics = two_calls().metrics();
    // 8e6 flop and 2e6 bytes in 40 us.
    metrics.assert("attention_flops_per_second", ALL, 2e11);
    metrics.assert("attention_bytes_per_second", ALL, 5e10);
    metrics.assert("attention_arithmetic_intensity", ALL, 4.0);
    metrics.assert("attention_time_per_call_us", ALL, 20.0);
    metrics.assert("attention_flops_per_call", ALL, 4e6);
    metrics.assert("attention_bytes_per_call", ALL, 1e6);
    metrics.assert("attention_flops_per_second", LAYER_1, 2e11);
    metrics.assert("attention_arithmetic_intensity", LAYER_1, 6.0);
    assert_eq!(metrics.get("attention_flops_per_second", ALL).samples, 2);
}

#[test]
fn utilisation_names_its_peak() {
    let metrics = two_calls().metrics();
    metrics.assert("attention_utilization_ratio", &with(ALL, "measured"), 0.2);
    metrics.assert(
        "attention_bandwidth_utilization_ratio",
        &with(ALL, "measured"),
        0.1,
    );
    // Least times: max(2, 2) us and max(6, 2) us of 40 us.
    metrics.assert("attention_roofline_ratio", &with(ALL, "measured"), 8.0 / 40.0);
    let source = &[("source", "source of flops"), ("peak", "measured")];
    metrics.assert("attention_peak_flops_per_second", source, 1e12);
}

#[test]
fn stated_peaks_are_told_from_measured_ones() {
    let mut long = peak("flops", false, 4e11);
    long.source = "é".repeat(100);
    let test = two_calls().run_info(gpu(&[long, peak("bytes", true, 5e11)]));
    let metrics = test.metrics();
    metrics.assert("attention_utilization_ratio", &with(ALL, "stated"), 0.5);
    metrics.assert(
        "attention_bandwidth_utilization_ratio",
        &with(ALL, "measured"),
        0.1,
    );
    assert!(
        metrics
            .find("attention_roofline_ratio", &with(ALL, "stated"))
            .is_some()
    );
    let shown = "é".repeat(64);
    metrics.assert(
        "attention_peak_flops_per_second",
        &[("source", &shown), ("peak", "stated")],
        4e11,
    );
}

#[test]
fn without_peaks_there_is_no_utilisation() {
    let metrics = two_calls().run_info(gpu(&[])).metrics();
    for name in ["attention_utilization_ratio", "attention_roofline_ratio"] {
        assert_eq!(metrics.unavailable(name, ALL), "no peak of the device is known");
    }
    assert_eq!(
        metrics.unavailable("attention_peak_bytes_per_second", &[]),
        "no peak of the device is known"
    );
    metrics.assert("attention_flops_per_second", ALL, 2e11);
}

#[test]
fn weights_count_and_phases_stay_apart() {
    let mut test = Test::new();
    test.weight(3.0).row(&call(0, (2e6, 1e6), 10_000));
    test.weight(1.0).row(&call(1, (6e6, 1e6), 30_000));
    test.row(&attention::Row {
        phase: PREFILL,
        ..call(0, (1e9, 1e6), 50_000)
    });
    let metrics = test.metrics();
    // 12e6 flop in 60 us.
    metrics.assert("attention_flops_per_second", ALL, 2e11);
    metrics.assert("attention_time_per_call_us", ALL, 15.0);
    metrics.assert("attention_flops_per_second", &[("phase", "prefill")], 2e13);
}

#[test]
fn calls_without_time_or_bytes_have_no_rate() {
    let mut test = Test::new();
    test.row(&call(0, (2e6, 0.0), 0));
    let metrics = test.metrics();
    assert_eq!(
        metrics.unavailable("attention_flops_per_second", ALL),
        "the attention calls took no time"
    );
    assert_eq!(
        metrics.unavailable("attention_arithmetic_intensity", ALL),
        "the attention calls moved no bytes"
    );
    metrics.assert("attention_time_per_call_us", ALL, 0.0);
}

#[test]
fn a_cpu_has_no_hardware_counters() {
    let mut test = Test::new();
    test.row(&call(0, (2e6, 1e6), 10_000));
    let metrics = test.metrics();
    for name in ["sm_efficiency_pct", "occupancy", "shared_mem_reuse_rate"] {
        assert_eq!(metrics.unavailable(name, &[]), "no hardware counters on cpu");
    }
}

#[test]
fn counter_columns_of_calls_give_reuse_per_phase_and_layer() {
    let mut test = two_calls();
    test.row(&attention::Row {
        smem_bytes: 6000,
        dram_bytes: 1500,
        ..call(1, (1.0, 1.0), 1)
    });
    let metrics = test.metrics();
    metrics.assert("shared_mem_reuse_rate", ALL, 4.0);
    metrics.assert("shared_mem_reuse_rate", LAYER_1, 4.0);
    metrics.assert("dram_read_bytes", LAYER_1, 1500.0);
    assert_eq!(metrics.find("shared_mem_reuse_rate", &[]), None);
    assert_eq!(metrics.get("shared_mem_reuse_rate", ALL).samples, 1);
    let old = test.without(attention::COLUMNS.smem_bytes);
    assert!(
        old.metrics()
            .unavailable("shared_mem_reuse_rate", &[])
            .starts_with("no hardware counter of")
    );
}

fn count(test: &mut Test, (kernel, launch): (&str, u64), counters: &[(&str, f64)]) {
    let kernel = test.symbol(kernel);
    for &(metric, value) in counters {
        let metric = test.symbol(metric);
        test.row(&counter::Row {
            kernel,
            launch,
            metric,
            value,
            ..Default::default()
        });
    }
}

fn counted() -> Metrics {
    let mut test = two_calls();
    let duration = "gpu__time_duration.sum";
    let (read, dram) = (
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_cmd_read.sum",
        "dram__bytes_read.sum",
    );
    let first = [
        (counters::SM_ACTIVE, 80.0),
        (counters::WARPS_ACTIVE, 20.0),
        (duration, 3000.0),
    ];
    count(&mut test, ("Flash_Attn_fwd", 1), &first);
    count(&mut test, ("Flash_Attn_fwd", 1), &[(read, 100.0), (dram, 3200.0)]);
    count(
        &mut test,
        ("gemm", 2),
        &[(counters::SM_ACTIVE, 99.0), (duration, 1e9)],
    );
    let last = [
        (counters::SM_ACTIVE, 40.0),
        (duration, 1000.0),
        (counters::WARPS_ACTIVE, f64::NAN),
    ];
    count(&mut test, ("decode_attention", 3), &last);
    test.metrics()
}

#[test]
fn counters_of_attention_kernels_are_averaged_by_time() {
    let metrics = counted();
    // (3000 * 80 + 1000 * 40) / 4000
    metrics.assert("sm_efficiency_pct", &[], 70.0);
    metrics.assert("occupancy", &[], 0.2);
    assert_eq!(metrics.get("sm_efficiency_pct", &[]).samples, 2);
    assert_eq!(metrics.get("occupancy", &[]).samples, 1);
    // 100 wavefronts of 128 bytes over 3200 bytes.
    metrics.assert("shared_mem_reuse_rate", &[], 4.0);
    metrics.assert("shared_mem_read_bytes", &[], 12_800.0);
}

#[test]
fn counters_can_be_switched_off_or_aimed_at_other_kernels() {
    let off = two_calls().config(r#"{"counters":false}"#).metrics();
    assert_eq!(
        off.unavailable("occupancy", &[]),
        "the configuration switches hardware counters off"
    );
    let mut test = two_calls().config(r#"{"kernels":["gemm"]}"#);
    count(&mut test, ("sm90_gemm", 2), &[(counters::SM_ACTIVE, 99.0)]);
    test.metrics().assert("sm_efficiency_pct", &[], 99.0);
    let mut test = two_calls().config(r#"{"kernels":["GEMM"]}"#);
    count(&mut test, ("sm90_Gemm", 2), &[(counters::SM_ACTIVE, 98.0)]);
    test.metrics().assert("sm_efficiency_pct", &[], 98.0);
}

#[test]
fn without_calls_everything_says_so() {
    let metrics = Test::new().metrics();
    for name in [
        "attention_flops_per_second",
        "attention_roofline_ratio",
        "attention_bytes_per_call",
    ] {
        assert_eq!(metrics.unavailable(name, &[]), "no attention call was recorded");
    }
    assert_eq!(metrics.all().len(), metrics::ALL.len());
}

#[test]
fn contradictions_are_refused_and_size_is_limited() {
    let mut test = Test::new();
    test.row(&call(5, (-1.0, 0.0), 0));
    assert_eq!(
        test.fault().message,
        "attention row of layer 5: negative flops or bytes"
    );
    let mut deep = Test::new();
    for layer in 0..400 {
        deep.row(&call(layer, (2e6, 1e6), 10_000));
    }
    let metrics = deep.metrics();
    assert!(
        metrics
            .unavailable("attention_flops_per_second", &[("layer", "each")])
            .ends_with("detail to overall")
    );
    metrics.assert("attention_flops_per_second", ALL, 2e11);
    assert_eq!(
        deep.config(r#"{"detail":"overall"}"#)
            .metrics()
            .named("attention_flops_per_second")
            .count(),
        1
    );
}

#[test]
fn layers_are_listed_as_long_as_all_metrics_have_room() {
    let layers = |count: u16| {
        let mut test = Test::new().run_info(gpu(&[peak("flops", true, 1e12), peak("bytes", true, 5e11)]));
        for layer in 0..count {
            // With counters, so that each layer has all its metrics.
            test.row(&attention::Row {
                smem_bytes: 2,
                dram_bytes: 1,
                ..call(layer, (2e6, 1e6), 10_000)
            });
        }
        test.metrics()
    };
    // (339 layers + the whole) * 12 + 2 peaks + SM efficiency + occupancy = 4,084; 12 more would exceed 4,096.
    let fits = layers(339);
    assert_eq!(fits.all().len(), 4_084);
    fits.assert(
        "attention_flops_per_call",
        &[("phase", "decode"), ("layer", "338")],
        2e6,
    );
    let reason = layers(340);
    let reason = reason.unavailable("attention_flops_per_call", &[("layer", "each")]);
    assert!(reason.contains("detail to overall"), "{reason}");
}
