//! How many weights a shape has.

use super::config::ModelConfig;

impl ModelConfig {
    /// Number of weights, experts included; the tied LM head counts once.
    pub fn parameters(&self) -> u64 {
        self.parameters_with_experts(self.experts.map_or(0, |e| e.count))
    }

    /// Number of weights that take part in one token: all but the experts that the router does not choose. Embedding
    /// and LM head count whole, as in the figures that model cards give.
    pub fn active_parameters(&self) -> u64 {
        self.parameters_with_experts(self.experts.map_or(0, |e| e.per_token))
    }

    /// As [`Self::parameters`], with `experts` experts per layer; the router keeps its size.
    fn parameters_with_experts(&self, experts: usize) -> u64 {
        let (h, q, kv) = (self.hidden as u64, self.q_width() as u64, self.kv_width() as u64);
        let attention = h * (2 * q + 2 * kv);
        let bias = if self.qkv_bias { q + 2 * kv } else { 0 };
        let norms = 2 * h + if self.qk_norm { 2 * self.head_dim as u64 } else { 0 };
        let mlp = match self.experts {
            Some(e) => experts as u64 * 3 * h * e.intermediate as u64 + e.count as u64 * h,
            None => 3 * h * self.intermediate as u64,
        };
        let tables = if self.tie_embeddings { 1 } else { 2 };
        self.layers as u64 * (attention + bias + norms + mlp) + tables * self.vocab as u64 * h + h
    }
}

#[cfg(test)]
mod tests {
    use crate::model::preset;

    #[test]
    fn published_parameter_counts_come_out() {
        // Llama-3-8B: 8,030,261,248; Mixtral-8x7B: 46,702,792,704; Qwen3-30B-A3B: 30,532,122,624 (model cards).
        for (name, count) in [
            ("llama-3-8b", 8_030_261_248),
            ("mixtral-8x7b", 46_702_792_704),
            ("qwen3-30b-a3b", 30_532_122_624),
        ] {
            assert_eq!(preset(name).expect("preset").parameters(), count, "{name}");
        }
        // Mixtral: 6 idle experts of 3 · 4096 · 14,336 in each of 32 layers; Qwen3: 120 of 3 · 2048 · 768 in 48 ("12.9B"
        // and "3.3B activated" on their cards). A dense model is active as a whole.
        for (name, count) in [
            ("llama-3-8b", 8_030_261_248),
            ("mixtral-8x7b", 12_879_925_248),
            ("qwen3-30b-a3b", 3_353_032_704),
        ] {
            assert_eq!(preset(name).expect("preset").active_parameters(), count, "{name}");
        }
    }
}
