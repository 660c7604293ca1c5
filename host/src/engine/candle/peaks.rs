//! What this machine reaches at best: the yardsticks of utilisation.
//!
//! A peak that is measured too low makes utilisation look better than it is, so each is the best of many runs: other
//! guests of the machine and clocks that ramp up can only slow a run down.

use candle_core::{Device, Tensor};
use lm_bench_plugin::Peak;
use rayon::prelude::*;

use super::linear::failed;
use super::processor_caches;
use super::simd::{Portable, VectorOps};
use crate::clock::Clock;
use crate::engine::EngineError;
use crate::model::available_memory;

/// Square matrices from one that fits the second-level cache to one that keeps many threads busy.
const GEMM_SIZES: [usize; 3] = [256, 512, 1024];
/// Memory is read over this many times what the last-level caches hold, so that little of it is still there from the
/// run before, within these bounds.
const CACHE_MULTIPLE: usize = 4;
const LEAST_READ: usize = 256 << 20;
const MOST_READ: usize = 1 << 30;
/// The read takes no more than this share of the memory that is left.
const MEMORY_SHARE: u64 = 8;
/// Values that one task reads.
const READ_PIECE: usize = 1 << 18;
/// A measurement is repeated at least so often, and on until this time is spent.
const LEAST_RUNS: usize = 5;
const BUDGET_NS: u64 = 100_000_000;

/// Best rates on the current thread pool. Takes about half a second.
pub(super) fn measure() -> Result<Vec<Peak>, EngineError> {
    let clock = Clock::start();
    let mut peaks = vec![gemm(&clock)?];
    peaks.extend(read(&clock));
    Ok(peaks)
}

/// The best of several sizes, which names the size.
fn gemm(clock: &Clock) -> Result<Peak, EngineError> {
    let mut best = (0.0, 0);
    for n in GEMM_SIZES {
        let values: Vec<f32> = (0..n * n).map(|i| (i % 17) as f32 * 0.1 - 0.8).collect();
        let matrix = Tensor::from_vec(values, (n, n), &Device::Cpu).map_err(failed("preparing a peak"))?;
        let ns = shortest(clock, || {
            matrix
                .matmul(&matrix)
                .map(drop)
                .map_err(failed("measuring a peak"))
        })?;
        let rate = per_second(2.0 * (n * n * n) as f64, ns);
        if rate > best.0 {
            best = (rate, n);
        }
    }
    let (per_second, n) = best;
    Ok(Peak {
        of: "flops".into(),
        source: format!("measured f32 GEMM {n}x{n}x{n}, best of sizes {GEMM_SIZES:?}"),
        measured: true,
        per_second,
    })
}

/// `None` where memory is too scarce to read more than the caches hold.
fn read(clock: &Clock) -> Option<Peak> {
    let cache = processor_caches::last_level_bytes();
    let bytes = read_size(cache, available_memory().map(|available| available.bytes))?;
    let values = vec![1.0f32; bytes / 4];
    let mut total = 0.0;
    let ns = shortest(clock, || {
        total += values.par_chunks(READ_PIECE).map(sum_of_squares).sum::<f32>();
        Ok::<(), EngineError>(())
    })
    .ok()?;
    let beyond = match cache {
        Some(cache) => format!("last-level caches hold {} MiB", cache >> 20),
        None => "size of the caches not known".to_owned(),
    };
    // The sum is needed so that the reads are.
    (total > 0.0).then(|| Peak {
        of: "bytes".into(),
        source: format!("measured read of {} MiB of memory; {beyond}", bytes >> 20),
        measured: true,
        per_second: per_second(bytes as f64, ns),
    })
}

/// Bytes to read, given those of the caches and those of free memory.
fn read_size(cache: Option<usize>, free: Option<u64>) -> Option<usize> {
    let wanted = cache
        .unwrap_or(0)
        .saturating_mul(CACHE_MULTIPLE)
        .clamp(LEAST_READ, MOST_READ);
    let limit = free.map_or(usize::MAX, |bytes| {
        usize::try_from(bytes / MEMORY_SHARE).unwrap_or(usize::MAX)
    });
    let size = wanted.min(limit);
    (size > cache.unwrap_or(0).max(LEAST_READ / 8)).then_some(size)
}

/// Time of the shortest run in ns.
fn shortest<E>(clock: &Clock, mut run: impl FnMut() -> Result<(), E>) -> Result<u64, E> {
    let (mut best, mut runs) = (u64::MAX, 0);
    let begun = clock.now_ns();
    while runs < LEAST_RUNS || clock.now_ns() - begun < BUDGET_NS {
        let start = clock.now_ns();
        run()?;
        best = best.min(clock.now_ns() - start);
        runs += 1;
    }
    Ok(best)
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

fn per_second(amount: f64, ns: u64) -> f64 {
    amount * 1e9 / ns.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn memory_is_read_beyond_the_caches_or_not_at_all() {
        let plenty = Some(64 << 30);
        assert_eq!(read_size(Some(32 * MIB), plenty), Some(256 * MIB));
        assert_eq!(read_size(Some(105 * MIB), plenty), Some(420 * MIB));
        assert_eq!(read_size(Some(768 * MIB), plenty), Some(1024 * MIB));
        assert_eq!(read_size(None, None), Some(256 * MIB));
        // An eighth of 1 GiB is 128 MiB: more than 32 and less than 256 MiB of cache.
        let scarce = Some(1 << 30);
        assert_eq!(read_size(Some(32 * MIB), scarce), Some(128 * MIB));
        assert_eq!(read_size(Some(256 * MIB), scarce), None);
        assert_eq!(read_size(Some(2048 * MIB), plenty), None);
    }

    #[test]
    fn the_shortest_run_counts() {
        let clock = Clock::fake();
        let mut times = [9, 4, 60, 7, 30].into_iter().chain(std::iter::repeat(8));
        let found = shortest(&clock, || {
            let ms = times.next().expect("endless");
            clock.advance(std::time::Duration::from_millis(ms));
            Ok::<(), ()>(())
        });
        assert_eq!(found, Ok(4_000_000));
    }

    #[test]
    fn peaks_name_what_was_measured() {
        let peaks = measure().expect("candle multiplies");
        let of = |name: &str| peaks.iter().find(|peak| peak.of == name);
        let flops = of("flops").expect("there");
        assert!(flops.source.starts_with("measured f32 GEMM ") && flops.per_second > 0.0);
        if let Some(bytes) = of("bytes") {
            assert!(bytes.source.contains(" MiB of memory; ") && bytes.per_second > 0.0);
        }
        // A label has at most 128 bytes.
        assert!(peaks.iter().all(|peak| peak.measured && peak.source.len() <= 128));
    }
}
