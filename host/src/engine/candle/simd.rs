//! Run-time choice of vector instructions for this engine's own loops.
//!
//! Only code that is inlined into a vectorised function profits, so everything here is `inline(always)`.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__m256;

#[cfg(target_arch = "x86_64")]
use pulp::{cast, x86::V3 as Avx2};

/// The operations attention spends its time in.
pub(super) trait VectorOps: Copy {
    /// Σ a·b; both of one length.
    fn dot(self, a: &[f32], b: &[f32]) -> f32;

    /// `x += factor · y`.
    fn add_scaled(self, x: &mut [f32], y: &[f32], factor: f32);
}

/// Plain loops for processors without AVX2.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl VectorOps for Portable {
    #[inline(always)]
    fn dot(self, a: &[f32], b: &[f32]) -> f32 {
        super::rows::dot(a, b)
    }

    #[inline(always)]
    fn add_scaled(self, x: &mut [f32], y: &[f32], factor: f32) {
        super::rows::add_scaled(x, y, factor);
    }
}

/// Proof that the processor has AVX2 and FMA, if it has.
#[cfg(target_arch = "x86_64")]
pub(super) static V3: std::sync::LazyLock<Option<Avx2>> = std::sync::LazyLock::new(Avx2::try_new);

#[cfg(target_arch = "x86_64")]
impl VectorOps for Avx2 {
    #[inline(always)]
    fn dot(self, a: &[f32], b: &[f32]) -> f32 {
        let (a_chunks, a_rest) = a.as_chunks::<32>();
        let (b_chunks, b_rest) = b.as_chunks::<32>();
        let mut sums = [self.avx._mm256_setzero_ps(); 4];
        for (x, y) in a_chunks.iter().zip(b_chunks) {
            let x: [__m256; 4] = cast(*x);
            let y: [__m256; 4] = cast(*y);
            for i in 0..4 {
                sums[i] = self.fma._mm256_fmadd_ps(x[i], y[i], sums[i]);
            }
        }
        let low = self.avx._mm256_add_ps(sums[0], sums[1]);
        let high = self.avx._mm256_add_ps(sums[2], sums[3]);
        let mut total = add_lanes(self.avx._mm256_add_ps(low, high));
        for (x, y) in a_rest.iter().zip(b_rest) {
            total += x * y;
        }
        total
    }

    #[inline(always)]
    fn add_scaled(self, x: &mut [f32], y: &[f32], factor: f32) {
        let (x_chunks, x_rest) = x.as_chunks_mut::<8>();
        let (y_chunks, y_rest) = y.as_chunks::<8>();
        let factors = self.avx._mm256_set1_ps(factor);
        for (x, y) in x_chunks.iter_mut().zip(y_chunks) {
            *x = cast(self.fma._mm256_fmadd_ps(factors, cast(*y), cast(*x)));
        }
        for (x, y) in x_rest.iter_mut().zip(y_rest) {
            *x += factor * y;
        }
    }
}

/// Sum of the eight lanes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn add_lanes(sum: __m256) -> f32 {
    let [a, b, c, d, e, f, g, h]: [f32; 8] = cast(sum);
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// Name of the instruction set in use.
pub(super) fn name() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if V3.is_some() {
        return "AVX2";
    }
    "baseline"
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn vector_and_plain_forms_agree() {
        let Some(simd) = *V3 else {
            return;
        };
        for length in [0, 5, 32, 64, 77] {
            let a: Vec<f32> = (0..length).map(|i| i as f32 * 0.25 - 3.0).collect();
            let b: Vec<f32> = (0..length).map(|i| 2.0 - i as f32 * 0.125).collect();
            assert!((simd.dot(&a, &b) - Portable.dot(&a, &b)).abs() < 1e-2, "{length}");
            let (mut x, mut y) = (a.clone(), a.clone());
            simd.add_scaled(&mut x, &b, 0.5);
            Portable.add_scaled(&mut y, &b, 0.5);
            assert_eq!(x, y, "exact in binary fractions");
        }
    }
}
