//! Causal grouped-query attention over the cache, without expanding key and value heads.

use rayon::prelude::*;

use super::cache::{HeadView, KvCache};
use super::rows::softmax;
use super::simd::{Portable, VectorOps};
use crate::engine::marks::AttentionCall;
use crate::model::ModelConfig;

/// Multiply-adds below which one thread is faster than several.
const PARALLEL_WORK: usize = 1 << 17;

/// The place of one row of activations: its sequence and its position in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowPlace {
    pub(super) sequence: usize,
    pub(super) position: usize,
}

/// `q` is `[rows, heads · head_dim]`, one row per entry of `places`; every row attends to its sequence's cached tokens
/// up to its own position. The result has the shape of `q`.
pub(super) fn attend(
    config: &ModelConfig,
    (cache, layer): (&KvCache, usize),
    q: &[f32],
    places: &[RowPlace],
) -> Vec<f32> {
    let (heads, dim) = (config.heads, config.head_dim);
    let group = heads / config.kv_heads;
    let scale = 1.0 / (dim as f32).sqrt();
    let one = |(index, (out, q)): (usize, (&mut [f32], &[f32]))| {
        let place = places[index / heads];
        let view = cache.head(layer, place.sequence, index % heads / group);
        attend_vectorised(q, view, (place.position + 1, scale), out);
    };
    let mut out = vec![0.0; q.len()];
    let work: usize = places.iter().map(|p| (p.position + 1) * heads * dim).sum();
    if work < PARALLEL_WORK {
        out.chunks_exact_mut(dim)
            .zip(q.chunks_exact(dim))
            .enumerate()
            .for_each(one);
    } else {
        out.par_chunks_exact_mut(dim)
            .zip(q.par_chunks_exact(dim))
            .enumerate()
            .for_each(one);
    }
    out
}

fn attend_vectorised(q: &[f32], view: HeadView<'_>, extent: (usize, f32), out: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = *super::simd::V3 {
        simd.vectorize(
            #[inline(always)]
            || attend_head(simd, (q, view), extent, out),
        );
        return;
    }
    attend_head(Portable, (q, view), extent, out);
}

#[inline(always)]
fn attend_head(
    ops: impl VectorOps,
    (q, view): (&[f32], HeadView<'_>),
    (visible, scale): (usize, f32),
    out: &mut [f32],
) {
    let dim = q.len();
    let mut scores = vec![0.0; visible];
    for (score, key) in scores.iter_mut().zip(view.keys.chunks_exact(dim)) {
        *score = ops.dot(q, key) * scale;
    }
    softmax(&mut scores);
    for (&p, value) in scores.iter().zip(view.values.chunks_exact(dim)) {
        ops.add_scaled(out, value, p);
    }
}

/// Exact work of one call: 4·head_dim operations per query head and visible key (two products of 2·head_dim), and the
/// bytes of q, k, v and output moved once.
pub(super) fn account(config: &ModelConfig, places: &[RowPlace]) -> AttentionCall {
    let visible: usize = places.iter().map(|p| p.position + 1).sum();
    let by_sequence = places.chunk_by(|a, b| a.sequence == b.sequence);
    let cached: usize = by_sequence
        .filter_map(|rows| rows.last())
        .map(|p| p.position + 1)
        .sum();
    let values = 2 * config.q_width() * places.len() + 2 * config.kv_width() * cached;
    AttentionCall {
        heads: config.heads as u32,
        kv_heads: config.kv_heads as u32,
        head_dim: config.head_dim as u32,
        q_len: places.len() as u64,
        kv_len: cached as u64,
        flops: 4.0 * config.q_width() as f64 * visible as f64,
        bytes: (values * size_of::<f32>()) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::preset;

    #[test]
    fn work_is_counted_exactly() {
        // tiny-llama: 8 query heads and 2 kv heads of 32. A prompt of 3 sees 1+2+3 = 6 keys, a decoded token at
        // position 9 sees 10: 16 keys · 4 · 256 operations.
        let config = preset("tiny-llama").expect("preset");
        let place = |sequence, position| RowPlace { sequence, position };
        let call = account(&config, &[place(0, 0), place(0, 1), place(0, 2), place(1, 9)]);
        assert_eq!(call.flops, 16.0 * 4.0 * 256.0);
        // Four rows of q and output, 3 + 10 cached keys and values of 64, four bytes each.
        assert_eq!(call.bytes, (2.0 * 4.0 * 256.0 + 2.0 * 13.0 * 64.0) * 4.0);
        assert_eq!((call.q_len, call.kv_len), (4, 13));
    }
}
