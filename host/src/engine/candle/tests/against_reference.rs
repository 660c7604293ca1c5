//! Logits of every layer family against plain loops.

use super::reference::Reference;
use super::{assert_close, engine, small};
use crate::engine::Engine;
use crate::engine::testing::quiet;
use crate::model::{Architecture, Model, ModelConfig, RopeLayout, RopeScaling};

const PROMPT: [u32; 7] = [5, 17, 3, 90, 3, 44, 61];

fn compare(config: ModelConfig) {
    let reference = Reference::new(&Model::dummy(config.clone(), 11));
    let mut engine = engine(config, None);
    let mut rec = quiet();
    engine.begin(1, 10).expect("begin");
    let mut tokens = PROMPT.to_vec();
    let mut next = engine.prefill(&[tokens.clone()], &mut rec).expect("prefill")[0];
    for _ in 0..3 {
        let expected = reference.logits(&tokens);
        assert_close(engine.logits().expect("logits"), &expected, 2e-4);
        let best = (0..expected.len()).max_by(|&a, &b| expected[a].total_cmp(&expected[b]));
        assert_eq!(Some(next as usize), best);
        tokens.push(next);
        next = engine.decode(&[next], &mut rec).expect("decode")[0];
    }
    assert_close(engine.logits().expect("logits"), &reference.logits(&tokens), 2e-4);
}

#[test]
fn every_family_agrees() {
    for architecture in Architecture::ALL {
        compare(small(architecture));
    }
}

#[test]
fn gguf_layout_linear_scaling_and_tied_embeddings_agree() {
    compare(ModelConfig {
        rope_layout: RopeLayout::Interleaved,
        rope_scaling: RopeScaling::Linear { factor: 4.0 },
        tie_embeddings: true,
        ..small(Architecture::Llama)
    });
}

#[test]
fn one_kv_head_for_all_and_one_for_each_agree() {
    for kv_heads in [1, 4] {
        compare(ModelConfig {
            kv_heads,
            ..small(Architecture::Qwen3)
        });
    }
}
