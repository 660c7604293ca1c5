//! The readers of foreign bytes, one function each. A reader may refuse its input; it may not panic, hang, or take
//! memory that the input's size does not justify.

#![expect(
    dead_code,
    reason = "the modules are those of the host, of which only the readers are called"
)]

use std::fs;
use std::path::Path;

#[path = "../../../host/src/clock.rs"]
pub mod clock;
#[path = "../../../host/src/events/mod.rs"]
pub mod events;
#[path = "../../../host/src/model/mod.rs"]
pub mod model;
#[path = "../../../host/src/plan/mod.rs"]
pub mod plan;
pub mod plugin;
#[path = "../../../host/src/stats/mod.rs"]
pub mod stats;

use model::gguf;
use plugin::Limits;

/// GGUF: header, tensor directory, the model's shape.
pub fn gguf(bytes: &[u8]) {
    if let Ok(header) = gguf::read_header(bytes, bytes.len() as u64) {
        for tensor in &header.tensors {
            let end = tensor.offset.checked_add(tensor.bytes);
            assert!(
                end.is_some_and(|end| end <= bytes.len() as u64),
                "{tensor:?} is outside the file"
            );
        }
        let _ = gguf::config_from_gguf(&header);
    }
}

/// A GGUF file with its vocabulary.
pub fn gguf_tokenizer(bytes: &[u8]) {
    in_a_folder(|folder| {
        let path = folder.join("model.gguf");
        write(&path, bytes);
        open_model(&path);
    });
}

/// A model directory whose weights are these bytes.
pub fn safetensors(bytes: &[u8]) {
    in_a_folder(|folder| {
        write(&folder.join("config.json"), CONFIG.as_bytes());
        write(&folder.join("model.safetensors"), bytes);
        open_model(folder);
    });
}

/// The index of a model in shards.
pub fn safetensors_index(bytes: &[u8]) {
    in_a_folder(|folder| {
        write(&folder.join("config.json"), CONFIG.as_bytes());
        write(&folder.join("model.safetensors.index.json"), bytes);
        open_model(folder);
    });
}

/// `config.json`.
pub fn config_json(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = model::config_from_json(text, "model");
    }
}

/// `tokenizer.json`.
pub fn tokenizer_json(bytes: &[u8]) {
    in_a_folder(|folder| {
        let path = folder.join("tokenizer.json");
        write(&path, bytes);
        let _ = model::Tokenizer::from_json(&path);
    });
}

/// A plan file.
pub fn plan_file(bytes: &[u8]) {
    in_a_folder(|folder| {
        let path = folder.join("plan.toml");
        write(&path, bytes);
        if let Err(error) = plan::read(&path).and_then(|file| plan::resolve(file, toml::Table::new())) {
            let _ = error.to_string();
        }
    });
}

/// A recording, to the last row.
pub fn recording(bytes: &[u8]) {
    struct Nobody;
    impl events::EventSink for Nobody {
        fn accept(&mut self, _: &events::Delivery, _: &events::SymbolTable) -> Result<(), events::SinkError> {
            Ok(())
        }
    }
    in_a_folder(|folder| {
        let path = folder.join("r.lmrec");
        write(&path, bytes);
        if let Ok(recording) = events::Recording::open(&path) {
            let _ = recording.replay(&mut Nobody);
        }
    });
}

/// A plugin's manifest.
pub fn manifest(bytes: &[u8]) {
    if let Ok(manifest) = plugin::identity::read(bytes, &Limits::default()) {
        let _ = plugin::identity::check_interfaces(&manifest);
    }
}

/// A native plugin before it is loaded.
pub fn elf(bytes: &[u8]) {
    let _ = plugin::dylib::elf::inspect(bytes, &Limits::default());
}

/// A component before it is compiled.
pub fn component(bytes: &[u8]) {
    if let Ok(facts) = plugin::wasm::binary::inspect(bytes, &Limits::default()) {
        let _ = plugin::wasm::binary::check(bytes, &facts.imports, &facts.manifest);
    }
}

const CONFIG: &str = r#"{"model_type":"llama","hidden_size":64,"num_attention_heads":2,"num_hidden_layers":1,
    "intermediate_size":64,"vocab_size":32,"max_position_embeddings":64}"#;

/// Opens a model, and reads each tensor that was accepted: it must be there.
fn open_model(path: &Path) {
    let name = path.to_str().expect("a temporary folder's name is text");
    if let Ok(model) = model::open(name, model::LoadFormat::Auto, 0) {
        for tensor in model.weights.iter() {
            assert!(
                model.weights.read(tensor).is_ok(),
                "{} was accepted and cannot be read",
                tensor.name
            );
        }
        let _ = model.tokenizer();
    }
}

fn in_a_folder(work: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    work(folder.expect("a temporary folder").path());
}

fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("a writable folder");
}
