//! From what the user types to a model: a preset, a GGUF file or a directory of safetensors files.

use std::fs::{File, FileType};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::config::ModelConfig;
use super::dummy::dummy_weights;
use super::gguf::{self, GgufConfigError, GgufError, Header};
use super::hf_config::{HfConfigError, config_from_json};
use super::presets::{preset, preset_names};
use super::safetensors::{SafetensorsError, open_directory};
use super::tokenizer::{Tokenizer, TokenizerError};
use super::weights::Weights;

/// Longest `config.json` accepted.
const MAX_CONFIG: u64 = 16 << 20;

/// Where the weights come from.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
    clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum LoadFormat {
    /// The files; presets, which have none, get weights from the seed.
    #[default]
    Auto,
    /// The seed, whether there are files or not.
    Dummy,
}

/// A model ready for an engine.
#[derive(Debug)]
pub struct Model {
    /// Its shape.
    pub config: ModelConfig,
    /// Its tensors.
    pub weights: Weights,
    /// Whether the weights come from the seed.
    pub dummy: bool,
    /// Where the weights come from: `gguf`, `safetensors` or `dummy`.
    pub weight_format: &'static str,
    text: TextSource,
}

#[derive(Debug)]
enum TextSource {
    None(PathBuf),
    Json(PathBuf),
    Gguf(Box<Header>),
}

/// A model that cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Neither a preset nor a path.
    #[error(
        "no model `{name}`: it is neither a preset ({presets}) nor a GGUF file nor a model directory on this machine (models are not downloaded)"
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// The presets there are.
        presets: String,
    },
    /// The system refused.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A directory without `config.json`.
    #[error("{}: no config.json; a model directory holds config.json and *.safetensors", .0.display())]
    NoConfig(PathBuf),
    /// A file that claims an absurd size for a configuration.
    #[error("{}: {bytes} bytes are too many for a configuration", path.display())]
    LongConfig {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// A bad GGUF file.
    #[error("{}: {source}", path.display())]
    Gguf {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: GgufError,
    },
    /// GGUF metadata of an unknown model.
    #[error("{}: {source}", path.display())]
    GgufConfig {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: GgufConfigError,
    },
    /// A `config.json` of an unknown model.
    #[error("{}: {source}", path.display())]
    HfConfig {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        source: HfConfigError,
    },
    /// Bad safetensors files.
    #[error(transparent)]
    Safetensors(#[from] SafetensorsError),
    /// Dummy weights for a file that has its own in a block format.
    #[error("{}: dummy weights are made for presets and model directories, not for GGUF files", .0.display())]
    DummyGguf(PathBuf),
}

/// Opens the model called `name`: the name of a preset, a GGUF file or a model directory. Reads headers only;
/// `seed` matters for dummy weights.
pub fn open(name: &str, format: LoadFormat, seed: u64) -> Result<Model, OpenError> {
    if let Some(config) = preset(name) {
        return Ok(Model::dummy(config, seed));
    }
    let path = Path::new(name);
    match file_type(path)? {
        Some(found) if found.is_dir() => open_model_directory(path, format, seed),
        Some(found) if found.is_file() => open_gguf(path, format),
        _ => Err(OpenError::Unknown {
            name: name.to_owned(),
            presets: preset_names().join(", "),
        }),
    }
}

/// What is at a path, if anything: a path that may not be looked at is an error, not an absent file.
fn file_type(path: &Path) -> Result<Option<FileType>, OpenError> {
    match path.metadata() {
        Ok(metadata) => Ok(Some(metadata.file_type())),
        Err(source) if source.kind() == io::ErrorKind::PermissionDenied => Err(OpenError::Io {
            path: path.to_owned(),
            source,
        }),
        Err(_) => Ok(None),
    }
}

impl Model {
    /// A model of this shape with weights from `seed`.
    pub fn dummy(config: ModelConfig, seed: u64) -> Self {
        let weights = dummy_weights(&config, seed);
        Self {
            text: TextSource::None(PathBuf::from(&config.name)),
            config,
            weights,
            dummy: true,
            weight_format: "dummy",
        }
    }

    /// The model's tokenizer. Takes some tenths of a second for large vocabularies.
    pub fn tokenizer(&self) -> Result<Tokenizer, TokenizerError> {
        match &self.text {
            TextSource::None(path) => Err(TokenizerError::Absent(path.clone())),
            TextSource::Json(path) => Tokenizer::from_json(path),
            TextSource::Gguf(header) => Tokenizer::from_gguf(header),
        }
    }
}

fn open_model_directory(path: &Path, format: LoadFormat, seed: u64) -> Result<Model, OpenError> {
    let file = path.join("config.json");
    if !file_type(&file)?.is_some_and(|found| found.is_file()) {
        return Err(OpenError::NoConfig(path.to_owned()));
    }
    let text = read_text(&file)?;
    let name = path.file_name().map_or("model".into(), |n| n.to_string_lossy());
    let config = config_from_json(&text, &name).map_err(|source| OpenError::HfConfig {
        path: path.to_owned(),
        source,
    })?;
    let weights = match format {
        LoadFormat::Auto => open_directory(path)?,
        LoadFormat::Dummy => dummy_weights(&config, seed),
    };
    Ok(Model {
        config,
        weights,
        dummy: format == LoadFormat::Dummy,
        weight_format: match format {
            LoadFormat::Auto => "safetensors",
            LoadFormat::Dummy => "dummy",
        },
        text: text_source(path, path),
    })
}

fn read_text(path: &Path) -> Result<String, OpenError> {
    let io = |source| OpenError::Io {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(io)?;
    let bytes = file.metadata().map_err(io)?.len();
    if bytes > MAX_CONFIG {
        return Err(OpenError::LongConfig {
            path: path.to_owned(),
            bytes,
        });
    }
    let mut text = String::new();
    file.take(MAX_CONFIG).read_to_string(&mut text).map_err(io)?;
    Ok(text)
}

/// A `tokenizer.json` in `folder`, if there is one.
fn text_source(folder: &Path, model: &Path) -> TextSource {
    let json = folder.join("tokenizer.json");
    if json.is_file() {
        TextSource::Json(json)
    } else {
        TextSource::None(model.to_owned())
    }
}

fn open_gguf(path: &Path, format: LoadFormat) -> Result<Model, OpenError> {
    if format == LoadFormat::Dummy {
        return Err(OpenError::DummyGguf(path.to_owned()));
    }
    let io = |source| OpenError::Io {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    let header = gguf::read_header(BufReader::new(&file), length).map_err(|source| OpenError::Gguf {
        path: path.to_owned(),
        source,
    })?;
    let config = gguf::config_from_gguf(&header).map_err(|source| OpenError::GgufConfig {
        path: path.to_owned(),
        source,
    })?;
    let mut weights = Weights::empty(0);
    let number = weights.add_file(path, file);
    for t in &header.tensors {
        weights.add_file_tensor(t.name.clone(), (t.storage, t.shape.clone()), (number, t.offset));
    }
    let text = match path.parent().map(|folder| text_source(folder, path)) {
        Some(json @ TextSource::Json(_)) => json,
        _ => TextSource::Gguf(Box::new(header)),
    };
    Ok(Model {
        config,
        weights,
        dummy: false,
        weight_format: "gguf",
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_model_is_said_in_one_line() {
        let dir = tempfile::tempdir().expect("temporary folder");
        let path = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
        std::fs::write(path("model.gguf"), b"GGML").expect("write");
        std::fs::create_dir(path("empty")).expect("folder");
        std::fs::create_dir(path("weightless")).expect("folder");
        let config = r#"{"model_type":"llama","hidden_size":64,"num_attention_heads":2,"num_hidden_layers":1,
            "intermediate_size":64,"vocab_size":32,"max_position_embeddings":64}"#;
        std::fs::write(path("weightless/config.json"), config).expect("write");
        for (name, expected) in [
            ("no-such-model".to_owned(), "tiny-llama, tiny-moe"),
            (path("model.gguf"), "not a GGUF file"),
            (path("empty"), "no config.json"),
            (path("weightless"), "neither model.safetensors nor"),
        ] {
            let text = open(&name, LoadFormat::Auto, 0)
                .expect_err("must fail")
                .to_string();
            assert!(text.contains(expected), "{name}: {text}");
            assert!(!text.contains('\n'), "{text}");
        }
        let dummy = open(&path("weightless"), LoadFormat::Dummy, 0).expect("dummy");
        assert!(dummy.dummy && dummy.weights.find("output.weight").is_some());
        assert!(matches!(dummy.tokenizer(), Err(TokenizerError::Absent(_))));
    }
}
