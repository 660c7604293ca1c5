//! Scalar products of one weight row in blocks of 32 with several rows of activations in blocks of 32.
//!
//! Products are summed in integers within a block, exactly; blocks are summed in f32. The AVX2 form keeps eight
//! partial sums, the portable form one.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m128i, __m256i};

#[cfg(target_arch = "x86_64")]
use pulp::{cast, x86::V3};

/// Values per block.
pub(super) const BLOCK: usize = 32;

/// One block of each of `R` rows of activations: 8-bit codes, their scales, and scale times the sum of the codes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ActivationBlock<const R: usize> {
    pub(super) codes: [[i8; BLOCK]; R],
    pub(super) scales: [f32; R],
    pub(super) sums: [f32; R],
}

/// 32 weights.
pub(super) trait WeightBlock: Copy + Send + Sync {
    /// Value of one step of the codes.
    fn scale(self) -> f32;

    /// Value of code 0; 0 for formats without one, which costs nothing there.
    fn minimum(self) -> f32;

    /// The weights as f32.
    fn values(self) -> [f32; BLOCK];

    /// Σ code·activation over the block.
    fn dot(self, activations: &[i8; BLOCK]) -> i32;

    /// The codes in vector registers.
    #[cfg(target_arch = "x86_64")]
    fn prepare(self, simd: V3) -> Prepared;
}

/// Codes as magnitudes, with the signs that belong to them where they have some.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Prepared {
    magnitudes: __m256i,
    signs: Option<__m256i>,
}

/// Q4_1: 4-bit codes (values 0 to 15 in the low halves, 16 to 31 in the high halves), scale and minimum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Q41 {
    pub(super) nibbles: [u8; BLOCK / 2],
    pub(super) scale: f32,
    pub(super) minimum: f32,
}

/// Q8_0: signed bytes and a scale.
#[derive(Clone, Copy, Debug)]
pub(super) struct Q80 {
    pub(super) codes: [i8; BLOCK],
    pub(super) scale: f32,
}

impl WeightBlock for Q41 {
    #[inline(always)]
    fn scale(self) -> f32 {
        self.scale
    }

    #[inline(always)]
    fn minimum(self) -> f32 {
        self.minimum
    }

    fn values(self) -> [f32; BLOCK] {
        std::array::from_fn(|i| {
            let byte = self.nibbles[i % (BLOCK / 2)];
            let code = if i < BLOCK / 2 { byte & 15 } else { byte >> 4 };
            f32::from(code) * self.scale + self.minimum
        })
    }

    #[inline(always)]
    fn dot(self, activations: &[i8; BLOCK]) -> i32 {
        let mut sum = 0;
        for (i, byte) in self.nibbles.into_iter().enumerate() {
            sum += i32::from(byte & 15) * i32::from(activations[i]);
            sum += i32::from(byte >> 4) * i32::from(activations[i + BLOCK / 2]);
        }
        sum
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn prepare(self, simd: V3) -> Prepared {
        let packed: __m128i = cast(self.nibbles);
        let high = simd.sse2._mm_srli_epi16::<4>(packed);
        let both = simd.avx._mm256_set_m128i(high, packed);
        let mask = simd.avx._mm256_set1_epi8(15);
        Prepared {
            magnitudes: simd.avx2._mm256_and_si256(both, mask),
            signs: None,
        }
    }
}

impl WeightBlock for Q80 {
    #[inline(always)]
    fn scale(self) -> f32 {
        self.scale
    }

    #[inline(always)]
    fn minimum(self) -> f32 {
        0.0
    }

    fn values(self) -> [f32; BLOCK] {
        self.codes.map(|code| f32::from(code) * self.scale)
    }

    #[inline(always)]
    fn dot(self, activations: &[i8; BLOCK]) -> i32 {
        let mut sum = 0;
        for (code, a) in self.codes.into_iter().zip(activations) {
            sum += i32::from(code) * i32::from(*a);
        }
        sum
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn prepare(self, simd: V3) -> Prepared {
        let codes: __m256i = cast(self.codes);
        Prepared {
            magnitudes: simd.avx2._mm256_sign_epi8(codes, codes),
            signs: Some(codes),
        }
    }
}

/// Products of one weight row with `R` rows of activations, which have as many blocks.
#[expect(
    clippy::needless_range_loop,
    reason = "indexed loops of constant length are unrolled, so that the sums stay in registers"
)]
#[inline(always)]
pub(super) fn dot_portable<W: WeightBlock, const R: usize>(
    weights: &[W],
    activations: &[ActivationBlock<R>],
) -> [f32; R] {
    let mut sums = [0.0; R];
    for (weight, block) in weights.iter().zip(activations) {
        for r in 0..R {
            let codes = weight.dot(&block.codes[r]) as f32;
            sums[r] += codes * (weight.scale() * block.scales[r]) + weight.minimum() * block.sums[r];
        }
    }
    sums
}

/// As [`dot_portable`], with AVX2.
#[cfg(target_arch = "x86_64")]
#[expect(
    clippy::needless_range_loop,
    reason = "indexed loops of constant length are unrolled, so that the sums stay in registers"
)]
#[inline(always)]
pub(super) fn dot_avx2<W: WeightBlock, const R: usize>(
    simd: V3,
    weights: &[W],
    activations: &[ActivationBlock<R>],
) -> [f32; R] {
    let ones = simd.avx._mm256_set1_epi16(1);
    let mut sums = [simd.avx._mm256_setzero_ps(); R];
    let mut minima = [0.0; R];
    for (weight, block) in weights.iter().zip(activations) {
        let codes = weight.prepare(simd);
        for r in 0..R {
            let mut a: __m256i = cast(block.codes[r]);
            if let Some(signs) = codes.signs {
                a = simd.avx2._mm256_sign_epi8(a, signs);
            }
            // At most 2·128·127 = 32,512: no saturation.
            let pairs = simd.avx2._mm256_maddubs_epi16(codes.magnitudes, a);
            let quads = simd.avx2._mm256_madd_epi16(pairs, ones);
            let factor = simd.avx._mm256_set1_ps(weight.scale() * block.scales[r]);
            sums[r] = simd
                .fma
                ._mm256_fmadd_ps(simd.avx._mm256_cvtepi32_ps(quads), factor, sums[r]);
        }
        if codes.signs.is_none() {
            for r in 0..R {
                minima[r] += weight.minimum() * block.sums[r];
            }
        }
    }
    let mut out = [0.0; R];
    for r in 0..R {
        out[r] = super::simd::add_lanes(sums[r]) + minima[r];
    }
    out
}
