use proptest::prelude::*;

use super::testing::{Writer, small_llama};
use super::{GgufConfigError, GgufError, Header, Value, config_from_gguf, read_header};
use crate::model::config::{Architecture, RopeLayout};
use crate::model::storage::StorageType;

fn read(bytes: &[u8]) -> Result<Header, GgufError> {
    read_header(bytes, bytes.len() as u64)
}

fn fault(bytes: &[u8]) -> String {
    let text = read(bytes).expect_err("must fail").to_string();
    assert!(!text.contains('\n'), "one line: {text}");
    text
}

/// A valid file with one matrix of Q4_1 and one vector.
fn valid() -> Vec<u8> {
    let mut w = small_llama();
    w.texts("tokenizer.ggml.tokens", &["a", "b", "ab"]);
    w.bool("tokenizer.ggml.add_bos_token", false);
    w.tensor("token_embd.weight", &[64, 32], (3, vec![0; 64 * 20]));
    w.floats("output_norm.weight", &[32], &[1.0; 32]);
    w.finish()
}

#[test]
fn a_valid_file_is_read_in_full() {
    let bytes = valid();
    let header = read(&bytes).expect("valid");
    assert_eq!(header.version, 3);
    assert_eq!(header.get("llama.block_count"), Some(&Value::Uint(1)));
    let tokens = header.get("tokenizer.ggml.tokens").and_then(Value::as_strings);
    assert_eq!(tokens.map(<[String]>::len), Some(3));
    let [embedding, norm] = &header.tensors[..] else {
        panic!("two tensors");
    };
    assert_eq!(
        (embedding.storage, &embedding.shape[..]),
        (StorageType::Q4_1, &[64, 32][..])
    );
    assert_eq!((embedding.bytes, norm.offset), (1280, embedding.offset + 1280));
    assert_eq!(norm.offset + norm.bytes, bytes.len() as u64);
    let config = config_from_gguf(&header).expect("a llama");
    assert_eq!((config.head_dim, config.kv_heads, config.vocab), (16, 1, 64));
    assert_eq!(
        (config.architecture, config.rope_layout),
        (Architecture::Llama, RopeLayout::Interleaved)
    );
    assert!(config.tie_embeddings);
}

#[test]
fn preambles_of_other_files_are_named() {
    let replaced = |at: usize, with: &[u8]| {
        let mut bytes = valid();
        bytes[at..at + with.len()].copy_from_slice(with);
        fault(&bytes)
    };
    assert!(replaced(0, b"\x7fELF").contains("not a GGUF file"));
    assert!(replaced(0, b"tjgg").contains("GGJT file from before GGUF"));
    assert!(replaced(0, b"FUGG").contains("big-endian"));
    assert!(replaced(4, &3u32.to_be_bytes()).contains("big-endian"));
    assert!(replaced(4, &1u32.to_le_bytes()).contains("version 1; versions 2 and 3"));
    assert!(replaced(4, &9u32.to_le_bytes()).contains("version 9"));
    assert!(fault(b"").contains("the magic at byte 0 needs 4 bytes, 0 are left"));
}

#[test]
fn lying_counts_fail_without_taking_memory() {
    let count_at = |at: usize| {
        let mut bytes = valid();
        bytes[at..at + 8].copy_from_slice(&(u64::MAX / 2).to_le_bytes());
        fault(&bytes)
    };
    assert!(count_at(8).contains("the tensor directory"), "tensor count");
    assert!(count_at(16).contains("the metadata at byte 24"), "metadata count");
    assert!(count_at(24).contains("a metadata key"), "key length");
    // The array's length follows its key and two type codes.
    let bytes = valid();
    let key = b"tokenizer.ggml.tokens";
    let at = bytes.windows(key.len()).position(|w| w == key).expect("key") + key.len() + 8;
    assert!(count_at(at).contains("an array"), "array length");
    assert!(count_at(at + 8).contains("a text of an array"), "text length");
}

#[test]
fn truncation_is_noticed_at_every_byte() {
    let bytes = valid();
    for length in 0..bytes.len() {
        assert!(read(&bytes[..length]).is_err(), "cut to {length}");
    }
    let cut = fault(&bytes[..bytes.len() - 1]);
    assert!(
        cut.contains("output_norm.weight") && cut.contains("truncated"),
        "{cut}"
    );
}

#[test]
fn tensors_that_do_not_fit_are_named() {
    let with = |name: &str, shape: &[usize], code: u32, data: usize| {
        let mut w = small_llama();
        w.tensor(name, shape, (code, vec![0; data]));
        w.finish()
    };
    assert!(fault(&with("t", &[2, 48], 3, 80)).contains("does not fit q4_1 blocks of 32"));
    assert!(fault(&with("t", &[4], 16, 16)).contains("ggml type 16"));
    assert!(fault(&with("t", &[1, 1, 1, 1, 1], 0, 4)).contains("5 dimensions"));
    assert!(fault(&with("t", &[0], 0, 4)).contains("a dimension of 0"));
    assert!(fault(&with("t", &[usize::MAX, 8], 0, 4)).contains("does not fit"));
    assert!(fault(&with("", &[1], 0, 4)).contains("a tensor name of 0 bytes"));
    let mut twice = small_llama();
    twice.floats("t", &[1], &[0.0]);
    twice.floats("t", &[1], &[0.0]);
    assert!(fault(&twice.finish()).contains("appears twice"));
    let mut w = small_llama();
    w.u32("general.alignment", 24);
    assert!(fault(&w.finish()).contains("general.alignment"));
}

#[test]
fn models_that_cannot_be_computed_are_named() {
    let refuse = |change: &dyn Fn(&mut Writer)| {
        let mut w = small_llama();
        change(&mut w);
        config_from_gguf(&read(&w.finish()).expect("valid file")).expect_err("must fail")
    };
    let text = |change: &dyn Fn(&mut Writer)| refuse(change).to_string();
    assert!(text(&|w| *w = Writer::new("gemma3")).contains("architecture `gemma3`; supported"));
    assert!(matches!(
        refuse(&|w| *w = Writer::new("llama")),
        GgufConfigError::Missing(_)
    ));
    assert!(text(&|w| w.text("llama.rope.scaling.type", "yarn")).contains("rope scaling `yarn`"));
    assert!(text(&|w| w.u32("split.count", 3)).contains("other 2 files"));
    assert!(text(&|w| w.u32("llama.rope.dimension_count", 8)).contains("8 of 16"));
    assert!(text(&|w| w.u32("llama.attention.key_length", 15)).contains("not a multiple"));
    assert!(text(&|w| w.u32("llama.expert_count", 4)).contains("expert_used_count"));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(read(&bytes).is_err());
    }

    #[test]
    fn bytes_behind_a_valid_preamble_never_panic(
        tail in proptest::collection::vec(any::<u8>(), 0..400),
        tensors in 0u64..4,
        pairs in 0u64..4,
    ) {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend(tensors.to_le_bytes());
        bytes.extend(pairs.to_le_bytes());
        bytes.extend(tail);
        check_invariants(&bytes)?;
    }

    #[test]
    fn mutated_files_never_panic(changes in proptest::collection::vec((0usize..2000, any::<u8>()), 1..6)) {
        let mut bytes = valid();
        let length = bytes.len();
        for (at, value) in changes {
            bytes[at % length] = value;
        }
        check_invariants(&bytes)?;
    }
}

/// Whatever is accepted lies inside the file and describes a valid shape or none.
fn check_invariants(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(header) = read(bytes) {
        for t in &header.tensors {
            prop_assert!(t.offset + t.bytes <= bytes.len() as u64);
        }
        if let Ok(config) = config_from_gguf(&header) {
            prop_assert!(config.validate().is_ok());
        }
    }
    Ok(())
}
