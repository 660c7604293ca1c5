//! Products of an f32 weight with a few rows. A general matrix product rearranges its operands first, which a decode
//! step, that reads each weight once, cannot repay.

use rayon::prelude::*;

use super::simd::{Portable, VectorOps};

/// Rows up to which this beats a general matrix product.
pub(super) const MOST_ROWS: usize = 4;

/// Multiply-adds below which one thread is faster than several, and the least worth handing to one.
const PARALLEL_WORK: usize = 1 << 17;
const TASK_WORK: usize = 1 << 16;

/// `x · Wᵀ` for `weight` `[outputs, inputs]` and `x` `[rows, inputs]`.
pub(super) fn product(weight: &[f32], x: &[f32], inputs: usize) -> Vec<f32> {
    let (rows, outputs) = (x.len() / inputs, weight.len() / inputs);
    // Output after output, so that each task owns a contiguous piece.
    let mut transposed = vec![0.0; rows * outputs];
    if weight.len() * rows < PARALLEL_WORK {
        fill(weight, (x, inputs), &mut transposed);
    } else {
        let outputs_per_task = TASK_WORK.div_ceil(inputs * rows);
        let weights = weight.par_chunks(outputs_per_task * inputs);
        let results = transposed.par_chunks_mut(outputs_per_task * rows);
        weights
            .zip(results)
            .for_each(|(weight, out)| fill(weight, (x, inputs), out));
    }
    if rows == 1 {
        return transposed;
    }
    let at = |i: usize| transposed[i % outputs * rows + i / outputs];
    (0..rows * outputs).map(at).collect()
}

fn fill(weight: &[f32], (x, inputs): (&[f32], usize), out: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = *super::simd::V3 {
        simd.vectorize(
            #[inline(always)]
            || fill_with(simd, weight, (x, inputs), out),
        );
        return;
    }
    fill_with(Portable, weight, (x, inputs), out);
}

#[inline(always)]
fn fill_with(ops: impl VectorOps, weight: &[f32], (x, inputs): (&[f32], usize), out: &mut [f32]) {
    let rows = x.len() / inputs;
    for (weight, out) in weight.chunks_exact(inputs).zip(out.chunks_exact_mut(rows)) {
        for (out, x) in out.iter_mut().zip(x.chunks_exact(inputs)) {
            *out = ops.dot(weight, x);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_equal_plain_sums_on_one_thread_and_several() {
        for (outputs, inputs) in [(5, 40), (700, 96)] {
            let weight: Vec<f32> = (0..outputs * inputs).map(|i| (i % 13) as f32 - 6.0).collect();
            for rows in 1..=MOST_ROWS {
                let x: Vec<f32> = (0..rows * inputs).map(|i| (i % 7) as f32 - 3.0).collect();
                let found = product(&weight, &x, inputs);
                for r in 0..rows {
                    for o in 0..outputs {
                        let sum: f32 = (0..inputs)
                            .map(|i| weight[o * inputs + i] * x[r * inputs + i])
                            .sum();
                        // Whole numbers below 2²⁴ are exact in any order.
                        assert_eq!(
                            found[r * outputs + o],
                            sum,
                            "{outputs}x{inputs}, row {r}, output {o}"
                        );
                    }
                }
            }
        }
    }
}
