//! Row-wise operations on activations: plain loops over f32 that the compiler vectorises.

use rayon::prelude::*;

/// Fewer values than this are not worth a second thread.
const PARALLEL_VALUES: usize = 1 << 15;

/// Calls `f` on each row, with several threads where there is enough to do.
pub(super) fn for_each_row(values: &mut [f32], width: usize, f: impl Fn(usize, &mut [f32]) + Sync) {
    if values.len() < PARALLEL_VALUES {
        for (i, row) in values.chunks_exact_mut(width).enumerate() {
            f(i, row);
        }
        return;
    }
    let rows_per_task = (PARALLEL_VALUES / 4).div_ceil(width);
    values
        .par_chunks_mut(width * rows_per_task)
        .enumerate()
        .for_each(|(task, rows)| {
            for (i, row) in rows.chunks_exact_mut(width).enumerate() {
                f(task * rows_per_task + i, row);
            }
        });
}

/// Root mean square norm of each row of `x` (Zhang and Sennrich 2019): `x / sqrt(mean(x²) + eps) · weight`.
pub(super) fn rms_norm(x: &[f32], weight: &[f32], eps: f32) -> Vec<f32> {
    let mut out = x.to_vec();
    rms_norm_in_place(&mut out, weight, eps);
    out
}

/// As [`rms_norm`], over rows of `weight`'s length, in place.
pub(super) fn rms_norm_in_place(x: &mut [f32], weight: &[f32], eps: f32) {
    let width = weight.len();
    for_each_row(x, width, |_, row| {
        let scale = 1.0 / (dot(row, row) / width as f32 + eps).sqrt();
        for (v, w) in row.iter_mut().zip(weight) {
            *v *= scale * w;
        }
    });
}

/// `gate · sigmoid(gate) · up`, in place in `gate`.
pub(super) fn silu_mul(gate: &mut [f32], up: &[f32]) {
    const CHUNK: usize = 4096;
    let one = |(g, u): (&mut [f32], &[f32])| {
        for (g, u) in g.iter_mut().zip(u) {
            *g = *g / (1.0 + (-*g).exp()) * u;
        }
    };
    if gate.len() < PARALLEL_VALUES {
        one((gate, up));
    } else {
        gate.par_chunks_mut(CHUNK).zip(up.par_chunks(CHUNK)).for_each(one);
    }
}

/// `x += y`.
pub(super) fn add(x: &mut [f32], y: &[f32]) {
    for (x, y) in x.iter_mut().zip(y) {
        *x += y;
    }
}

/// `x += factor · y`.
#[inline(always)]
pub(super) fn add_scaled(x: &mut [f32], y: &[f32], factor: f32) {
    for (x, y) in x.iter_mut().zip(y) {
        *x += factor * y;
    }
}

/// Scalar product. 32 partial sums, so that the loop vectorises; the order is fixed, so the result is too.
#[inline(always)]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 32;
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0f32; LANES];
    for (x, y) in a_chunks.iter().zip(b_chunks) {
        for i in 0..LANES {
            sums[i] += x[i] * y[i];
        }
    }
    let mut total = 0.0;
    for i in 0..8 {
        total += (sums[i] + sums[i + 8]) + (sums[i + 16] + sums[i + 24]);
    }
    for (x, y) in a_rest.iter().zip(b_rest) {
        total += x * y;
    }
    total
}

/// Turns scores into probabilities in place.
#[inline(always)]
pub(super) fn softmax(scores: &mut [f32]) {
    let mut max = f32::NEG_INFINITY;
    for &s in scores.iter() {
        max = if s > max { s } else { max };
    }
    let mut sum = 0.0;
    for s in scores.iter_mut() {
        *s = (*s - max).exp();
        sum += *s;
    }
    let inverse = 1.0 / sum;
    for s in scores.iter_mut() {
        *s *= inverse;
    }
}

/// Position of the largest value; the first of equals. NaN never wins.
pub(super) fn argmax(values: &[f32]) -> usize {
    let mut best = (0, f32::NEG_INFINITY);
    for (i, &v) in values.iter().enumerate() {
        if v > best.1 {
            best = (i, v);
        }
    }
    best.0
}
