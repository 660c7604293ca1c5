//! Rows about requests: in an offline run each sequence of a batch is one request.

use lm_bench_plugin::kinds::{request, request_phase, token};

use crate::events::Recorder;

/// The requests of one batch.
pub(super) struct RequestRows {
    first: u64,
    prompt_tokens: Vec<u32>,
}

impl RequestRows {
    /// Requests numbered from `first`, one per prompt.
    pub(super) fn new(first: u64, prompts: &[Vec<u32>]) -> Self {
        Self {
            first,
            prompt_tokens: prompts.iter().map(|prompt| prompt.len() as u32).collect(),
        }
    }

    /// All requests entered a phase at `t_ns`, each with `output_tokens` so far.
    pub(super) fn phase(&self, recorder: &mut Recorder, t_ns: u64, phase: u8, output_tokens: u32) {
        for (id, prompt_tokens) in (self.first..).zip(&self.prompt_tokens) {
            recorder.record(&request::Row {
                t_ns,
                id,
                phase,
                prompt_tokens: *prompt_tokens,
                output_tokens,
                ..request::Row::default()
            });
        }
    }

    /// Each request got the output token with this index at `t_ns`.
    pub(super) fn token(&self, recorder: &mut Recorder, t_ns: u64, index: u32) {
        for (request, _) in (self.first..).zip(&self.prompt_tokens) {
            recorder.record(&token::Row {
                t_ns,
                request,
                index,
                chunk: index,
                tokens_in_chunk: 1,
            });
        }
    }

    /// All requests were issued: due, permitted and sent at once, since a batch waits for nothing.
    pub(super) fn sent(&self, recorder: &mut Recorder, t_ns: u64) {
        for phase in [request_phase::DUE, request_phase::PERMIT, request_phase::SENT] {
            self.phase(recorder, t_ns, phase, 0);
        }
    }

    /// The first tokens arrived.
    pub(super) fn first_token(&self, recorder: &mut Recorder, t_ns: u64) {
        self.token(recorder, t_ns, 0);
        self.phase(recorder, t_ns, request_phase::FIRST_TOKEN, 1);
    }

    /// The last tokens arrived and the requests ended well.
    pub(super) fn finished(&self, recorder: &mut Recorder, t_ns: u64, output_tokens: u32) {
        self.phase(recorder, t_ns, request_phase::LAST_CONTENT, output_tokens);
        self.phase(recorder, t_ns, request_phase::FINISHED, output_tokens);
    }

    /// The requests were given up.
    pub(super) fn cancelled(&self, recorder: &mut Recorder, t_ns: u64, output_tokens: u32) {
        self.phase(recorder, t_ns, request_phase::CANCELLED, output_tokens);
    }
}
