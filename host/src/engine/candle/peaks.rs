//! What this machine reaches at best: the yardsticks of utilisation.

use candle_core::{Device, Tensor};
use lm_bench_plugin::Peak;
use rayon::prelude::*;

use super::linear::failed;
use super::simd::{Portable, VectorOps};
use crate::clock::Clock;
use crate::engine::EngineError;

const GEMM_SIZE: usize = 512;
const GEMM_RUNS: usize = 8;
/// Twice the last-level cache of common server cores; read in pieces of one task each.
const READ_BYTES: usize = 64 << 20;
const READ_PIECE: usize = 1 << 18;
const READ_RUNS: usize = 4;

/// Best rates of several runs on the current thread pool. Takes about a tenth of a second.
pub(super) fn measure() -> Result<Vec<Peak>, EngineError> {
    let clock = Clock::start();
    Ok(vec![gemm(&clock)?, read(&clock)])
}

fn gemm(clock: &Clock) -> Result<Peak, EngineError> {
    let n = GEMM_SIZE;
    let values: Vec<f32> = (0..n * n).map(|i| (i % 17) as f32 * 0.1 - 0.8).collect();
    let matrix = Tensor::from_vec(values, (n, n), &Device::Cpu).map_err(failed("preparing a peak"))?;
    let mut best = u64::MAX;
    for _ in 0..GEMM_RUNS {
        let start = clock.now_ns();
        matrix.matmul(&matrix).map_err(failed("measuring a peak"))?;
        best = best.min(clock.now_ns() - start);
    }
    Ok(Peak {
        of: "flops".into(),
        source: format!("measured f32 GEMM {n}x{n}x{n}"),
        measured: true,
        per_second: rate(2.0 * (n * n * n) as f64, best),
    })
}

fn read(clock: &Clock) -> Peak {
    let values = vec![1.0f32; READ_BYTES / 4];
    let mut best = u64::MAX;
    let mut total = 0.0;
    for _ in 0..READ_RUNS {
        let start = clock.now_ns();
        total += values.par_chunks(READ_PIECE).map(sum_of_squares).sum::<f32>();
        best = best.min(clock.now_ns() - start);
    }
    // The sum is needed so that the reads are.
    let per_second = if total > 0.0 {
        rate(READ_BYTES as f64, best)
    } else {
        0.0
    };
    Peak {
        of: "bytes".into(),
        source: format!("measured read of {} MiB", READ_BYTES >> 20),
        measured: true,
        per_second,
    }
}

fn sum_of_squares(values: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = *super::simd::V3 {
        return simd.vectorize(
            #[inline(always)]
            || simd.dot(values, values),
        );
    }
    Portable.dot(values, values)
}

fn rate(amount: f64, ns: u64) -> f64 {
    amount * 1e9 / ns.max(1) as f64
}
