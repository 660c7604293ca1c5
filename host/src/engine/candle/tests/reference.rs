//! A decoder in plain loops over f64, without cache, batching or any code of the engine. Slow and obvious.

use std::collections::HashMap;

use crate::model::{Model, ModelConfig, RopeLayout, RopeScaling, StorageType};

type Rows = Vec<Vec<f64>>;

pub(super) struct Reference {
    config: ModelConfig,
    tensors: HashMap<String, (Vec<usize>, Vec<f64>)>,
}

impl Reference {
    pub(super) fn new(model: &Model) -> Self {
        let read = |t: &crate::model::TensorInfo| {
            assert_eq!(t.storage, StorageType::F32, "test models are f32");
            let bytes = model.weights.read(t).expect("seeded");
            let floats = bytes.chunks_exact(4);
            let values = floats.map(|b| f64::from(f32::from_le_bytes(b.try_into().expect("four"))));
            (t.name.clone(), (t.shape.clone(), values.collect()))
        };
        Self {
            config: model.config.clone(),
            tensors: model.weights.iter().map(read).collect(),
        }
    }

    fn tensor(&self, name: &str) -> &[f64] {
        &self.tensors[name].1
    }

    /// `x · Wᵀ` for the matrix at `offset` values into the tensor.
    fn times(&self, x: &[f64], name: &str, (outputs, offset): (usize, usize)) -> Vec<f64> {
        let w = &self.tensor(name)[offset..offset + outputs * x.len()];
        w.chunks(x.len())
            .map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum())
            .collect()
    }

    /// Logits after the last of `tokens`.
    pub(super) fn logits(&self, tokens: &[u32]) -> Vec<f32> {
        let c = &self.config;
        let embedding = self.tensor("token_embd.weight");
        let mut x: Rows = tokens
            .iter()
            .map(|&t| embedding[t as usize * c.hidden..(t as usize + 1) * c.hidden].to_vec())
            .collect();
        for layer in 0..c.layers {
            let attended = self.attention(&x, layer);
            add(&mut x, &attended);
            let mlp: Rows = x.iter().map(|row| self.mlp(row, layer)).collect();
            add(&mut x, &mlp);
        }
        let last = x.last().expect("a token");
        let normed = norm(last, self.tensor("output_norm.weight"), c.rms_eps);
        let head = if c.tie_embeddings {
            "token_embd.weight"
        } else {
            "output.weight"
        };
        self.times(&normed, head, (c.vocab, 0))
            .iter()
            .map(|v| *v as f32)
            .collect()
    }

    fn projection(&self, x: &[f64], layer: usize, (role, outputs): (&str, usize)) -> Vec<f64> {
        let mut y = self.times(x, &format!("blk.{layer}.{role}.weight"), (outputs, 0));
        if self.config.qkv_bias && role != "attn_output" {
            let bias = self.tensor(&format!("blk.{layer}.{role}.bias"));
            y.iter_mut().zip(bias).for_each(|(y, b)| *y += b);
        }
        y
    }

    fn heads(&self, x: &[f64], (layer, position): (usize, usize), (role, count): (&str, usize)) -> Rows {
        let c = &self.config;
        let flat = self.projection(x, layer, (role, count * c.head_dim));
        flat.chunks(c.head_dim)
            .map(|head| {
                let mut head = head.to_vec();
                if c.qk_norm {
                    let name = format!("blk.{layer}.{role}_norm.weight");
                    head = norm(&head, self.tensor(&name), c.rms_eps);
                }
                rotate(c, &head, position)
            })
            .collect()
    }

    fn attention(&self, x: &Rows, layer: usize) -> Rows {
        let c = &self.config;
        let weight = self.tensor(&format!("blk.{layer}.attn_norm.weight"));
        let normed: Rows = x.iter().map(|row| norm(row, weight, c.rms_eps)).collect();
        let each = |role, count| -> Vec<Rows> {
            let rows = normed.iter().enumerate();
            rows.map(|(p, row)| self.heads(row, (layer, p), (role, count)))
                .collect()
        };
        let (q, k) = (each("attn_q", c.heads), each("attn_k", c.kv_heads));
        let v: Rows = normed
            .iter()
            .map(|row| self.projection(row, layer, ("attn_v", c.kv_heads * c.head_dim)))
            .collect();
        let out = |position: usize| {
            let mut concatenated = Vec::new();
            for (head, q) in q[position].iter().enumerate() {
                let kv = head * c.kv_heads / c.heads;
                let score = |t: usize| {
                    let products = q.iter().zip(&k[t][kv]);
                    products.map(|(a, b)| a * b).sum::<f64>() / (c.head_dim as f64).sqrt()
                };
                let p = softmax(&(0..=position).map(score).collect::<Vec<_>>());
                for d in 0..c.head_dim {
                    concatenated.push((0..=position).map(|t| p[t] * v[t][kv * c.head_dim + d]).sum());
                }
            }
            self.projection(&concatenated, layer, ("attn_output", c.hidden))
        };
        (0..x.len()).map(out).collect()
    }

    fn mlp(&self, x: &[f64], layer: usize) -> Vec<f64> {
        let c = &self.config;
        let normed = norm(x, self.tensor(&format!("blk.{layer}.ffn_norm.weight")), c.rms_eps);
        let Some(e) = c.experts else {
            let names = ["gate", "up", "down"].map(|n| format!("blk.{layer}.ffn_{n}.weight"));
            return self.swiglu(&normed, &names, (c.intermediate, 0));
        };
        let router = format!("blk.{layer}.ffn_gate_inp.weight");
        let logits = self.times(&normed, &router, (e.count, 0));
        let mut order: Vec<usize> = (0..e.count).collect();
        order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
        order.truncate(e.per_token);
        // Mixtral takes the softmax of the chosen logits, Qwen3 that of all.
        let gates = if e.normalise_gates {
            softmax(&order.iter().map(|&i| logits[i]).collect::<Vec<_>>())
        } else {
            let all = softmax(&logits);
            order.iter().map(|&i| all[i]).collect()
        };
        let names = ["gate", "up", "down"].map(|n| format!("blk.{layer}.ffn_{n}_exps.weight"));
        let mut sum = vec![0.0; c.hidden];
        for (&expert, gate) in order.iter().zip(gates) {
            let y = self.swiglu(&normed, &names, (e.intermediate, expert));
            sum.iter_mut().zip(y).for_each(|(s, y)| *s += gate * y);
        }
        sum
    }

    fn swiglu(&self, x: &[f64], names: &[String; 3], (width, expert): (usize, usize)) -> Vec<f64> {
        let at = expert * width * x.len();
        let gate = self.times(x, &names[0], (width, at));
        let up = self.times(x, &names[1], (width, at));
        let hidden: Vec<f64> = gate
            .iter()
            .zip(up)
            .map(|(g, u)| g / (1.0 + (-g).exp()) * u)
            .collect();
        self.times(&hidden, &names[2], (x.len(), at))
    }
}

fn add(x: &mut Rows, y: &Rows) {
    for (x, y) in x.iter_mut().flatten().zip(y.iter().flatten()) {
        *x += y;
    }
}

fn norm(x: &[f64], weight: &[f64], eps: f32) -> Vec<f64> {
    let mean = x.iter().map(|v| v * v).sum::<f64>() / x.len() as f64;
    x.iter()
        .zip(weight)
        .map(|(v, w)| v / (mean + f64::from(eps)).sqrt() * w)
        .collect()
}

fn softmax(x: &[f64]) -> Vec<f64> {
    let sum: f64 = x.iter().map(|v| v.exp()).sum();
    x.iter().map(|v| v.exp() / sum).collect()
}

fn rotate(c: &ModelConfig, head: &[f64], position: usize) -> Vec<f64> {
    let mut out = head.to_vec();
    for pair in 0..c.head_dim / 2 {
        let mut frequency = f64::from(c.rope_theta).powf(-2.0 * pair as f64 / c.head_dim as f64);
        if let RopeScaling::Linear { factor } = c.rope_scaling {
            frequency /= f64::from(factor);
        }
        let (sin, cos) = (position as f64 * frequency).sin_cos();
        let (a, b) = match c.rope_layout {
            RopeLayout::Halves => (pair, pair + c.head_dim / 2),
            RopeLayout::Interleaved => (2 * pair, 2 * pair + 1),
        };
        out[a] = head[a] * cos - head[b] * sin;
        out[b] = head[a] * sin + head[b] * cos;
    }
    out
}
