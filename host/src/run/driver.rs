//! The loop of an offline run: warm-up, then measured iterations of one prefill and its decode steps.

use std::ops::Range;

use lm_bench_plugin::kinds::memory;

use super::observer;
use super::request_rows::RequestRows;
use super::{Progress, RunError, Stop};
use crate::engine::{Engine, EngineError};
use crate::events::{Collection, EventSink, Recorder};
use crate::probe::process;
use crate::report::{Iteration, IterationPair};
use crate::workload::Prompts;

/// Sizes of the loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loop {
    pub(super) batch: usize,
    pub(super) prompt_tokens: usize,
    pub(super) output_tokens: u32,
    pub(super) warmup: u32,
    pub(super) iterations: u32,
    /// Seed of the order in pairs; `None` where iterations are not paired with bare ones.
    pub(super) pairs: Option<u64>,
}

/// What some iterations did.
#[derive(Clone, Debug, Default)]
pub(super) struct Done {
    /// Iterations that ended.
    pub(super) iterations: Vec<Iteration>,
    /// Those of them that a bare iteration was compared with.
    pub(super) pairs: Vec<IterationPair>,
    /// Requests that were started.
    pub(super) requests: u64,
    /// Wall time from the first to the last event.
    pub(super) wall_ns: u64,
    /// Wall time of the bare iterations.
    pub(super) bare_ns: u64,
    /// Tokens that the first sequence of the last iteration generated.
    pub(super) sample: Vec<u32>,
    /// Whether the prefill of the last iteration was recorded in detail.
    pub(super) prefill_sampled: bool,
    /// Steps whose logits held a value that is not finite.
    pub(super) nonfinite_steps: u64,
    pub(super) interrupted: bool,
}

/// Drives an engine.
pub(super) struct Driver<'a, S> {
    pub(super) engine: &'a mut dyn Engine,
    pub(super) recorder: Recorder,
    pub(super) collection: &'a Collection<S>,
    pub(super) prompts: Prompts<'a>,
    pub(super) shape: Loop,
    pub(super) stop: &'a Stop,
    pub(super) progress: &'a mut dyn Progress,
}

impl<S: EventSink + 'static> Driver<'_, S> {
    /// Runs the warm-up iterations, whose events are not recorded.
    pub(super) fn warm_up(&mut self) -> Result<Done, RunError> {
        self.recorder.set_enabled(false);
        let done = self.iterations(0..self.shape.warmup, None)?;
        self.recorder.set_enabled(true);
        Ok(done)
    }

    /// Runs the measured iterations. Their prompts are not those of the warm-up.
    pub(super) fn measure(&mut self) -> Result<Done, RunError> {
        let numbers = self.shape.warmup..self.shape.warmup + self.shape.iterations;
        self.iterations(numbers, self.shape.pairs)
    }

    fn iterations(&mut self, numbers: Range<u32>, pairs: Option<u64>) -> Result<Done, RunError> {
        let each = u64::from(self.shape.output_tokens) * if pairs.is_some() { 2 } else { 1 };
        let all = u64::from(numbers.end - numbers.start) * each;
        let mut done = self.nothing_done();
        let mut order = pairs.map(observer::bare_first);
        let start = self.recorder.now_ns();
        for (number, at) in numbers.zip(0..) {
            self.progress.steps(at * each, all);
            let ended = match order.as_mut().and_then(Iterator::next) {
                Some(bare_first) => self.pair(number.into(), bare_first, &mut done)?,
                None => self.iteration(number.into(), &mut done)?.map(|iteration| {
                    done.iterations.push(iteration);
                }),
            };
            if ended.is_none() {
                done.interrupted = true;
                break;
            }
        }
        self.recorder.flush();
        done.wall_ns = self.recorder.now_ns() - start;
        Ok(done)
    }

    /// An account with room for all iterations: the loop itself must not allocate between two time stamps.
    fn nothing_done(&self) -> Done {
        let room = self.shape.iterations.min(1 << 20) as usize;
        let mut done = Done {
            iterations: Vec::with_capacity(room),
            pairs: Vec::with_capacity(if self.shape.pairs.is_some() { room } else { 0 }),
            ..Done::default()
        };
        done.sample.reserve(self.shape.output_tokens as usize);
        done
    }

    /// The same prompts with and without recording; `None` when the user ended the run inside it.
    fn pair(&mut self, number: u64, bare_first: bool, done: &mut Done) -> Result<Option<()>, RunError> {
        let mut pair = IterationPair::default();
        for bare in [bare_first, !bare_first] {
            let ended = if bare {
                self.bare(number, &mut pair, done)?
            } else {
                self.instrumented(number, &mut pair, done)?
            };
            if ended.is_none() {
                return Ok(None);
            }
        }
        done.pairs.push(pair);
        Ok(Some(()))
    }

    /// An iteration that leaves no trace in the event stream.
    fn bare(
        &mut self,
        number: u64,
        pair: &mut IterationPair,
        done: &mut Done,
    ) -> Result<Option<()>, RunError> {
        let mut aside = Done::default();
        aside.sample.reserve(self.shape.output_tokens as usize);
        self.recorder.suspend();
        let start = self.recorder.now_ns();
        let iteration = self.iteration(number, &mut aside);
        pair.bare_wall_ns = self.recorder.now_ns() - start;
        self.recorder.resume();
        done.bare_ns += pair.bare_wall_ns;
        Ok(iteration?.map(|iteration| pair.bare = iteration))
    }

    /// An iteration with all that a run records. What collects beside the engine has had its rows when it is over, so that
    /// none of this work falls into a bare iteration.
    fn instrumented(
        &mut self,
        number: u64,
        pair: &mut IterationPair,
        done: &mut Done,
    ) -> Result<Option<()>, RunError> {
        let start = self.recorder.now_ns();
        let Some(iteration) = self.iteration(number, done)? else {
            return Ok(None);
        };
        let ended = self.recorder.now_ns();
        if self.collection.is_live() {
            self.recorder.flush();
        }
        self.collection.wait_until_taken(|| self.stop.requested());
        let taken = self.recorder.now_ns();
        pair.instrumented_wall_ns = if self.collection.is_live() { taken } else { ended } - start;
        (pair.instrumented, pair.prefill_sampled) = (iteration, done.prefill_sampled);
        done.iterations.push(iteration);
        Ok(Some(()))
    }

    /// One batch from prompt to last token; `None` when the user ended the run inside it.
    fn iteration(&mut self, number: u64, done: &mut Done) -> Result<Option<Iteration>, RunError> {
        if self.stop.requested() {
            return Ok(None);
        }
        let prompts = self.prompts.batch(number, self.shape.batch)?;
        let requests = RequestRows::new(number * self.shape.batch as u64, &prompts);
        self.engine.begin(
            self.shape.batch,
            self.shape.prompt_tokens + self.shape.output_tokens as usize,
        )?;
        done.requests += self.shape.batch as u64;
        done.sample.clear();

        let start = self.recorder.now_ns();
        requests.sent(&mut self.recorder, start);
        let Some(mut tokens) = unless_interrupted(self.engine.prefill(&prompts, &mut self.recorder))? else {
            let now = self.recorder.now_ns();
            requests.cancelled(&mut self.recorder, now, 0);
            return Ok(None);
        };
        let mut last = self.recorder.now_ns();
        let prefill_ns = last - start;
        done.prefill_sampled = self.recorder.is_sampled_step();
        requests.first_token(&mut self.recorder, last);
        self.after_step(&tokens, done);

        let mut decode_ns = 0;
        for index in 1..self.shape.output_tokens {
            if self.stop.requested() {
                requests.cancelled(&mut self.recorder, last, index);
                return Ok(None);
            }
            let before = self.recorder.now_ns();
            let Some(next) = unless_interrupted(self.engine.decode(&tokens, &mut self.recorder))? else {
                requests.cancelled(&mut self.recorder, last, index);
                return Ok(None);
            };
            tokens = next;
            last = self.recorder.now_ns();
            decode_ns += last - before;
            requests.token(&mut self.recorder, last, index);
            self.after_step(&tokens, done);
        }
        requests.finished(&mut self.recorder, last, self.shape.output_tokens);
        self.sample_memory();
        Ok(Some(Iteration {
            prefill_ns,
            decode_ns,
            decode_steps: u64::from(self.shape.output_tokens - 1),
            prompt_tokens: prompts.iter().map(|prompt| prompt.len() as u64).sum(),
            output_tokens: self.shape.batch as u64 * u64::from(self.shape.output_tokens),
        }))
    }

    fn after_step(&mut self, tokens: &[u32], done: &mut Done) {
        done.sample.extend(tokens.first());
        if self
            .engine
            .logits()
            .is_some_and(|logits| !logits.iter().all(|value| value.is_finite()))
        {
            done.nonfinite_steps += 1;
        }
    }

    /// Reads the process's memory between iterations: the kernel walks all mappings for it.
    fn sample_memory(&mut self) {
        if !self.recorder.wants(memory::INDEX) {
            return;
        }
        let usage = process::memory();
        let t_ns = self.recorder.now_ns();
        let (rss, pss) = (usage.rss.unwrap_or(0), usage.pss.unwrap_or(0));
        self.recorder.record(&memory::Row {
            t_ns,
            rss,
            pss,
            ..memory::Row::default()
        });
    }
}

/// `None` for a step that the user's wish to end the run cut short.
fn unless_interrupted(step: Result<Vec<u32>, EngineError>) -> Result<Option<Vec<u32>>, EngineError> {
    match step {
        Err(EngineError::Interrupted(_)) => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests;
