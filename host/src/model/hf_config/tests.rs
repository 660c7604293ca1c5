use super::*;
use serde_json::json;

fn mistral() -> Value {
    json!({
        "model_type": "mistral", "hidden_size": 4096, "num_attention_heads": 32,
        "num_key_value_heads": 8, "num_hidden_layers": 32, "intermediate_size": 14336,
        "vocab_size": 32000, "max_position_embeddings": 32768, "sliding_window": 4096,
        "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16", "eos_token_id": 2, "bos_token_id": 1
    })
}

fn with(changes: Value) -> Result<ModelConfig, HfConfigError> {
    let mut base = mistral();
    let (Value::Object(base_map), Value::Object(changes)) = (&mut base, changes) else {
        panic!("objects");
    };
    for (key, value) in changes {
        base_map.insert(key, value);
    }
    config_from_json(&base.to_string(), "test")
}

#[test]
fn mistral_with_a_window_is_limited_to_it() {
    let c = with(json!({})).expect("valid");
    assert_eq!((c.head_dim, c.kv_heads, c.context_limit()), (128, 8, 4096));
    assert_eq!((c.eos, c.bos, c.storage), (vec![2], Some(1), StorageType::Bf16));
}

#[test]
fn qwen_windows_count_only_when_switched_on() {
    let off = with(json!({"model_type": "qwen2", "use_sliding_window": false})).expect("valid");
    assert_eq!((off.sliding_window, off.qkv_bias), (None, true));
}

#[test]
fn qwen3_moe_has_its_own_expert_width() {
    let c = with(
        json!({"model_type": "qwen3_moe", "num_experts": 128, "head_dim": 128,
        "num_experts_per_tok": 8, "moe_intermediate_size": 768, "norm_topk_prob": true,
        "decoder_sparse_step": 1, "mlp_only_layers": []}),
    )
    .expect("valid");
    let e = c.experts.expect("experts");
    assert_eq!(
        (e.count, e.per_token, e.intermediate, e.normalise_gates),
        (128, 8, 768, true)
    );
    assert!(c.qk_norm);
}

#[test]
fn llama3_scaling_is_read_from_both_places() {
    let table = json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_theta": 5e5});
    let expected = RopeScaling::Llama3 {
        factor: 8.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_context: 8192,
    };
    for key in ["rope_scaling", "rope_parameters"] {
        let c = with(json!({ key: table })).expect("valid");
        assert_eq!((c.rope_scaling, c.rope_theta), (expected, 5e5), "{key}");
    }
}

#[test]
fn each_fault_is_named() {
    let cases = [
        (
            json!({"num_attention_heads": 30}),
            "`hidden` 4096 is not a multiple of `heads` 30",
        ),
        (json!({"num_attention_heads": 0}), "`heads` is 0"),
        (json!({"num_hidden_layers": 0}), "`layers` is 0"),
        (
            json!({"num_key_value_heads": 5}),
            "`heads` 32 is not a multiple of `kv_heads` 5",
        ),
        (
            json!({"vocab_size": 18_446_744_073_709_551_615u64}),
            "`vocab` is 18446744073709551615",
        ),
        (
            json!({"vocab_size": -1}),
            "`vocab_size` is -1, expected a whole number",
        ),
        (json!({"hidden_size": null}), "lacks `hidden_size`"),
        (
            json!({"model_type": "gemma3"}),
            "model_type `gemma3`; supported: llama, mistral",
        ),
        (
            json!({"rope_scaling": {"rope_type": "yarn", "factor": 4}}),
            "rope scaling `yarn`",
        ),
        (json!({"rope_scaling": {"rope_type": "linear"}}), "lacks `factor`"),
        (json!({"hidden_act": "gelu"}), "activation `gelu`"),
        (
            json!({"quantization_config": {"quant_method": "awq"}}),
            "quantised with `awq`",
        ),
        (json!({"torch_dtype": "int8"}), "dtype `int8`"),
        (json!({"sliding_window": 0}), "`sliding_window` is 0"),
    ];
    for (changes, expected) in cases {
        let text = with(changes.clone()).expect_err("must fail").to_string();
        assert!(text.contains(expected), "{changes}: {text}");
        assert!(!text.contains('\n'), "one line: {text}");
    }
    assert!(matches!(
        config_from_json("[1]", "x"),
        Err(HfConfigError::Json(_))
    ));
    assert!(matches!(config_from_json("{", "x"), Err(HfConfigError::Json(_))));
}
