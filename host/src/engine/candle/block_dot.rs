//! Scalar products of one weight row in blocks of 32 with several rows of activations in blocks of 32.
//!
//! Products are summed in integers within a block, exactly; blocks are summed in f32. The AVX2 form keeps eight
//! partial sums, the portable form one.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m128i, __m256, __m256i};

#[cfg(target_arch = "x86_64")]
use pulp::{cast, x86::V3};

/// Values per block.
pub(super) const BLOCK: usize = 32;

/// One block of each of `R` rows of activations: 8-bit codes and their scales, side by side.
#[derive(Clone, Copy, Debug)]
pub(super) struct ActivationBlock<const R: usize> {
    pub(super) codes: [[i8; BLOCK]; R],
    pub(super) scales: [f32; R],
}

/// A block format's codes for 32 values.
pub(super) trait Codes: Copy {
    /// Σ w·a over the block.
    fn dot(self, activations: &[i8; BLOCK]) -> i32;

    /// The block as magnitudes and the activations as signed factors, ready for `_mm256_maddubs_epi16`.
    #[cfg(target_arch = "x86_64")]
    fn prepare(self, simd: V3) -> Prepared;
}

/// A weight block in vector registers.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Prepared {
    magnitudes: __m256i,
    /// Signed weights, whose signs go to the activations; `None` for unsigned ones.
    signs: Option<__m256i>,
}

/// Two 4-bit codes a byte: values 0 to 15 in the low halves, 16 to 31 in the high halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nibbles(pub(super) [u8; BLOCK / 2]);

/// One signed byte a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bytes(pub(super) [i8; BLOCK]);

impl Codes for Nibbles {
    #[inline(always)]
    fn dot(self, activations: &[i8; BLOCK]) -> i32 {
        let (low, high) = activations.split_at(BLOCK / 2);
        let pairs = self.0.iter().zip(low.iter().zip(high));
        pairs
            .map(|(w, (l, h))| i32::from(w & 15) * i32::from(*l) + i32::from(w >> 4) * i32::from(*h))
            .sum()
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn prepare(self, simd: V3) -> Prepared {
        let packed: __m128i = cast(self.0);
        let high = simd.sse2._mm_srli_epi16::<4>(packed);
        let both = simd.avx._mm256_set_m128i(high, packed);
        let mask = simd.avx._mm256_set1_epi8(15);
        Prepared {
            magnitudes: simd.avx2._mm256_and_si256(both, mask),
            signs: None,
        }
    }
}

impl Codes for Bytes {
    #[inline(always)]
    fn dot(self, activations: &[i8; BLOCK]) -> i32 {
        let pairs = self.0.iter().zip(activations);
        pairs.map(|(w, a)| i32::from(*w) * i32::from(*a)).sum()
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn prepare(self, simd: V3) -> Prepared {
        let codes: __m256i = cast(self.0);
        Prepared {
            magnitudes: simd.avx2._mm256_sign_epi8(codes, codes),
            signs: Some(codes),
        }
    }
}

/// `Σ over blocks of scale · activation scale · Σ w·a`, for `R` rows of activations at once. All slices have as many
/// blocks as `codes`.
#[inline(always)]
pub(super) fn dot_portable<C: Codes, const R: usize>(
    (codes, scales): (&[C], &[f32]),
    activations: &[ActivationBlock<R>],
) -> [f32; R] {
    let mut sums = [0.0; R];
    for ((weight, scale), block) in codes.iter().zip(scales).zip(activations) {
        for r in 0..R {
            sums[r] += weight.dot(&block.codes[r]) as f32 * (scale * block.scales[r]);
        }
    }
    sums
}

/// As [`dot_portable`], with AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn dot_avx2<C: Codes, const R: usize>(
    simd: V3,
    (codes, scales): (&[C], &[f32]),
    activations: &[ActivationBlock<R>],
) -> [f32; R] {
    let ones = simd.avx._mm256_set1_epi16(1);
    let mut sums = [simd.avx._mm256_setzero_ps(); R];
    for ((weight, scale), block) in codes.iter().zip(scales).zip(activations) {
        let weight = weight.prepare(simd);
        // An indexed loop of constant length is unrolled, so that the sums stay in registers.
        for r in 0..R {
            let mut a: __m256i = cast(block.codes[r]);
            if let Some(signs) = weight.signs {
                a = simd.avx2._mm256_sign_epi8(a, signs);
            }
            // At most 2·128·127 = 32,512: no saturation.
            let pairs = simd.avx2._mm256_maddubs_epi16(weight.magnitudes, a);
            let quads = simd.avx2._mm256_madd_epi16(pairs, ones);
            let factor = simd.avx._mm256_set1_ps(scale * block.scales[r]);
            sums[r] = simd
                .fma
                ._mm256_fmadd_ps(simd.avx._mm256_cvtepi32_ps(quads), factor, sums[r]);
        }
    }
    let mut out = [0.0; R];
    for r in 0..R {
        out[r] = add_lanes(sums[r]);
    }
    out
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn add_lanes(sum: __m256) -> f32 {
    let lanes: [f32; 8] = cast(sum);
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}
