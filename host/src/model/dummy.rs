//! Weights from a seed: the same values on every machine, in any order of reading.
//!
//! Each value depends on the seed, the tensor's name and its index only. It uses integer arithmetic and one exact
//! float multiplication, so it does not depend on the platform's math library.

use half::{bf16, f16};

use super::config::ModelConfig;
use super::storage::StorageType;
use super::weights::{SeededValues, TensorInfo, Weights};

/// The tensors of a model of this shape with values from `seed`.
pub(super) fn dummy_weights(config: &ModelConfig, seed: u64) -> Weights {
    let mut w = Weights::empty(seed);
    let (h, v, s) = (config.hidden, config.vocab, config.storage);
    w.add_seeded("token_embd.weight".into(), s, vec![v, h]);
    w.add_seeded("output_norm.weight".into(), StorageType::F32, vec![h]);
    if !config.tie_embeddings {
        w.add_seeded("output.weight".into(), s, vec![v, h]);
    }
    for layer in 0..config.layers {
        for (name, storage, shape) in layer_tensors(config) {
            w.add_seeded(format!("blk.{layer}.{name}"), storage, shape);
        }
    }
    w
}

fn layer_tensors(c: &ModelConfig) -> Vec<(&'static str, StorageType, Vec<usize>)> {
    let (h, q, kv, d, s) = (c.hidden, c.q_width(), c.kv_width(), c.head_dim, c.storage);
    let norm = StorageType::F32;
    let mut t = vec![
        ("attn_norm.weight", norm, vec![h]),
        ("attn_q.weight", s, vec![q, h]),
        ("attn_k.weight", s, vec![kv, h]),
        ("attn_v.weight", s, vec![kv, h]),
        ("attn_output.weight", s, vec![h, q]),
        ("ffn_norm.weight", norm, vec![h]),
    ];
    if c.qkv_bias {
        t.extend([
            ("attn_q.bias", norm, vec![q]),
            ("attn_k.bias", norm, vec![kv]),
            ("attn_v.bias", norm, vec![kv]),
        ]);
    }
    if c.qk_norm {
        t.extend([
            ("attn_q_norm.weight", norm, vec![d]),
            ("attn_k_norm.weight", norm, vec![d]),
        ]);
    }
    match c.experts {
        Some(e) => t.extend([
            ("ffn_gate_inp.weight", norm, vec![e.count, h]),
            ("ffn_gate_exps.weight", s, vec![e.count, e.intermediate, h]),
            ("ffn_up_exps.weight", s, vec![e.count, e.intermediate, h]),
            ("ffn_down_exps.weight", s, vec![e.count, h, e.intermediate]),
        ]),
        None => t.extend([
            ("ffn_gate.weight", s, vec![c.intermediate, h]),
            ("ffn_up.weight", s, vec![c.intermediate, h]),
            ("ffn_down.weight", s, vec![h, c.intermediate]),
        ]),
    }
    t
}

/// The pseudo-random numbers of one tensor.
pub(super) struct Stream {
    key: u64,
    first: u64,
    mean: f32,
    deviation: f32,
}

impl Stream {
    /// The numbers of `info` from element `first` of the whole tensor on.
    pub(super) fn new(seed: u64, info: &TensorInfo, first: u64) -> Self {
        let (mean, deviation) = distribution(&info.name, *info.shape.last().unwrap_or(&1));
        Self {
            key: mix(seed ^ fnv1a(info.name.as_bytes())),
            first,
            mean,
            deviation,
        }
    }

    /// The numbers' description; it leaves out where they start.
    pub(super) fn facts(&self) -> SeededValues {
        SeededValues {
            key: self.key,
            mean: self.mean,
            deviation: self.deviation,
        }
    }

    fn value(&self, index: u64) -> f32 {
        self.mean + self.deviation * standard(mix(self.key.wrapping_add(self.first + index)))
    }
}

/// Mean and standard deviation by role. Projections keep the variance of their input; norms lie around 1; the router
/// is wide enough that tokens disagree about experts and experts differ in load.
fn distribution(name: &str, inputs: usize) -> (f32, f32) {
    let fan_in = 1.0 / (inputs as f32).sqrt();
    if name.ends_with("norm.weight") {
        (1.0, 0.1)
    } else if name.ends_with(".bias") {
        (0.0, 0.1)
    } else if name.starts_with("token_embd") {
        (0.0, 1.0)
    } else if name.ends_with("ffn_gate_inp.weight") {
        (0.0, 1.5 * fan_in)
    } else {
        (0.0, fan_in)
    }
}

/// Sum of four 16-bit uniform numbers, centred and scaled to unit variance: a bell shape that ends at ±3.46.
fn standard(bits: u64) -> f32 {
    // Four times the variance (65536² − 1)/12 of one; the root is 37,837.227…
    const INVERSE_DEVIATION: f32 = 1.0 / 37_837.227;
    let sum = (0..4).map(|i| (bits >> (16 * i)) as u16 as i32).sum::<i32>();
    (sum - 2 * 65_535) as f32 * INVERSE_DEVIATION
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014) over its counter.
fn mix(counter: u64) -> u64 {
    let mut z = counter.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| {
        (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Writes the stream's numbers as `storage`, which is a float type for every dummy tensor.
pub(super) fn fill(stream: &Stream, storage: StorageType, out: &mut [u8]) {
    let values = (0u64..).map(|i| stream.value(i));
    match storage {
        StorageType::F32 => write_all(out, values.map(f32::to_le_bytes)),
        StorageType::F16 => write_all(out, values.map(|v| f16::from_f32(v).to_le_bytes())),
        StorageType::Bf16 => write_all(out, values.map(|v| bf16::from_f32(v).to_le_bytes())),
        other => unreachable!("dummy weights are floats, not {}", other.name()),
    }
}

fn write_all<const N: usize>(out: &mut [u8], values: impl Iterator<Item = [u8; N]>) {
    for (slot, value) in out.chunks_exact_mut(N).zip(values) {
        slot.copy_from_slice(&value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::preset;

    fn floats(w: &Weights, info: &TensorInfo) -> Vec<f32> {
        w.read(info)
            .expect("seeded")
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect()
    }

    #[test]
    fn values_are_pinned_so_that_other_machines_agree() {
        // From an independent implementation in Python (integers exact, one float32 rounding per operation).
        let config = preset("tiny-moe").expect("preset");
        let w = dummy_weights(&config, 42);
        let q = floats(&w, w.find("blk.1.attn_q.weight").expect("tensor"));
        assert_eq!(q.len(), 256 * 256);
        let mean = q.iter().sum::<f32>() / q.len() as f32;
        let deviation = (q.iter().map(|v| (v - mean).powi(2)).sum::<f32>() / q.len() as f32).sqrt();
        // Projection from 256 inputs: standard deviation 1/16.
        assert!(mean.abs() < 1e-3, "{mean}");
        assert!((deviation - 0.0625).abs() < 5e-4, "{deviation}");
        assert_eq!(q[..3], PINNED);
    }

    const PINNED: [f32; 3] = [-0.005_855_675_3, -0.052_233_614, 0.032_679_457];

    #[test]
    fn one_expert_of_a_stack_is_that_part_of_the_stack() {
        let config = preset("tiny-moe").expect("preset");
        let w = dummy_weights(&config, 7);
        let stack = w.find("blk.0.ffn_down_exps.weight").expect("tensor");
        let all = floats(&w, stack);
        let third = floats(&w, &stack.outer(3).expect("expert 3"));
        let n = 256 * 256;
        assert_eq!(third, all[3 * n..4 * n]);
        assert!(stack.outer(8).is_none());
    }

    #[test]
    fn seeds_and_names_give_different_values() {
        let config = preset("tiny-llama").expect("preset");
        let (a, b) = (dummy_weights(&config, 1), dummy_weights(&config, 2));
        let read = |w: &Weights, name: &str| floats(w, w.find(name).expect("tensor"));
        assert_ne!(read(&a, "blk.0.attn_k.weight"), read(&b, "blk.0.attn_k.weight"));
        assert_ne!(read(&a, "blk.0.attn_k.weight"), read(&a, "blk.0.attn_v.weight"));
    }
}
