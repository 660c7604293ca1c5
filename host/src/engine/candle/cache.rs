//! Keys and values of all sequences, allocated once and written in place.

use crate::engine::marks::Occupancy;
use crate::model::ModelConfig;

/// Per layer and sequence, keys and values as `[kv_heads, max_tokens, head_dim]`.
pub(super) struct KvCache {
    layers: Vec<LayerCache>,
    lengths: Vec<usize>,
    max_tokens: usize,
    kv_heads: usize,
    head_dim: usize,
}

struct LayerCache {
    keys: Vec<f32>,
    values: Vec<f32>,
}

/// What attention reads: one sequence's keys and values of one layer and head.
#[derive(Clone, Copy)]
pub(super) struct HeadView<'a> {
    /// `[max_tokens, head_dim]`; rows from the sequence's length on are stale.
    pub(super) keys: &'a [f32],
    /// As `keys`.
    pub(super) values: &'a [f32],
}

impl KvCache {
    pub(super) fn new(config: &ModelConfig, batch: usize, max_tokens: usize) -> Self {
        let size = batch * config.kv_width() * max_tokens;
        let layer = || LayerCache {
            keys: vec![0.0; size],
            values: vec![0.0; size],
        };
        Self {
            layers: (0..config.layers).map(|_| layer()).collect(),
            lengths: vec![0; batch],
            max_tokens,
            kv_heads: config.kv_heads,
            head_dim: config.head_dim,
        }
    }

    pub(super) fn batch(&self) -> usize {
        self.lengths.len()
    }

    pub(super) fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// Tokens stored of a sequence.
    pub(super) fn length(&self, sequence: usize) -> usize {
        self.lengths[sequence]
    }

    /// Counts `tokens` more tokens of a sequence as stored, once every layer has written them.
    pub(super) fn advance(&mut self, sequence: usize, tokens: usize) {
        self.lengths[sequence] += tokens;
    }

    /// Forgets all sequences and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.lengths.fill(0);
    }

    /// Whether nothing was stored since the cache was made.
    pub(super) fn is_empty(&self) -> bool {
        self.lengths.iter().all(|&l| l == 0)
    }

    /// Writes the key and value heads of one token.
    pub(super) fn write(
        &mut self,
        layer: usize,
        (sequence, position): (usize, usize),
        key: &[f32],
        value: &[f32],
    ) {
        for head in 0..self.kv_heads {
            let from = head * self.head_dim;
            let to = self.start(sequence, head) + position * self.head_dim;
            let layer = &mut self.layers[layer];
            layer.keys[to..to + self.head_dim].copy_from_slice(&key[from..from + self.head_dim]);
            layer.values[to..to + self.head_dim].copy_from_slice(&value[from..from + self.head_dim]);
        }
    }

    pub(super) fn head(&self, layer: usize, sequence: usize, head: usize) -> HeadView<'_> {
        let start = self.start(sequence, head);
        let end = start + self.max_tokens * self.head_dim;
        HeadView {
            keys: &self.layers[layer].keys[start..end],
            values: &self.layers[layer].values[start..end],
        }
    }

    fn start(&self, sequence: usize, head: usize) -> usize {
        (sequence * self.kv_heads + head) * self.max_tokens * self.head_dim
    }

    /// One block per sequence: its memory is contiguous and reserved whole.
    pub(super) fn occupancy(&self) -> Occupancy {
        Occupancy {
            block_tokens: self.max_tokens,
            blocks_total: self.lengths.len() as u64,
            blocks_used: self.lengths.iter().filter(|&&length| length > 0).count() as u64,
            tokens_stored: self.lengths.iter().map(|&l| l as u64).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::preset;

    #[test]
    fn tokens_land_in_their_sequence_head_and_position() {
        let config = preset("tiny-llama").expect("preset");
        let mut cache = KvCache::new(&config, 2, 40);
        let key: Vec<f32> = (0..64).map(|i| i as f32).collect();
        let value: Vec<f32> = key.iter().map(|v| -v).collect();
        cache.write(3, (1, 5), &key, &value);
        let head = cache.head(3, 1, 1);
        assert_eq!(head.keys[5 * 32..6 * 32], key[32..]);
        assert_eq!(head.values[5 * 32..6 * 32], value[32..]);
        assert!(cache.head(3, 0, 1).keys.iter().all(|&v| v == 0.0));
        let occupancy = |blocks_used, tokens_stored| Occupancy {
            block_tokens: 40,
            blocks_total: 2,
            blocks_used,
            tokens_stored,
        };
        assert_eq!(cache.occupancy(), occupancy(0, 0));
        cache.advance(1, 17);
        assert_eq!(cache.occupancy(), occupancy(1, 17));
        cache.advance(0, 16);
        assert_eq!(cache.occupancy(), occupancy(2, 33));
    }
}
