//! Own matrix products for the block formats whose candle kernels are scalar or slow: Q4_1 and Q8_0.
//!
//! As in ggml, activations are quantised to eight bits per block of 32 first, so that results follow llama.cpp's up to
//! the order of summation. Scales are kept in f32 beside the codes (24 bytes per block of Q4_1 instead of 20).

use half::f16;
use rayon::prelude::*;

use super::block_dot::{ActivationBlock, BLOCK, Bytes, Codes, Nibbles, dot_portable};
use super::rows::dot;
use super::simd::vectorised;

/// Multiply-adds below which one thread is faster than several, and the least worth handing to one.
const PARALLEL_WORK: usize = 1 << 18;
const TASK_WORK: usize = 1 << 16;
/// Rows of activations that share one look at a weight block.
const TILE: usize = 4;

/// A weight matrix `[outputs, inputs]` in blocks along its rows.
pub(super) struct BlockMatrix {
    codes: BlockCodes,
    /// Scale of each block.
    scales: Vec<f32>,
    /// Smallest value of each block, for the formats that have one.
    minima: Vec<f32>,
    blocks_per_row: usize,
}

enum BlockCodes {
    Q4_1(Vec<Nibbles>),
    Q8_0(Vec<Bytes>),
}

/// Activations quantised as ggml's Q8_1: codes, scale, and scale times the sum of the codes. Rows are packed in tiles
/// of [`TILE`], block after block, and the rows left over one by one.
struct Activations {
    tiles: Vec<ActivationBlock<TILE>>,
    rest: Vec<ActivationBlock<1>>,
    /// `[rows, blocks_per_row]`.
    sums: Vec<f32>,
}

impl BlockMatrix {
    /// Reads Q4_1 blocks: f16 scale, f16 minimum, 16 bytes of codes.
    pub(super) fn q4_1(bytes: &[u8], inputs: usize) -> Self {
        let blocks = bytes.chunks_exact(20);
        Self {
            codes: BlockCodes::Q4_1(blocks.clone().map(|b| Nibbles(array(&b[4..]))).collect()),
            scales: blocks.clone().map(|b| half_at(b, 0)).collect(),
            minima: blocks.map(|b| half_at(b, 2)).collect(),
            blocks_per_row: inputs / BLOCK,
        }
    }

    /// Reads Q8_0 blocks: f16 scale, 32 bytes of codes.
    pub(super) fn q8_0(bytes: &[u8], inputs: usize) -> Self {
        let blocks = bytes.chunks_exact(34);
        let codes = |b: &[u8]| Bytes(array::<BLOCK>(&b[2..]).map(u8::cast_signed));
        Self {
            codes: BlockCodes::Q8_0(blocks.clone().map(codes).collect()),
            scales: blocks.map(|b| half_at(b, 0)).collect(),
            minima: Vec::new(),
            blocks_per_row: inputs / BLOCK,
        }
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        let codes = match &self.codes {
            BlockCodes::Q4_1(c) => size_of_val(&c[..]),
            BlockCodes::Q8_0(c) => size_of_val(&c[..]),
        };
        codes + 4 * (self.scales.len() + self.minima.len())
    }

    /// Row `index` as f32.
    pub(super) fn row(&self, index: usize) -> Vec<f32> {
        let blocks = index * self.blocks_per_row..(index + 1) * self.blocks_per_row;
        blocks.flat_map(|block| self.values(block)).collect()
    }

    fn values(&self, block: usize) -> [f32; BLOCK] {
        let scale = self.scales[block];
        match &self.codes {
            BlockCodes::Q4_1(codes) => {
                let nibbles = &codes[block].0;
                std::array::from_fn(|i| {
                    let byte = nibbles[i % (BLOCK / 2)];
                    let code = if i < BLOCK / 2 { byte & 15 } else { byte >> 4 };
                    f32::from(code) * scale + self.minima[block]
                })
            }
            BlockCodes::Q8_0(codes) => codes[block].0.map(|code| f32::from(code) * scale),
        }
    }

    /// `x · Wᵀ`: `x` is `[rows, inputs]`, the result `[rows, outputs]`.
    pub(super) fn product(&self, x: &[f32]) -> Vec<f32> {
        let inputs = self.blocks_per_row * BLOCK;
        let (rows, outputs) = (x.len() / inputs, self.scales.len() / self.blocks_per_row);
        let activations = Activations::quantise(x, self.blocks_per_row);
        // Output after output, so that each task owns a contiguous piece.
        let mut transposed = vec![0.0; rows * outputs];
        let one_task = |(first, out): (usize, &mut [f32])| match &self.codes {
            BlockCodes::Q4_1(codes) => self.fill(codes, &activations, (first, out)),
            BlockCodes::Q8_0(codes) => self.fill(codes, &activations, (first, out)),
        };
        if rows * outputs * inputs < PARALLEL_WORK {
            one_task((0, &mut transposed));
        } else {
            let outputs_per_task = TASK_WORK.div_ceil(rows * inputs);
            transposed
                .par_chunks_mut(rows * outputs_per_task)
                .enumerate()
                .for_each(|(task, out)| one_task((task * outputs_per_task, out)));
        }
        if rows == 1 {
            transposed
        } else {
            transpose(&transposed, (outputs, rows))
        }
    }

    /// Computes outputs from `first` on into `out`, `[some outputs, rows]`.
    fn fill<C: Codes>(&self, codes: &[C], activations: &Activations, (first, out): (usize, &mut [f32])) {
        let width = self.blocks_per_row;
        let rows = activations.sums.len() / width;
        for (output, results) in (first..).zip(out.chunks_exact_mut(rows)) {
            let blocks = output * width..(output + 1) * width;
            let weight = (&codes[blocks.clone()], &self.scales[blocks.clone()]);
            row_products(weight, activations, results);
            if let Some(minima) = self.minima.get(blocks) {
                vectorised(
                    #[inline(always)]
                    || {
                        for (result, sums) in results.iter_mut().zip(activations.sums.chunks_exact(width)) {
                            *result += dot(minima, sums);
                        }
                    },
                );
            }
        }
    }
}

/// Products of one weight row with all rows of activations.
fn row_products<C: Codes>(weight: (&[C], &[f32]), activations: &Activations, results: &mut [f32]) {
    let width = weight.0.len();
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = *super::simd::V3 {
        simd.vectorize(
            #[inline(always)]
            || {
                let (tiles, rest) = results.as_chunks_mut::<TILE>();
                for (out, tile) in tiles.iter_mut().zip(activations.tiles.chunks_exact(width)) {
                    *out = super::block_dot::dot_avx2(simd, weight, tile);
                }
                for (out, row) in rest.iter_mut().zip(activations.rest.chunks_exact(width)) {
                    [*out] = super::block_dot::dot_avx2(simd, weight, row);
                }
            },
        );
        return;
    }
    let (tiles, rest) = results.as_chunks_mut::<TILE>();
    for (out, tile) in tiles.iter_mut().zip(activations.tiles.chunks_exact(width)) {
        *out = dot_portable(weight, tile);
    }
    for (out, row) in rest.iter_mut().zip(activations.rest.chunks_exact(width)) {
        [*out] = dot_portable(weight, row);
    }
}

impl Activations {
    /// Scale max|x|/127 and codes x/scale rounded, per block; the scales are rounded to f16 as ggml stores them.
    fn quantise(x: &[f32], blocks_per_row: usize) -> Self {
        let width = blocks_per_row * BLOCK;
        let (tiles, rest) = x.split_at(x.len() / (width * TILE) * width * TILE);
        let mut all = Self {
            tiles: Vec::with_capacity(tiles.len() / (BLOCK * TILE)),
            rest: Vec::with_capacity(rest.len() / BLOCK),
            sums: vec![0.0; x.len() / BLOCK],
        };
        let mut sums = all.sums.chunks_exact_mut(blocks_per_row);
        for tile in tiles.chunks_exact(width * TILE) {
            pack(tile, blocks_per_row, (&mut all.tiles, &mut sums));
        }
        for row in rest.chunks_exact(width) {
            pack(row, blocks_per_row, (&mut all.rest, &mut sums));
        }
        all
    }
}

/// Quantises `R` rows and appends their blocks, interleaved.
fn pack<'a, const R: usize>(
    rows: &[f32],
    blocks_per_row: usize,
    (out, sums): (
        &mut Vec<ActivationBlock<R>>,
        &mut impl Iterator<Item = &'a mut [f32]>,
    ),
) {
    let empty = ActivationBlock {
        codes: [[0; BLOCK]; R],
        scales: [0.0; R],
    };
    let start = out.len();
    out.resize(start + blocks_per_row, empty);
    let rows = rows
        .chunks_exact(blocks_per_row * BLOCK)
        .zip(sums.by_ref().take(R));
    for (r, (values, sums)) in rows.enumerate() {
        vectorised(
            #[inline(always)]
            || {
                let blocks = values.chunks_exact(BLOCK).zip(&mut out[start..]).zip(sums);
                for ((values, block), sum) in blocks {
                    (block.scales[r], *sum) = quantise_block(values, &mut block.codes[r]);
                }
            },
        );
    }
}

#[inline(always)]
fn quantise_block(values: &[f32], codes: &mut [i8; BLOCK]) -> (f32, f32) {
    /// Adding and subtracting 1.5·2²³ rounds small f32 values to whole numbers, ties to even.
    const ROUNDER: f32 = 12_582_912.0;
    let max = values.iter().fold(0.0f32, |m, v| m.max(v.abs()));
    let inverse = if max == 0.0 { 0.0 } else { 127.0 / max };
    let mut total = 0i32;
    for (code, value) in codes.iter_mut().zip(values) {
        let rounded = (value * inverse + ROUNDER) - ROUNDER;
        *code = rounded as i8;
        total += i32::from(*code);
    }
    let scale = max / 127.0;
    (
        f16::from_f32(scale).to_f32(),
        f16::from_f32(scale * total as f32).to_f32(),
    )
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    std::array::from_fn(|i| bytes[i])
}

fn half_at(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

fn transpose(x: &[f32], (rows, columns): (usize, usize)) -> Vec<f32> {
    let mut out = vec![0.0; x.len()];
    for (r, row) in x.chunks_exact(columns).enumerate() {
        for (c, value) in row.iter().enumerate() {
            out[c * rows + r] = *value;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: u32) -> impl Iterator<Item = u32> {
        let mut state = seed;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        })
        .take(count)
    }

    /// Blocks of `block` bytes whose first `scales` f16 numbers lie between 0 and 1.
    fn blocks(count: usize, block: usize, scales: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = numbers(count * block, 5).map(|n| n as u8).collect();
        for (i, b) in bytes.chunks_exact_mut(block).enumerate() {
            for s in 0..scales {
                let value = f16::from_f32((i * 7 + s * 3) as f32 % 11.0 / 11.0 - 0.3);
                b[2 * s..2 * s + 2].copy_from_slice(&value.to_le_bytes());
            }
        }
        bytes
    }

    #[test]
    fn one_block_by_hand() {
        // Scale 0.5, minimum −1; codes 0..15 in the low halves, all 15 in the high halves.
        let mut bytes = f16::from_f32(0.5).to_le_bytes().to_vec();
        bytes.extend(f16::from_f32(-1.0).to_le_bytes());
        bytes.extend((0..16u8).map(|i| i | 0xf0));
        let w = BlockMatrix::q4_1(&bytes, 32);
        let expected: Vec<f32> = (0..32)
            .map(|i| if i < 16 { i as f32 * 0.5 - 1.0 } else { 6.5 })
            .collect();
        assert_eq!(w.row(0), expected);
        // Activations of 127 everywhere: codes 127, scale 1. Σ codes = 120 + 240 = 360, so 0.5·127·360 − 127·32.
        assert_eq!(w.product(&[127.0; 32]), [0.5 * 127.0 * 360.0 - 127.0 * 32.0]);
    }

    #[test]
    fn products_equal_those_of_the_dequantised_values() {
        const INPUTS: usize = 160;
        const OUTPUTS: usize = 37;
        let count = INPUTS / BLOCK * OUTPUTS;
        let matrices = [
            BlockMatrix::q4_1(&blocks(count, 20, 2), INPUTS),
            BlockMatrix::q8_0(&blocks(count, 34, 1), INPUTS),
        ];
        for w in matrices {
            for rows in [1, 3, 4, 9, 130] {
                let x: Vec<f32> = numbers(rows * INPUTS, 9)
                    .map(|n| (n % 2001) as f32 / 1000.0 - 1.0)
                    .collect();
                let found = w.product(&x);
                for (r, x) in x.chunks_exact(INPUTS).enumerate() {
                    for o in 0..OUTPUTS {
                        let exact: f64 = w.row(o).iter().zip(x).map(|(a, b)| f64::from(a * b)).sum();
                        let size: f64 = w
                            .row(o)
                            .iter()
                            .zip(x)
                            .map(|(a, b)| f64::from((a * b).abs()))
                            .sum();
                        let error = (f64::from(found[r * OUTPUTS + o]) - exact).abs();
                        // Eight-bit activations: at most half a step of 1/127 each.
                        assert!(
                            error <= size.max(1.0) / 100.0,
                            "row {r}, output {o}: {error} of {size}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn vector_and_portable_forms_agree_and_rows_do_not_influence_each_other() {
        let w = BlockMatrix::q8_0(&blocks(6, 34, 1), 192);
        let x: Vec<f32> = numbers(5 * 192, 3).map(|n| (n % 999) as f32 - 500.0).collect();
        let together = w.product(&x);
        let single: Vec<f32> = x.chunks_exact(192).flat_map(|row| w.product(row)).collect();
        assert_eq!(together, single);
        let activations = Activations::quantise(&x, 6);
        let BlockCodes::Q8_0(codes) = &w.codes else {
            panic!("made as Q8_0");
        };
        let weight = (&codes[..], &w.scales[..]);
        let mut portable = dot_portable(weight, &activations.tiles).to_vec();
        portable.extend(dot_portable(weight, &activations.rest));
        for (a, b) in portable.iter().zip(&together) {
            assert!((a - b).abs() <= 1e-5 * a.abs().max(1.0), "{a} against {b}");
        }
    }

    #[test]
    fn activations_quantise_as_ggml_does() {
        let mut codes = [0; BLOCK];
        let mut x = [0.0; BLOCK];
        (x[0], x[1], x[2]) = (254.0, -3.0, 1.0);
        // Scale 2: −1.5 and 0.5 are ties and go to even, −2 and 0.
        assert_eq!(quantise_block(&x, &mut codes), (2.0, 2.0 * 125.0));
        assert_eq!(codes[..3], [127, -2, 0]);
        assert_eq!(quantise_block(&[0.0; BLOCK], &mut codes), (0.0, 0.0));
    }
}
