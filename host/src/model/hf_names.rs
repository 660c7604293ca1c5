//! Tensor names of Hugging Face checkpoints in terms of the canonical (GGUF) names.

/// The canonical name, or `None` for a tensor that takes no part in inference.
pub(super) fn canonical(name: &str) -> Option<String> {
    match name {
        "model.embed_tokens.weight" => return Some("token_embd.weight".into()),
        "model.norm.weight" => return Some("output_norm.weight".into()),
        "lm_head.weight" => return Some("output.weight".into()),
        _ => {}
    }
    let (layer, rest) = name.strip_prefix("model.layers.")?.split_once('.')?;
    layer.parse::<u32>().ok()?;
    let role = layer_role(rest)?;
    Some(format!("blk.{layer}.{role}"))
}

fn layer_role(rest: &str) -> Option<String> {
    let fixed = match rest {
        "input_layernorm.weight" => "attn_norm.weight",
        "post_attention_layernorm.weight" => "ffn_norm.weight",
        "self_attn.q_proj.weight" => "attn_q.weight",
        "self_attn.k_proj.weight" => "attn_k.weight",
        "self_attn.v_proj.weight" => "attn_v.weight",
        "self_attn.o_proj.weight" => "attn_output.weight",
        "self_attn.q_proj.bias" => "attn_q.bias",
        "self_attn.k_proj.bias" => "attn_k.bias",
        "self_attn.v_proj.bias" => "attn_v.bias",
        "self_attn.q_norm.weight" => "attn_q_norm.weight",
        "self_attn.k_norm.weight" => "attn_k_norm.weight",
        "mlp.gate_proj.weight" => "ffn_gate.weight",
        "mlp.up_proj.weight" => "ffn_up.weight",
        "mlp.down_proj.weight" => "ffn_down.weight",
        "mlp.gate.weight" | "block_sparse_moe.gate.weight" => "ffn_gate_inp.weight",
        _ => return expert_role(rest),
    };
    Some(fixed.to_owned())
}

/// One expert's matrix: `ffn_gate.5.weight` and so on, as GGUF files before stacked experts had it.
fn expert_role(rest: &str) -> Option<String> {
    let rest = rest
        .strip_prefix("mlp.experts.")
        .or_else(|| rest.strip_prefix("block_sparse_moe.experts."))?;
    let (expert, matrix) = rest.split_once('.')?;
    expert.parse::<u32>().ok()?;
    let role = match matrix {
        "gate_proj.weight" | "w1.weight" => "ffn_gate",
        "up_proj.weight" | "w3.weight" => "ffn_up",
        "down_proj.weight" | "w2.weight" => "ffn_down",
        _ => return None,
    };
    Some(format!("{role}.{expert}.weight"))
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn names_translate() {
        let cases = [
            (
                "model.layers.11.self_attn.o_proj.weight",
                Some("blk.11.attn_output.weight"),
            ),
            (
                "model.layers.0.block_sparse_moe.experts.7.w2.weight",
                Some("blk.0.ffn_down.7.weight"),
            ),
            (
                "model.layers.3.mlp.experts.120.up_proj.weight",
                Some("blk.3.ffn_up.120.weight"),
            ),
            (
                "model.layers.3.mlp.gate.weight",
                Some("blk.3.ffn_gate_inp.weight"),
            ),
            ("lm_head.weight", Some("output.weight")),
            ("model.layers.3.self_attn.rotary_emb.inv_freq", None),
            ("model.layers.x.mlp.gate.weight", None),
            ("model.layers.3.mlp.experts.-1.up_proj.weight", None),
        ];
        for (name, expected) in cases {
            assert_eq!(canonical(name).as_deref(), expected, "{name}");
        }
    }
}
