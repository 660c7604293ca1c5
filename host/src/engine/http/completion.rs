//! OpenAI's completions and chat completions: what is asked, and what the pieces of an answer mean.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Call;
use super::failure::{Cause, RequestFailure};

/// Longest excerpt of a server's message that an error quotes.
const EXCERPT: usize = 200;

/// The body of a request. `path` decides between prompt and messages; `extra` replaces what it names.
pub(super) fn body(path: &str, call: &Call<'_>, extra: &Map<String, Value>) -> String {
    let mut body = Map::new();
    let mut set = |key: &str, value: Value| body.insert(key.to_owned(), value);
    set("model", json!(call.model));
    if path.ends_with("/chat/completions") {
        set("messages", json!([{ "role": "user", "content": call.prompt }]));
    } else {
        set("prompt", json!(call.prompt));
    }
    set("max_tokens", json!(call.output_tokens));
    set("temperature", json!(0));
    set("stream", json!(call.stream));
    if call.stream {
        set("stream_options", json!({ "include_usage": true }));
    }
    body.extend(extra.clone());
    Value::Object(body).to_string()
}

#[derive(Deserialize)]
struct Piece {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Usage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    text: Option<String>,
    #[serde(alias = "message")]
    delta: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
    reasoning_content: Option<String>,
}

/// Token counts as a server states them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Usage {
    pub(super) prompt_tokens: u32,
    #[serde(default)]
    pub(super) completion_tokens: u32,
}

impl Choice {
    fn has_text(&self) -> bool {
        let of_delta = self
            .delta
            .iter()
            .flat_map(|delta| [&delta.content, &delta.reasoning_content]);
        of_delta
            .chain([&self.text])
            .flatten()
            .any(|text| !text.is_empty())
    }
}

/// What an answer has said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Completion {
    pub(super) usage: Option<Usage>,
    /// Pieces with text.
    pub(super) chunks: u32,
    /// Whether the server said that the answer is complete.
    pub(super) complete: bool,
}

impl Completion {
    /// Takes the data of an event of a stream, or a whole answer, and tells whether it brought text.
    ///
    /// # Errors
    /// When the server reports an error, or what it sent is not of this interface.
    pub(super) fn take(&mut self, data: &[u8]) -> Result<bool, RequestFailure> {
        if data.trim_ascii() == b"[DONE]" {
            self.complete = true;
            return Ok(false);
        }
        let piece: Piece = serde_json::from_slice(data).map_err(|error| {
            RequestFailure::new(Cause::Malformed, format_args!("{error} in {:?}", excerpt(data)))
        })?;
        if let Some(error) = piece.error.filter(|error| !error.is_null()) {
            return Err(RequestFailure::new(
                Cause::ErrorEvent,
                excerpt(error.to_string().as_bytes()),
            ));
        }
        self.usage = piece.usage.or(self.usage);
        self.complete |= piece.choices.iter().any(|choice| choice.finish_reason.is_some());
        let has_text = piece.choices.iter().any(Choice::has_text);
        self.chunks += u32::from(has_text);
        Ok(has_text)
    }

    /// Judges the answer when nothing more comes.
    ///
    /// # Errors
    /// When it is not complete or holds no token.
    pub(super) fn end(&self) -> Result<(), RequestFailure> {
        if !self.complete {
            let text = format_args!(
                "the answer ended after {} pieces without [DONE] or finish_reason",
                self.chunks
            );
            return Err(RequestFailure::new(Cause::Truncated, text));
        }
        if self.chunks == 0 && self.usage.is_none_or(|usage| usage.completion_tokens == 0) {
            return Err(RequestFailure::new(
                Cause::NoTokens,
                "the answer is complete and holds no token",
            ));
        }
        Ok(())
    }
}

/// The start of what a server sent, on one line.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(EXCERPT)]);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(pieces: &[&str]) -> Result<(Completion, Vec<bool>), Cause> {
        let mut completion = Completion::default();
        let text = pieces.iter().map(|piece| completion.take(piece.as_bytes()));
        let text: Result<Vec<bool>, _> = text.collect();
        let text = text.map_err(|failure| failure.cause)?;
        completion.end().map_err(|failure| failure.cause)?;
        Ok((completion, text))
    }

    #[test]
    fn a_stream_of_completions() {
        let (completion, text) = taken(&[
            r#"{"choices":[{"text":"a","finish_reason":null}]}"#,
            r#"{"choices":[{"text":"","finish_reason":"length"}],"usage":null}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}"#,
            "[DONE]",
        ])
        .expect("complete");
        assert_eq!(text, [true, false, false, false]);
        let usage = Usage {
            prompt_tokens: 7,
            completion_tokens: 2,
        };
        assert_eq!((completion.usage, completion.chunks), (Some(usage), 1));
    }

    #[test]
    fn a_stream_of_chat_completions_with_a_role_first() {
        let pieces = [
            r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
            r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#,
            r#"{"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}"#,
        ];
        assert_eq!(taken(&pieces).map(|(_, text)| text), Ok(vec![false, true, true]));
    }

    #[test]
    fn what_is_no_success() {
        let text = r#"{"choices":[{"text":"a"}]}"#;
        assert_eq!(taken(&[text]), Err(Cause::Truncated));
        assert_eq!(
            taken(&[text, r#"{"error":{"message":"out of memory"}}"#]),
            Err(Cause::ErrorEvent)
        );
        assert_eq!(taken(&[text, r#"{"choices":[{"te"#]), Err(Cause::Malformed));
        assert_eq!(taken(&["[DONE]"]), Err(Cause::NoTokens));
        assert_eq!(taken(&[]), Err(Cause::Truncated));
    }
}
