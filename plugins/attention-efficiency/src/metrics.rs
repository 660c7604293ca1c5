//! Declarations. Sums run over the delivered rows of `attention` of one phase.

use lm_bench_plugin::{Direction, MetricDef};

const KEYS: &[&str] = &["phase", "layer"];
const PEAK_KEYS: &[&str] = &["phase", "layer", "peak"];

const fn gauge(name: &'static str, unit: &'static str) -> MetricDef {
    MetricDef::gauge(name, unit).labels(KEYS)
}

pub(crate) const FLOPS: MetricDef = gauge("attention_flops_per_second", "{flop}/s")
    .better(Direction::Higher)
    .formula("sum of weight * flops / (sum of weight * device_ns / 1e9), flops of the two matrix products over visible query-key pairs")
    .about("Rate that attention achieves; a causal prefill of S tokens counts 2*S*(S+1)*heads*head_dim per sequence, about half of the full square, as FlashAttention does.");

pub(crate) const UTILIZATION: MetricDef = MetricDef::gauge("attention_utilization_ratio", "1")
    .labels(PEAK_KEYS)
    .better(Direction::Higher)
    .formula("attention_flops_per_second / attention_peak_flops_per_second; label peak says whether that is measured or stated")
    .about("Share of the device's arithmetic peak that attention achieves. Decode is limited by memory: see attention_roofline_ratio.");

pub(crate) const BYTES: MetricDef = gauge("attention_bytes_per_second", "By/s")
    .better(Direction::Higher)
    .formula("sum of weight * bytes / (sum of weight * device_ns / 1e9), bytes = queries, keys, values and output once each")
    .about("Bandwidth that attention achieves, counting only the bytes that must move.");

pub(crate) const BANDWIDTH: MetricDef = MetricDef::gauge("attention_bandwidth_utilization_ratio", "1")
    .labels(PEAK_KEYS)
    .better(Direction::Higher)
    .formula("attention_bytes_per_second / attention_peak_bytes_per_second; label peak says whether that is measured or stated")
    .about("Share of the device's memory bandwidth that attention achieves. Above 1 where keys and values come from a cache: the peak is that of memory.");

pub(crate) const INTENSITY: MetricDef = gauge("attention_arithmetic_intensity", "{flop}/By")
    .formula("sum of weight * flops / sum of weight * bytes")
    .about("Operations per byte that must move: low means limited by memory.");

pub(crate) const ROOFLINE: MetricDef = MetricDef::gauge("attention_roofline_ratio", "1")
    .labels(PEAK_KEYS)
    .better(Direction::Higher)
    .formula("sum of weight * max(flops / peak flops, bytes / peak bytes) / (sum of weight * device_ns / 1e9); label peak is measured when both peaks are")
    .about("Least time that the device's peaks allow over the time taken, call by call. Above 1 where keys and values come from a cache: the peak is that of memory.");

pub(crate) const TIME: MetricDef = gauge("attention_time_per_call_us", "us")
    .better(Direction::Lower)
    .formula("sum of weight * device_ns / 1e3 / sum of weight")
    .about("Mean time of one attention call: one layer of one step, all sequences and heads.");

pub(crate) const FLOPS_CALL: MetricDef = gauge("attention_flops_per_call", "{flop}")
    .formula("sum of weight * flops / sum of weight")
    .about("Mean work of one attention call.");

pub(crate) const BYTES_CALL: MetricDef = gauge("attention_bytes_per_call", "By")
    .formula("sum of weight * bytes / sum of weight")
    .about("Mean of the bytes that one attention call must move.");

pub(crate) const PEAK_FLOPS: MetricDef = MetricDef::gauge("attention_peak_flops_per_second", "{flop}/s")
    .labels(&["source", "peak"])
    .formula("the peak of flops in the run's facts: a measured one if there is one, else the first stated")
    .about("What attention_utilization_ratio is relative to, and where the figure comes from.");

pub(crate) const PEAK_BYTES: MetricDef = MetricDef::gauge("attention_peak_bytes_per_second", "By/s")
    .labels(&["source", "peak"])
    .formula("the peak of bytes in the run's facts: a measured one if there is one, else the first stated")
    .about("What attention_bandwidth_utilization_ratio is relative to, and where the figure comes from.");

pub(crate) const SM_EFFICIENCY: MetricDef = MetricDef::gauge("sm_efficiency_pct", "%")
    .better(Direction::Higher)
    .formula("mean over launches of attention kernels, by gpu__time_duration.sum, of sm__cycles_active.avg.pct_of_peak_sustained_elapsed")
    .about("Share of time in which a multiprocessor had work; says nothing about how much.");

pub(crate) const OCCUPANCY: MetricDef = MetricDef::gauge("occupancy", "1")
    .formula("mean over launches of attention kernels, by gpu__time_duration.sum, of sm__warps_active.avg.pct_of_peak_sustained_active / 100")
    .about("Resident warps over the most that fit. Attention kernels are built to run at low occupancy: higher is not better.");

pub(crate) const REUSE: MetricDef = gauge("shared_mem_reuse_rate", "1")
    .better(Direction::Higher)
    .formula("shared_mem_read_bytes / dram_read_bytes")
    .about("How often a byte read from DRAM is read from shared memory. There is no standard definition; tensor instructions that take operands straight from shared memory may be missing from the counter.");

pub(crate) const SHARED_BYTES: MetricDef = gauge("shared_mem_read_bytes", "By")
    .formula("sum of weight * attention.smem_bytes over rows with both counters; else 128 * sum over launches of l1tex__data_pipe_lsu_wavefronts_mem_shared_cmd_read.sum (all wavefronts where reads are not told apart)")
    .about("Bytes that attention read from shared memory, by counter.");

pub(crate) const DRAM_BYTES: MetricDef = gauge("dram_read_bytes", "By")
    .formula("sum of weight * attention.dram_bytes over rows with both counters; else sum over launches of dram__bytes_read.sum")
    .about("Bytes that attention read from DRAM, by counter.");

pub(crate) const ALL: &[MetricDef] = &[
    FLOPS,
    UTILIZATION,
    BYTES,
    BANDWIDTH,
    INTENSITY,
    ROOFLINE,
    TIME,
    FLOPS_CALL,
    BYTES_CALL,
    PEAK_FLOPS,
    PEAK_BYTES,
    SM_EFFICIENCY,
    OCCUPANCY,
    REUSE,
    SHARED_BYTES,
    DRAM_BYTES,
];
