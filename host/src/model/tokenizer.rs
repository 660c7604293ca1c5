//! Text to tokens and back, from a `tokenizer.json` or from GGUF metadata.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use thiserror::Error;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::SplitDelimiterBehavior;
use tokenizers::{AddedToken, PreTokenizerWrapper};

use super::gguf::{Header, Value};

/// Longest `tokenizer.json` accepted; the largest published ones have some 35 MB.
const MAX_JSON: u64 = 256 << 20;

/// Splits of the words before byte pairs are merged; the same expressions as llama.cpp's for these names.
const GPT2_WORDS: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)";
const LLAMA3_WORDS: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2_WORDS: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const PUNCTUATION: &str = r"[\p{P}\$\+<=>\^~\|]+";

/// Token types of GGUF that are matched as whole texts: control and user defined.
const WHOLE_TEXT_TYPES: [i64; 2] = [3, 4];

/// A tokenizer that cannot be built or used.
#[derive(Debug, Error)]
pub enum TokenizerError {
    /// The model has none.
    #[error("{} has no tokenizer (no tokenizer.json, no tokenizer.ggml.* metadata); pass token lengths instead of text", .0.display())]
    Absent(PathBuf),
    /// A `tokenizer.json` that does not load.
    #[error("cannot use {}: {what}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// GGUF metadata that is missing or of the wrong type.
    #[error("GGUF tokenizer: `{0}` is missing or of the wrong type")]
    Metadata(&'static str),
    /// A kind of tokenizer without an implementation.
    #[error(
        "GGUF tokenizer model `{0}`; supported: gpt2 (byte-pair encoding); a tokenizer.json beside the file is used instead"
    )]
    Model(String),
    /// A word splitter without an implementation.
    #[error(
        "GGUF pre-tokenizer `{0}`; supported: default, gpt-2, smollm, llama-bpe, qwen2; a tokenizer.json beside the file is used instead"
    )]
    PreTokenizer(String),
    /// A vocabulary or merge list that makes no sense.
    #[error("GGUF tokenizer: {0}")]
    Build(String),
    /// Text that cannot be encoded or ids that cannot be decoded.
    #[error("tokenizer: {0}")]
    Use(String),
}

/// Text to tokens and back.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    first: Option<u32>,
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tokenizer({} tokens)", self.inner.get_vocab_size(true))
    }
}

impl Tokenizer {
    /// Loads a `tokenizer.json`.
    pub fn from_json(path: &Path) -> Result<Self, TokenizerError> {
        let fault = |what: String| TokenizerError::Json {
            path: path.to_owned(),
            what: one_line(&what),
        };
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(|e| fault(e.to_string()))?;
        file.take(MAX_JSON + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| fault(e.to_string()))?;
        if bytes.len() as u64 > MAX_JSON {
            return Err(fault(format!("it has more than {MAX_JSON} bytes")));
        }
        // tokenizers 0.23 panics where a decoder's description is not JSON.
        serde_json::from_slice::<serde_json::Value>(&bytes).map_err(|e| fault(e.to_string()))?;
        let inner = tokenizers::Tokenizer::from_bytes(&bytes).map_err(|e| fault(e.to_string()))?;
        Ok(Self { inner, first: None })
    }

    /// Builds the tokenizer that GGUF metadata describes.
    pub fn from_gguf(header: &Header) -> Result<Self, TokenizerError> {
        let text = |key: &'static str| header.get(key).and_then(Value::as_str);
        let model = text("tokenizer.ggml.model").ok_or(TokenizerError::Metadata("tokenizer.ggml.model"))?;
        if model != "gpt2" {
            return Err(TokenizerError::Model(model.to_owned()));
        }
        let pre = text("tokenizer.ggml.pre").unwrap_or("default");
        let splitter = Splitter::named(pre)?;
        let tokens = strings(header, "tokenizer.ggml.tokens")?;
        let bpe = byte_pairs(tokens, strings(header, "tokenizer.ggml.merges")?, &splitter)?;
        let mut inner = tokenizers::Tokenizer::new(bpe);
        inner.with_pre_tokenizer(Some(splitter.pre_tokenizer()?));
        inner.with_decoder(Some(ByteLevel::new(false, true, true)));
        inner
            .add_special_tokens(whole_texts(header, tokens))
            .map_err(|e| TokenizerError::Build(one_line(&e.to_string())))?;
        Ok(Self {
            inner,
            first: first_token(header, &splitter),
        })
    }

    /// The tokens of `text`, with the token that starts a sequence where the model wants one.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let encoding = self
            .inner
            .encode(text, true)
            .map_err(|e| TokenizerError::Use(one_line(&e.to_string())))?;
        Ok(self
            .first
            .into_iter()
            .chain(encoding.get_ids().iter().copied())
            .collect())
    }

    /// The text of these tokens, special ones left out.
    pub fn decode(&self, tokens: &[u32]) -> Result<String, TokenizerError> {
        self.inner
            .decode(tokens, true)
            .map_err(|e| TokenizerError::Use(one_line(&e.to_string())))
    }

    /// Number of tokens, special ones included.
    pub fn vocabulary(&self) -> usize {
        self.inner.get_vocab_size(true)
    }
}

/// How text is cut into words, by llama.cpp's name for it.
struct Splitter {
    expressions: &'static [&'static str],
    /// Words that are tokens as a whole skip merging.
    ignore_merges: bool,
    /// Whether a sequence starts with a token unless the file says otherwise.
    adds_first: bool,
}

impl Splitter {
    fn named(name: &str) -> Result<Self, TokenizerError> {
        let plain = |expressions| Self {
            expressions,
            ignore_merges: false,
            adds_first: false,
        };
        Ok(match name {
            "default" => plain(&[PUNCTUATION, GPT2_WORDS, r"\p{N}+", r"[0-9][0-9][0-9]"]),
            "gpt-2" => plain(&[GPT2_WORDS]),
            "smollm" => plain(&[r"\p{N}", GPT2_WORDS]),
            "qwen2" => plain(&[QWEN2_WORDS]),
            "llama-bpe" | "llama3" | "llama-v3" => Self {
                expressions: &[LLAMA3_WORDS],
                ignore_merges: true,
                adds_first: true,
            },
            other => return Err(TokenizerError::PreTokenizer(other.to_owned())),
        })
    }

    fn pre_tokenizer(&self) -> Result<PreTokenizerWrapper, TokenizerError> {
        let mut steps: Vec<PreTokenizerWrapper> = Vec::new();
        for expression in self.expressions {
            let pattern = SplitPattern::Regex((*expression).to_owned());
            let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false)
                .map_err(|e| TokenizerError::Build(one_line(&e.to_string())))?;
            steps.push(split.into());
        }
        steps.push(ByteLevel::new(false, false, false).into());
        Ok(Sequence::new(steps).into())
    }
}

fn strings<'a>(header: &'a Header, key: &'static str) -> Result<&'a [String], TokenizerError> {
    header
        .get(key)
        .and_then(Value::as_strings)
        .ok_or(TokenizerError::Metadata(key))
}

fn byte_pairs(tokens: &[String], merges: &[String], splitter: &Splitter) -> Result<BPE, TokenizerError> {
    let vocabulary = tokens
        .iter()
        .zip(0u32..)
        .map(|(t, id)| (t.clone(), id))
        .collect::<Vocab>();
    let pairs = merges
        .iter()
        .map(|m| match m.split_once(' ') {
            Some((a, b)) => Ok((a.to_owned(), b.to_owned())),
            None => Err(TokenizerError::Build(format!(
                "merge `{}` is not a pair",
                one_line(m)
            ))),
        })
        .collect::<Result<Vec<_>, _>>()?;
    BPE::builder()
        .vocab_and_merges(vocabulary, pairs)
        .ignore_merges(splitter.ignore_merges)
        .build()
        .map_err(|e| TokenizerError::Build(one_line(&e.to_string())))
}

fn whole_texts(header: &Header, tokens: &[String]) -> Vec<AddedToken> {
    let types = header
        .get("tokenizer.ggml.token_type")
        .and_then(Value::as_ints)
        .unwrap_or(&[]);
    tokens
        .iter()
        .zip(types)
        .filter(|(_, kind)| WHOLE_TEXT_TYPES.contains(kind))
        .map(|(text, _)| AddedToken::from(text.clone(), true))
        .collect()
}

fn first_token(header: &Header, splitter: &Splitter) -> Option<u32> {
    let wanted = header
        .get("tokenizer.ggml.add_bos_token")
        .and_then(Value::as_bool)
        .unwrap_or(splitter.adds_first);
    let id = header.get("tokenizer.ggml.bos_token_id")?.as_u64()?;
    wanted.then(|| u32::try_from(id).ok())?
}

/// Keeps messages of other crates to one line of bearable length.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(200)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::gguf::read_header;
    use crate::model::gguf::testing::Writer;

    /// Bytes of digits, letters and the space (`Ġ`), two merges and a control token.
    fn writer(pre: &str) -> Writer {
        let mut w = Writer::new("llama");
        w.text("tokenizer.ggml.model", "gpt2");
        w.text("tokenizer.ggml.pre", pre);
        w.texts(
            "tokenizer.ggml.tokens",
            &["<|end|>", "a", "b", "1", "2", "Ġ", "ab", "Ġab", "12"],
        );
        w.texts("tokenizer.ggml.merges", &["a b", "Ġ ab", "1 2"]);
        w.ints("tokenizer.ggml.token_type", &[3, 1, 1, 1, 1, 1, 1, 1, 1]);
        w
    }

    fn built(w: &Writer) -> Result<Tokenizer, TokenizerError> {
        let bytes = w.finish();
        Tokenizer::from_gguf(&read_header(&bytes[..], bytes.len() as u64).expect("valid file"))
    }

    #[test]
    fn a_damaged_tokenizer_json_is_an_error() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("tokenizer.json");
        let whole = r#"{"version":"1.0","added_tokens":[],"normalizer":null,"pre_tokenizer":null,
            "post_processor":null,"decoder":{"type":"Fuse"},"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}"#;
        let read = |text: &str| {
            std::fs::write(&path, text).expect("a writable folder");
            Tokenizer::from_json(&path).map(|tokenizer| tokenizer.vocabulary())
        };
        assert_eq!(read(whole).expect("a tokenizer"), 1);
        let faults = [
            whole.replace("\"Fuse\"", "\"Fuse"),
            whole[..100].to_owned(),
            "[".repeat(1000),
        ];
        for text in faults {
            let error = read(&text).expect_err("damaged").to_string();
            assert!(
                error.contains("tokenizer.json") && !error.contains('\n'),
                "{error}"
            );
        }
    }

    #[test]
    fn digits_split_as_the_pre_tokenizer_says_and_special_texts_stay_whole() {
        let smollm = built(&writer("smollm")).expect("supported");
        // Each digit is a word of its own, so "12" is never merged; GPT-2 keeps digits together.
        assert_eq!(smollm.encode("ab ab12<|end|>").expect("encodes"), [6, 7, 3, 4, 0]);
        let gpt2 = built(&writer("gpt-2")).expect("supported");
        assert_eq!(gpt2.encode("ab ab12<|end|>").expect("encodes"), [6, 7, 8, 0]);
        assert_eq!(
            gpt2.decode(&[6, 7, 8, 0]).expect("decodes"),
            "ab ab12",
            "control tokens have no text"
        );
        assert_eq!(gpt2.vocabulary(), 9);
    }

    #[test]
    fn the_first_token_is_added_where_the_file_or_the_family_says_so() {
        let first = |pre: &str, flag: Option<bool>| {
            let mut w = writer(pre);
            w.u32("tokenizer.ggml.bos_token_id", 0);
            flag.into_iter()
                .for_each(|f| w.bool("tokenizer.ggml.add_bos_token", f));
            built(&w).expect("supported").encode("a").expect("encodes")
        };
        assert_eq!(first("llama-bpe", None), [0, 1]);
        assert_eq!(first("llama-bpe", Some(false)), [1]);
        assert_eq!(first("qwen2", None), [1]);
        assert_eq!(first("default", Some(true)), [0, 1]);
    }

    #[test]
    fn what_cannot_be_built_is_named() {
        let text = |w: &Writer| built(w).expect_err("must fail").to_string();
        assert!(text(&writer("tekken")).contains("pre-tokenizer `tekken`; supported: default"));
        let mut spm = Writer::new("llama");
        spm.text("tokenizer.ggml.model", "llama");
        assert!(text(&spm).contains("tokenizer model `llama`; supported: gpt2"));
        let mut bare = Writer::new("llama");
        bare.text("tokenizer.ggml.model", "gpt2");
        assert!(text(&bare).contains("`tokenizer.ggml.tokens` is missing"));
        let mut odd = Writer::new("llama");
        odd.text("tokenizer.ggml.model", "gpt2");
        odd.texts("tokenizer.ggml.tokens", &["a"]);
        odd.texts("tokenizer.ggml.merges", &["ab"]);
        assert!(text(&odd).contains("merge `ab` is not a pair"));
        let dir = tempfile::tempdir().expect("temporary folder");
        let path = dir.path().join("tokenizer.json");
        std::fs::write(&path, "{").expect("write");
        assert!(
            Tokenizer::from_json(&path)
                .expect_err("must fail")
                .to_string()
                .contains("tokenizer.json")
        );
    }
}
