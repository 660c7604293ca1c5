//! The loop of an offline run: warm-up, then measured iterations of one prefill and its decode steps.

use lm_bench_plugin::kinds::memory;

use super::requests::Requests;
use super::{Progress, RunError, Stop};
use crate::engine::Engine;
use crate::events::Recorder;
use crate::probe::process;
use crate::workload::Prompts;

/// Sizes of the loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loop {
    pub(super) batch: usize,
    pub(super) prompt_tokens: usize,
    pub(super) output_tokens: u32,
    pub(super) warmup: u32,
    pub(super) iterations: u32,
}

/// Times of the steps of some iterations, on the host's clock.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    /// Wall time of each prefill.
    pub(super) prefill_ns: Vec<u64>,
    /// Wall time of each decode step.
    pub(super) decode_ns: Vec<u64>,
}

/// What the measured part did.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    pub(super) times: Times,
    /// Iterations that ended.
    pub(super) iterations: u32,
    /// Requests that ended well.
    pub(super) requests: u64,
    pub(super) prompt_tokens: u64,
    pub(super) output_tokens: u64,
    /// Wall time from the first to the last event.
    pub(super) wall_ns: u64,
    /// Tokens that the first sequence of the last iteration generated.
    pub(super) sample: Vec<u32>,
    /// Steps whose logits held a value that is not finite.
    pub(super) nonfinite_steps: u64,
    pub(super) interrupted: bool,
}

/// Drives an engine.
pub(super) struct Driver<'a> {
    pub(super) engine: &'a mut dyn Engine,
    pub(super) recorder: Recorder,
    pub(super) prompts: Prompts<'a>,
    pub(super) shape: Loop,
    pub(super) stop: &'a Stop,
    pub(super) progress: &'a mut dyn Progress,
}

impl Driver<'_> {
    /// Runs the warm-up iterations, whose events are not recorded, and returns their times.
    pub(super) fn warm_up(&mut self) -> Result<Times, RunError> {
        self.recorder.set_enabled(false);
        let mut state = Measured::default();
        state.times.reserve(self.shape, self.shape.warmup);
        for iteration in 0..self.shape.warmup {
            if !self.iteration(u64::from(iteration), &mut state)? {
                break;
            }
        }
        self.recorder.set_enabled(true);
        Ok(state.times)
    }

    /// Runs the measured iterations.
    pub(super) fn measure(&mut self) -> Result<Measured, RunError> {
        let mut state = Measured::default();
        // The loop itself must not allocate between two time stamps.
        state.times.reserve(self.shape, self.shape.iterations);
        let start = self.recorder.now_ns();
        for iteration in 0..self.shape.iterations {
            self.progress.steps(self.steps_before(iteration), self.steps_before(self.shape.iterations));
            let batch = u64::from(self.shape.warmup) + u64::from(iteration);
            if !self.iteration(batch, &mut state)? {
                state.interrupted = true;
                break;
            }
            state.iterations += 1;
        }
        self.recorder.flush();
        state.wall_ns = self.recorder.now_ns() - start;
        Ok(state)
    }

    fn steps_before(&self, iteration: u32) -> u64 {
        u64::from(iteration) * u64::from(self.shape.output_tokens)
    }

    /// One batch from prompt to last token; false when the user ended the run inside it.
    fn iteration(&mut self, batch: u64, state: &mut Measured) -> Result<bool, RunError> {
        let prompts = self.prompts.batch(batch, self.shape.batch)?;
        let requests = Requests::new(batch * self.shape.batch as u64, &prompts);
        self.engine.begin(self.shape.batch, self.shape.prompt_tokens + self.shape.output_tokens as usize)?;
        state.sample.clear();

        let start = self.recorder.now_ns();
        requests.sent(&mut self.recorder, start);
        let mut tokens = self.engine.prefill(&prompts, &mut self.recorder)?;
        let mut last = self.recorder.now_ns();
        requests.first_token(&mut self.recorder, last);
        state.times.prefill_ns.push(last - start);
        self.after_step(&tokens, state);

        for index in 1..self.shape.output_tokens {
            if self.stop.requested() {
                requests.cancelled(&mut self.recorder, last, index);
                return Ok(false);
            }
            let before = self.recorder.now_ns();
            tokens = self.engine.decode(&tokens, &mut self.recorder)?;
            last = self.recorder.now_ns();
            requests.token(&mut self.recorder, last, index);
            state.times.decode_ns.push(last - before);
            self.after_step(&tokens, state);
        }
        requests.finished(&mut self.recorder, last, self.shape.output_tokens);
        let sequences = self.shape.batch as u64;
        state.requests += sequences;
        state.prompt_tokens += prompts.iter().map(|prompt| prompt.len() as u64).sum::<u64>();
        state.output_tokens += sequences * u64::from(self.shape.output_tokens);
        self.sample_memory();
        Ok(!self.stop.requested())
    }

    fn after_step(&mut self, tokens: &[u32], state: &mut Measured) {
        state.sample.extend(tokens.first());
        if self.engine.logits().is_some_and(|logits| !logits.iter().all(|value| value.is_finite())) {
            state.nonfinite_steps += 1;
        }
    }

    /// Reads the process's memory between iterations: the kernel walks all mappings for it.
    fn sample_memory(&mut self) {
        if !self.recorder.wants(memory::INDEX) {
            return;
        }
        let usage = process::memory();
        self.recorder.record(&memory::Row {
            t_ns: self.recorder.now_ns(),
            rss: usage.rss.unwrap_or(0),
            pss: usage.pss.unwrap_or(0),
            ..memory::Row::default()
        });
    }
}

impl Times {
    fn reserve(&mut self, shape: Loop, iterations: u32) {
        self.prefill_ns.reserve(iterations as usize);
        self.decode_ns.reserve(iterations as usize * shape.output_tokens as usize);
    }
}
