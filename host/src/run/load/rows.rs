//! What becomes of one request, as rows of the event stream.

use lm_bench_plugin::kinds::{request, request_phase, token};

use crate::engine::http::{Answer, Marks, RequestFailure};
use crate::events::Recorder;

/// Writes the rows of one request. The recorder is shared by all requests of a thread, one row at a time.
pub(super) struct RequestEvents<'a> {
    recorder: &'a std::cell::RefCell<Recorder>,
    id: u64,
    chunks: u32,
    last_ns: u64,
}

impl<'a> RequestEvents<'a> {
    pub(super) fn new(recorder: &'a std::cell::RefCell<Recorder>, id: u64) -> Self {
        Self {
            recorder,
            id,
            chunks: 0,
            last_ns: 0,
        }
    }

    /// The request entered a phase.
    pub(super) fn phase(&self, t_ns: u64, phase: u8, (prompt_tokens, output_tokens): (u32, u32)) {
        self.recorder.borrow_mut().record(&request::Row {
            t_ns,
            id: self.id,
            phase,
            prompt_tokens,
            output_tokens,
            ..request::Row::default()
        });
    }

    /// It succeeded.
    pub(super) fn finished(&self, answer: &Answer) {
        let tokens = (answer.prompt_tokens.unwrap_or(0), answer.output_tokens);
        let last_content = if self.chunks > 0 {
            self.last_ns
        } else {
            answer.last_ns
        };
        self.phase(last_content, request_phase::LAST_CONTENT, tokens);
        self.phase(answer.last_ns, request_phase::FINISHED, tokens);
    }

    /// It failed.
    pub(super) fn failed(&self, t_ns: u64, failure: &RequestFailure) {
        let mut recorder = self.recorder.borrow_mut();
        let error = recorder.symbol(&failure.cause.to_string());
        recorder.record(&request::Row {
            t_ns,
            id: self.id,
            phase: request_phase::FAILED,
            output_tokens: self.chunks,
            error,
            ..request::Row::default()
        });
    }
}

impl Marks for RequestEvents<'_> {
    fn sent(&mut self, t_ns: u64) {
        self.phase(t_ns, request_phase::SENT, (0, 0));
    }

    fn chunk(&mut self, t_ns: u64) {
        if self.chunks == 0 {
            self.phase(t_ns, request_phase::FIRST_TOKEN, (0, 1));
        }
        self.recorder.borrow_mut().record(&token::Row {
            t_ns,
            request: self.id,
            index: self.chunks,
            chunk: self.chunks,
            tokens_in_chunk: 1,
        });
        self.chunks += 1;
        self.last_ns = t_ns;
    }
}
