//! A writer of small GGUF files for tests.

use crate::model::storage::StorageType;

/// Builds a file in memory.
pub(crate) struct Writer {
    pairs: Vec<u8>,
    pair_count: u64,
    tensors: Vec<(String, Vec<usize>, u32, Vec<u8>)>,
}

impl Writer {
    /// A file of this architecture.
    pub(crate) fn new(architecture: &str) -> Self {
        let mut writer = Self {
            pairs: Vec::new(),
            pair_count: 0,
            tensors: Vec::new(),
        };
        writer.text("general.architecture", architecture);
        writer
    }

    fn pair(&mut self, key: &str, code: u32, value: &[u8]) {
        self.pairs.extend(string(key));
        self.pairs.extend(code.to_le_bytes());
        self.pairs.extend(value);
        self.pair_count += 1;
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) {
        self.pair(key, 8, &string(value));
    }

    pub(crate) fn u32(&mut self, key: &str, value: u32) {
        self.pair(key, 4, &value.to_le_bytes());
    }

    pub(crate) fn f32(&mut self, key: &str, value: f32) {
        self.pair(key, 6, &value.to_le_bytes());
    }

    pub(crate) fn bool(&mut self, key: &str, value: bool) {
        self.pair(key, 7, &[u8::from(value)]);
    }

    pub(crate) fn texts(&mut self, key: &str, values: &[&str]) {
        let mut bytes = 8u32.to_le_bytes().to_vec();
        bytes.extend((values.len() as u64).to_le_bytes());
        values.iter().for_each(|v| bytes.extend(string(v)));
        self.pair(key, 9, &bytes);
    }

    pub(crate) fn ints(&mut self, key: &str, values: &[i32]) {
        let mut bytes = 5u32.to_le_bytes().to_vec();
        bytes.extend((values.len() as u64).to_le_bytes());
        values.iter().for_each(|v| bytes.extend(v.to_le_bytes()));
        self.pair(key, 9, &bytes);
    }

    /// A tensor of `code` with raw bytes; `shape` is outermost first.
    pub(crate) fn tensor(&mut self, name: &str, shape: &[usize], (code, data): (u32, Vec<u8>)) {
        self.tensors.push((name.into(), shape.to_vec(), code, data));
    }

    /// A tensor of f32 values.
    pub(crate) fn floats(&mut self, name: &str, shape: &[usize], values: &[f32]) {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(StorageType::F32.bytes_of(shape), Some(4 * values.len() as u64));
        self.tensor(name, shape, (0, bytes));
    }

    /// The whole file, version 3, alignment 32.
    pub(crate) fn finish(&self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(3u32.to_le_bytes());
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend(self.pair_count.to_le_bytes());
        file.extend(&self.pairs);
        let mut data: Vec<u8> = Vec::new();
        for (name, shape, code, bytes) in &self.tensors {
            data.resize(data.len().next_multiple_of(32), 0);
            file.extend(string(name));
            file.extend((shape.len() as u32).to_le_bytes());
            shape
                .iter()
                .rev()
                .for_each(|&d| file.extend((d as u64).to_le_bytes()));
            file.extend(code.to_le_bytes());
            file.extend((data.len() as u64).to_le_bytes());
            data.extend(bytes);
        }
        file.resize(file.len().next_multiple_of(32), 0);
        file.extend(data);
        file
    }
}

fn string(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

/// The metadata of a llama of two heads of 16, one layer and 64 tokens.
pub(crate) fn small_llama() -> Writer {
    let mut w = Writer::new("llama");
    for (key, value) in [
        ("block_count", 1),
        ("embedding_length", 32),
        ("feed_forward_length", 64),
        ("attention.head_count", 2),
        ("attention.head_count_kv", 1),
        ("context_length", 128),
        ("vocab_size", 64),
    ] {
        w.u32(&format!("llama.{key}"), value);
    }
    w.f32("llama.attention.layer_norm_rms_epsilon", 1e-5);
    w
}
