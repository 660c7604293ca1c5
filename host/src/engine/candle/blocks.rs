//! Own matrix products for the block formats whose candle kernels are scalar or slow: Q4_1 and Q8_0.
//!
//! As in ggml, activations are quantised to eight bits per block of 32 first, so that results follow llama.cpp's up to
//! the order of summation. Scales are kept in f32 beside the codes (24 bytes per block of Q4_1 instead of 20).

use half::f16;
use rayon::prelude::*;

use super::block_dot::{ActivationBlock, BLOCK, Q41, Q80, WeightBlock, dot_portable};

/// Multiply-adds below which one thread is faster than several, and the least worth handing to one.
const PARALLEL_WORK: usize = 1 << 18;
const TASK_WORK: usize = 1 << 17;
/// Rows of activations that share one look at a weight block.
const TILE: usize = 4;

/// A weight matrix `[outputs, inputs]` in blocks along its rows.
pub(super) struct BlockMatrix {
    blocks: Blocks,
    blocks_per_row: usize,
}

enum Blocks {
    Q4_1(Vec<Q41>),
    Q8_0(Vec<Q80>),
}

/// Activations quantised as ggml's Q8_1. Rows are packed in tiles of [`TILE`], block after block, and the rows left
/// over one by one.
struct Activations {
    tiles: Vec<ActivationBlock<TILE>>,
    rest: Vec<ActivationBlock<1>>,
    rows: usize,
}

impl BlockMatrix {
    /// Reads Q4_1 blocks: f16 scale, f16 minimum, 16 bytes of codes.
    pub(super) fn q4_1(bytes: &[u8], inputs: usize) -> Self {
        let block = |b: &[u8]| Q41 {
            nibbles: array(&b[4..]),
            scale: half_at(b, 0),
            minimum: half_at(b, 2),
        };
        Self {
            blocks: Blocks::Q4_1(bytes.chunks_exact(20).map(block).collect()),
            blocks_per_row: inputs / BLOCK,
        }
    }

    /// Reads Q8_0 blocks: f16 scale, 32 bytes of codes.
    pub(super) fn q8_0(bytes: &[u8], inputs: usize) -> Self {
        let block = |b: &[u8]| Q80 {
            codes: array(&b[2..]).map(u8::cast_signed),
            scale: half_at(b, 0),
        };
        Self {
            blocks: Blocks::Q8_0(bytes.chunks_exact(34).map(block).collect()),
            blocks_per_row: inputs / BLOCK,
        }
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        match &self.blocks {
            Blocks::Q4_1(b) => size_of_val(&b[..]),
            Blocks::Q8_0(b) => size_of_val(&b[..]),
        }
    }

    /// Row `index` as f32.
    pub(super) fn row(&self, index: usize) -> Vec<f32> {
        let row = index * self.blocks_per_row..(index + 1) * self.blocks_per_row;
        match &self.blocks {
            Blocks::Q4_1(b) => b[row].iter().flat_map(|b| b.values()).collect(),
            Blocks::Q8_0(b) => b[row].iter().flat_map(|b| b.values()).collect(),
        }
    }

    /// `x · Wᵀ`: `x` is `[rows, inputs]`, the result `[rows, outputs]`.
    pub(super) fn product(&self, x: &[f32]) -> Vec<f32> {
        let activations = Activations::quantise(x, self.blocks_per_row);
        match &self.blocks {
            Blocks::Q4_1(blocks) => product(blocks, self.blocks_per_row, &activations),
            Blocks::Q8_0(blocks) => product(blocks, self.blocks_per_row, &activations),
        }
    }
}

fn product<W: WeightBlock>(blocks: &[W], width: usize, activations: &Activations) -> Vec<f32> {
    let (rows, outputs) = (activations.rows, blocks.len() / width);
    // Output after output, so that each task owns a contiguous piece.
    let mut transposed = vec![0.0; rows * outputs];
    let one_task = |(first, out): (usize, &mut [f32])| {
        let weights = blocks[first * width..].chunks_exact(width);
        for (weight, results) in weights.zip(out.chunks_exact_mut(rows)) {
            row_products(weight, activations, results);
        }
    };
    if rows * outputs * width * BLOCK < PARALLEL_WORK {
        one_task((0, &mut transposed));
    } else {
        let outputs_per_task = TASK_WORK.div_ceil(rows * width * BLOCK);
        transposed
            .par_chunks_mut(rows * outputs_per_task)
            .enumerate()
            .for_each(|(task, out)| one_task((task * outputs_per_task, out)));
    }
    match rows {
        1 => transposed,
        _ => transpose(&transposed, (outputs, rows)),
    }
}

/// Products of one weight row with all rows of activations.
fn row_products<W: WeightBlock>(weight: &[W], activations: &Activations, results: &mut [f32]) {
    let width = weight.len();
    let (tiles, rest) = results.as_chunks_mut::<TILE>();
    let tiles = tiles.iter_mut().zip(activations.tiles.chunks_exact(width));
    let rest = rest.iter_mut().zip(activations.rest.chunks_exact(width));
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = *super::simd::V3 {
        simd.vectorize(
            #[inline(always)]
            || {
                for (out, tile) in tiles {
                    *out = super::block_dot::dot_avx2(simd, weight, tile);
                }
                for (out, row) in rest {
                    [*out] = super::block_dot::dot_avx2(simd, weight, row);
                }
            },
        );
        return;
    }
    for (out, tile) in tiles {
        *out = dot_portable(weight, tile);
    }
    for (out, row) in rest {
        [*out] = dot_portable(weight, row);
    }
}

impl Activations {
    /// Scale max|x|/127 and codes x/scale rounded, per block; scales and sums are rounded to f16 as ggml stores them.
    fn quantise(x: &[f32], blocks_per_row: usize) -> Self {
        let width = blocks_per_row * BLOCK;
        let rows = x.len() / width;
        let (tiles, rest) = x.split_at(rows / TILE * TILE * width);
        Self {
            tiles: pack(tiles, blocks_per_row),
            rest: pack(rest, blocks_per_row),
            rows,
        }
    }
}

/// Quantises rows and interleaves the blocks of each `R` of them.
fn pack<const R: usize>(x: &[f32], blocks_per_row: usize) -> Vec<ActivationBlock<R>> {
    let width = blocks_per_row * BLOCK;
    let empty = ActivationBlock {
        codes: [[0; BLOCK]; R],
        scales: [0.0; R],
        sums: [0.0; R],
    };
    let mut out = vec![empty; x.len() / (BLOCK * R)];
    for (rows, tile) in x
        .chunks_exact(width * R)
        .zip(out.chunks_exact_mut(blocks_per_row))
    {
        for (r, row) in rows.chunks_exact(width).enumerate() {
            for (values, block) in row.as_chunks::<BLOCK>().0.iter().zip(tile.iter_mut()) {
                (block.codes[r], block.scales[r], block.sums[r]) = quantise_block(values);
            }
        }
    }
    out
}

/// Codes, scale, and scale times the sum of the codes.
fn quantise_block(values: &[f32; BLOCK]) -> ([i8; BLOCK], f32, f32) {
    /// Adding this to a small f32 leaves the nearest whole number, ties to even, in the low bits: 1.5·2²³.
    const ROUNDER: f32 = 12_582_912.0;
    let mut max = 0.0;
    for v in values {
        max = if v.abs() > max { v.abs() } else { max };
    }
    let inverse = if max == 0.0 { 0.0 } else { 127.0 / max };
    let mut codes = [0i8; BLOCK];
    let mut total = 0i32;
    for (code, value) in codes.iter_mut().zip(values) {
        let bits = (value * inverse + ROUNDER).to_bits();
        *code = bits.wrapping_sub(ROUNDER.to_bits()) as i8;
        total = total.wrapping_add(i32::from(*code));
    }
    let scale = max / 127.0;
    let stored = |v: f32| f16::from_f32(v).to_f32();
    (codes, stored(scale), stored(scale * total as f32))
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
        let Blocks::Q8_0(weight) = &w.blocks else {
            panic!("made as Q8_0");
        };
        let mut portable = dot_portable(weight, &activations.tiles).to_vec();
        portable.extend(dot_portable(weight, &activations.rest));
        for (a, b) in portable.iter().zip(&together) {
            assert!((a - b).abs() <= 1e-5 * a.abs().max(1.0), "{a} against {b}");
        }
    }

    #[test]
    fn activations_quantise_as_ggml_does() {
        let mut x = [0.0; BLOCK];
        (x[0], x[1], x[2]) = (254.0, -3.0, 1.0);
        // Scale 2: −1.5 and 0.5 are ties and go to even, −2 and 0.
        let (codes, scale, sum) = quantise_block(&x);
        assert_eq!((scale, sum, &codes[..3]), (2.0, 2.0 * 125.0, &[127, -2, 0][..]));
        assert_eq!(quantise_block(&[0.0; BLOCK]), ([0; BLOCK], 0.0, 0.0));
    }
}
