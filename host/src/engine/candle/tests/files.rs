//! Models from files: the same weights must give the same logits whatever they come in.

use half::f16;
use tempfile::TempDir;

use super::{assert_close, small};
use crate::engine::Engine;
use crate::engine::candle::{CandleEngine, LoadOptions};
use crate::engine::testing::quiet;
use crate::model::gguf::testing::Writer;
use crate::model::{Architecture, LoadFormat, Model, ModelConfig, RopeLayout, TensorInfo, open};
use crate::stop::Stop;

const PROMPT: [u32; 6] = [4, 81, 3, 3, 60, 22];

/// A llama with the pairing of rotary elements that GGUF files have.
fn llama() -> ModelConfig {
    ModelConfig {
        rope_layout: RopeLayout::Interleaved,
        ..small(Architecture::Llama)
    }
}

fn logits(model: &Model) -> Vec<f32> {
    let options = LoadOptions {
        fp8: None,
        run: (1, 8),
        threads: None,
        stop: Stop::default(),
    };
    let mut engine = CandleEngine::load(model, options).expect("loads");
    engine.begin(1, 8).expect("begin");
    engine.prefill(&[PROMPT.to_vec()], &mut quiet()).expect("prefill");
    engine.logits().expect("logits").to_vec()
}

fn values(model: &Model, info: &TensorInfo) -> Vec<f32> {
    let bytes = model.weights.read(info).expect("seeded");
    bytes
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes(b.try_into().expect("four")))
        .collect()
}

fn metadata(config: &ModelConfig) -> Writer {
    let mut w = Writer::new("llama");
    for (key, value) in [
        ("block_count", config.layers),
        ("embedding_length", config.hidden),
        ("feed_forward_length", config.intermediate),
        ("attention.head_count", config.heads),
        ("attention.head_count_kv", config.kv_heads),
        ("context_length", config.max_context),
    ] {
        w.u32(&format!("llama.{key}"), value as u32);
    }
    w.f32("llama.attention.layer_norm_rms_epsilon", config.rms_eps);
    w
}

/// Writes the tensors of a dummy model, each through `tensor`, and opens the file.
fn gguf(
    mut w: Writer,
    model: &Model,
    mut tensor: impl FnMut(&mut Writer, &TensorInfo, &[f32]),
) -> (TempDir, Model) {
    for info in model.weights.iter() {
        tensor(&mut w, info, &values(model, info));
    }
    let dir = tempfile::tempdir().expect("temporary folder");
    let path = dir.path().join("model.gguf");
    std::fs::write(&path, w.finish()).expect("write");
    let model = open(&path.to_string_lossy(), LoadFormat::Auto, 0).expect("opens");
    (dir, model)
}

fn plain(w: &mut Writer, info: &TensorInfo, values: &[f32]) {
    w.floats(&info.name, &info.shape, values);
}

#[test]
fn a_gguf_file_of_floats_gives_the_same_logits() {
    let dummy = Model::dummy(llama(), 3);
    let (_dir, file) = gguf(metadata(&dummy.config), &dummy, plain);
    assert_eq!(logits(&file), logits(&dummy));
}

#[test]
fn equal_experts_in_a_stack_give_the_dense_logits() {
    let dense = Model::dummy(llama(), 3);
    let mut w = metadata(&dense.config);
    w.u32("llama.expert_count", 3);
    w.u32("llama.expert_used_count", 2);
    let router: Vec<f32> = (0..3 * 64).map(|i| (i * 37 % 29) as f32 / 29.0 - 0.5).collect();
    let (_dir, file) = gguf(w, &dense, |w, info, values| {
        let Some((layer, role)) = ["gate", "up", "down"].iter().find_map(|role| {
            let layer = info.name.strip_suffix(&format!(".ffn_{role}.weight"))?;
            Some((layer, role))
        }) else {
            return plain(w, info, values);
        };
        let shape = [&[3], &info.shape[..]].concat();
        w.floats(
            &format!("{layer}.ffn_{role}_exps.weight"),
            &shape,
            &values.repeat(3),
        );
        if *role == "gate" {
            w.floats(&format!("{layer}.ffn_gate_inp.weight"), &[3, 64], &router);
        }
    });
    assert_eq!(file.config.architecture, Architecture::Mixtral);
    assert_close(&logits(&file), &logits(&dense), 1e-5);
}

/// Bytes of a block format and the values they stand for.
type Encoded = (Vec<u8>, Vec<f32>);

/// Codes from 0 to 15 of 16 pairs in a byte each, as ggml packs them.
fn nibbles(codes: &[u8]) -> Vec<u8> {
    (0..16).map(|i| codes[i] | codes[i + 16] << 4).collect()
}

fn q4_0(x: &[f32]) -> Encoded {
    let peak = x
        .iter()
        .copied()
        .max_by(|a, b| a.abs().total_cmp(&b.abs()))
        .expect("values");
    let scale = f16::from_f32(peak / -8.0);
    let codes: Vec<u8> = x
        .iter()
        .map(|v| (v / scale.to_f32() + 8.5).clamp(0.0, 15.0) as u8)
        .collect();
    let kept = codes
        .iter()
        .map(|c| (f32::from(*c) - 8.0) * scale.to_f32())
        .collect();
    ([&scale.to_le_bytes()[..], &nibbles(&codes)].concat(), kept)
}

fn q4_1(x: &[f32]) -> Encoded {
    let low = x.iter().copied().fold(f32::INFINITY, f32::min);
    let high = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let (scale, low) = (f16::from_f32((high - low) / 15.0), f16::from_f32(low));
    let code = |v: &f32| ((v - low.to_f32()) / scale.to_f32() + 0.5).clamp(0.0, 15.0) as u8;
    let codes: Vec<u8> = x.iter().map(code).collect();
    let kept = codes
        .iter()
        .map(|c| f32::from(*c) * scale.to_f32() + low.to_f32())
        .collect();
    (
        [&scale.to_le_bytes()[..], &low.to_le_bytes(), &nibbles(&codes)].concat(),
        kept,
    )
}

fn q8_0(x: &[f32]) -> Encoded {
    let scale = f16::from_f32(x.iter().fold(0.0f32, |m, v| m.max(v.abs())) / 127.0);
    let codes: Vec<i8> = x.iter().map(|v| (v / scale.to_f32()).round() as i8).collect();
    let kept = codes.iter().map(|c| f32::from(*c) * scale.to_f32()).collect();
    let bytes = codes.iter().map(|c| c.cast_unsigned());
    (scale.to_le_bytes().into_iter().chain(bytes).collect(), kept)
}

#[test]
fn block_formats_give_the_logits_of_the_values_they_hold() {
    let dummy = Model::dummy(llama(), 3);
    for (code, encode) in [(2u32, q4_0 as fn(&[f32]) -> Encoded), (3, q4_1), (8, q8_0)] {
        let blocks = |values: &[f32]| -> Encoded {
            let parts: Vec<Encoded> = values.chunks_exact(32).map(encode).collect();
            let bytes = parts.iter().flat_map(|p| p.0.clone()).collect();
            (bytes, parts.into_iter().flat_map(|p| p.1).collect())
        };
        let (_dir, packed) = gguf(metadata(&dummy.config), &dummy, |w, info, values| {
            match info.shape.len() {
                1 => plain(w, info, values),
                _ => w.tensor(&info.name, &info.shape, (code, blocks(values).0)),
            }
        });
        let (_dir, widened) = gguf(metadata(&dummy.config), &dummy, |w, info, values| {
            match info.shape.len() {
                1 => plain(w, info, values),
                _ => plain(w, info, &blocks(values).1),
            }
        });
        // The products round activations to eight bits, about 0.4 % each; layers add up.
        assert_close(&logits(&packed), &logits(&widened), 0.05);
    }
}

/// Hugging Face's names for the canonical ones of a dense model.
fn hf_name(canonical: &str) -> String {
    let Some((layer, role)) = canonical
        .strip_prefix("blk.")
        .and_then(|rest| rest.split_once('.'))
    else {
        return match canonical {
            "token_embd.weight" => "model.embed_tokens.weight".into(),
            "output_norm.weight" => "model.norm.weight".into(),
            "output.weight" => "lm_head.weight".into(),
            other => panic!("{other}"),
        };
    };
    let role = role
        .replace("attn_norm", "input_layernorm")
        .replace("ffn_norm", "post_attention_layernorm")
        .replace("attn_output", "self_attn.o_proj")
        .replace("attn_q", "self_attn.q_proj")
        .replace("attn_k", "self_attn.k_proj")
        .replace("attn_v", "self_attn.v_proj")
        .replace("ffn_gate", "mlp.gate_proj")
        .replace("ffn_up", "mlp.up_proj")
        .replace("ffn_down", "mlp.down_proj");
    format!("model.layers.{layer}.{role}")
}

#[test]
fn a_safetensors_directory_gives_the_same_logits() {
    let dummy = Model::dummy(small(Architecture::Qwen2), 3);
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for info in dummy.weights.iter() {
        let bytes = dummy.weights.read(info).expect("seeded");
        let offsets = [data.len(), data.len() + bytes.len()];
        let entry = serde_json::json!({"dtype": "F32", "shape": info.shape, "data_offsets": offsets});
        header.insert(hf_name(&info.name), entry);
        data.extend(bytes);
    }
    let header = serde_json::to_vec(&header).expect("json");
    let file = [&(header.len() as u64).to_le_bytes()[..], &header, &data].concat();
    let c = &dummy.config;
    let config = serde_json::json!({"model_type": "qwen2", "hidden_size": c.hidden, "num_hidden_layers": c.layers,
        "num_attention_heads": c.heads, "num_key_value_heads": c.kv_heads, "intermediate_size": c.intermediate,
        "vocab_size": c.vocab, "max_position_embeddings": c.max_context, "rope_theta": c.rope_theta,
        "rms_norm_eps": c.rms_eps});
    let dir = tempfile::tempdir().expect("temporary folder");
    std::fs::write(dir.path().join("model.safetensors"), file).expect("write");
    std::fs::write(dir.path().join("config.json"), config.to_string()).expect("write");
    let model = open(&dir.path().to_string_lossy(), LoadFormat::Auto, 0).expect("opens");
    assert_eq!(logits(&model), logits(&dummy));
}

#[test]
fn a_missing_or_misshapen_tensor_is_named() {
    let dummy = Model::dummy(llama(), 3);
    let load = |model: &Model| {
        let options = LoadOptions {
            fp8: None,
            run: (1, 8),
            threads: None,
            stop: Stop::default(),
        };
        CandleEngine::load(model, options)
            .err()
            .expect("must fail")
            .to_string()
    };
    let (_dir, missing) = gguf(metadata(&dummy.config), &dummy, |w, info, values| {
        if info.name != "blk.1.attn_k.weight" {
            plain(w, info, values);
        }
    });
    assert!(
        load(&missing).contains("no tensor `blk.1.attn_k.weight`"),
        "{}",
        load(&missing)
    );
    let (_dir, misshapen) = gguf(metadata(&dummy.config), &dummy, |w, info, values| {
        let shape: Vec<usize> = info.shape.iter().rev().copied().collect();
        w.floats(
            &info.name,
            if info.name == "blk.0.ffn_up.weight" {
                &shape
            } else {
                &info.shape
            },
            values,
        );
    });
    assert!(
        load(&misshapen).contains("shape [64, 96], the configuration needs [96, 64]"),
        "{}",
        load(&misshapen)
    );
}
