//! Rotary position embedding (Su et al., arXiv 2104.09864).

use std::f32::consts::TAU;

use crate::model::{ModelConfig, RopeLayout, RopeScaling};

/// Frequencies of one model, with cosines and sines for the positions prepared so far.
pub(super) struct Rope {
    frequencies: Vec<f32>,
    layout: RopeLayout,
    /// Cosine and sine of each pair, position after position.
    table: Vec<(f32, f32)>,
}

impl Rope {
    /// `divisors` are the file's own divisors of the frequencies, one per pair, where it has them.
    pub(super) fn new(config: &ModelConfig, divisors: Option<&[f32]>) -> Self {
        let pairs = config.head_dim / 2;
        let frequencies = (0..pairs)
            .map(|i| {
                let exponent = 2.0 * i as f32 / config.head_dim as f32;
                let base = 1.0 / config.rope_theta.powf(exponent);
                scaled(base, config.rope_scaling) / divisors.map_or(1.0, |d| d[i])
            })
            .collect();
        Self {
            frequencies,
            layout: config.rope_layout,
            table: Vec::new(),
        }
    }

    /// The frequencies alone.
    pub(super) fn into_frequencies(self) -> Vec<f32> {
        self.frequencies
    }

    /// Fills the table for positions below `positions`.
    pub(super) fn prepare(&mut self, positions: usize) {
        let pairs = self.frequencies.len();
        for position in self.table.len() / pairs..positions {
            let angles = self.frequencies.iter().map(|f| position as f32 * f);
            self.table.extend(angles.map(|a| (a.cos(), a.sin())));
        }
    }

    /// Rotates all heads of one token at `position`, which must have been prepared.
    pub(super) fn rotate(&self, heads: &mut [f32], position: usize) {
        let pairs = self.frequencies.len();
        let table = &self.table[position * pairs..(position + 1) * pairs];
        for head in heads.chunks_exact_mut(2 * pairs) {
            match self.layout {
                RopeLayout::Halves => {
                    let (low, high) = head.split_at_mut(pairs);
                    for ((a, b), &(cos, sin)) in low.iter_mut().zip(high).zip(table) {
                        (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
                    }
                }
                RopeLayout::Interleaved => {
                    for (pair, &(cos, sin)) in head.chunks_exact_mut(2).zip(table) {
                        let (a, b) = (pair[0], pair[1]);
                        pair[0] = a * cos - b * sin;
                        pair[1] = a * sin + b * cos;
                    }
                }
            }
        }
    }
}

/// One frequency under the model's scaling. Llama 3.1's rule is from the reference implementation of that model.
fn scaled(frequency: f32, scaling: RopeScaling) -> f32 {
    match scaling {
        RopeScaling::None => frequency,
        RopeScaling::Linear { factor } => frequency / factor,
        RopeScaling::Llama3 {
            factor,
            low_freq_factor,
            high_freq_factor,
            original_context,
        } => {
            let turns = original_context as f32 * frequency / TAU;
            if turns < low_freq_factor {
                frequency / factor
            } else if turns > high_freq_factor {
                frequency
            } else {
                let keep = (turns - low_freq_factor) / (high_freq_factor - low_freq_factor);
                (1.0 - keep) * frequency / factor + keep * frequency
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::preset;

    fn rope(layout: RopeLayout) -> Rope {
        let mut config = preset("tiny-llama").expect("preset");
        config.head_dim = 4;
        config.rope_theta = 100.0;
        config.rope_layout = layout;
        let mut rope = Rope::new(&config, None);
        rope.prepare(4);
        rope
    }

    #[test]
    fn pairs_turn_by_hand() {
        // theta 100, four elements: frequencies 1 and 100^-0.5 = 0.1. At position 3 the angles are 3 and 0.3.
        let (c3, s3, c03, s03) = (3f32.cos(), 3f32.sin(), 0.3f32.cos(), 0.3f32.sin());
        let mut x = [1.0, 2.0, 3.0, 4.0];
        rope(RopeLayout::Interleaved).rotate(&mut x, 3);
        let expected = [
            c3 - 2.0 * s3,
            s3 + 2.0 * c3,
            3.0 * c03 - 4.0 * s03,
            3.0 * s03 + 4.0 * c03,
        ];
        assert!(x.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5), "{x:?}");
        let mut x = [1.0, 3.0, 2.0, 4.0];
        rope(RopeLayout::Halves).rotate(&mut x, 3);
        let halves = [expected[0], expected[2], expected[1], expected[3]];
        assert!(x.iter().zip(halves).all(|(a, b)| (a - b).abs() < 1e-5), "{x:?}");
    }

    #[test]
    fn llama3_scaling_divides_long_waves_keeps_short_ones_and_ramps_between() {
        let scaling = RopeScaling::Llama3 {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_context: 8192,
        };
        // Turns over the original context: 8192·f/2π. f = 1 makes 1304 turns (kept), f = 2π/16384 half a turn
        // (divided by 8), f = 2π·2.5/8192 two and a half: half way up the ramp, so (1/2)/8 + 1/2 = 0.5625 of f.
        assert_eq!(scaled(1.0, scaling), 1.0);
        let long = TAU / 16_384.0;
        assert_eq!(scaled(long, scaling), long / 8.0);
        let middle = TAU * 2.5 / 8192.0;
        assert!((scaled(middle, scaling) / middle - 0.5625).abs() < 1e-6);
        assert_eq!(scaled(1.0, RopeScaling::Linear { factor: 4.0 }), 0.25);
    }
}
