//! The CPU engine: matrix products by candle, everything between them by this module's own loops.
//!
//! All rows of a step, of whatever sequence, go through each projection as one matrix. Keys and values live in one
//! allocation that is written in place; grouped-query attention reads it without expanding heads.

mod attention;
mod block_dot;
mod blocks;
mod cache;
mod dense_dot;
mod kernels;
mod layer;
mod linear;
mod load;
mod moe;
mod peaks;
mod processor_caches;
mod quant;
mod rope;
mod rows;
mod simd;
mod tensors;
#[cfg(test)]
mod tests;
mod threads;

use std::sync::Arc;

use attention::RowPlace;
use cache::KvCache;
use layer::{Layer, StepContext};
use lm_bench_plugin::Peak;
use load::Loaded;
use quant::ActivationQuant;
use rayon::ThreadPool;
use rope::Rope;

use super::fp8::Fp8Scales;
use super::marks::{Marks, Op, Phase, QuantSubject, StepSize};
use super::{Engine, EngineError, EngineInfo};
use crate::events::Recorder;
use crate::model::{MemoryNeed, Model, available_memory};
use crate::stop::Stop;

/// Bytes of one value in cache and activations.
const VALUE_BYTES: u64 = 4;

/// How to load a model.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// FP8 quantisation of weights and activations.
    pub fp8: Option<Fp8Scales>,
    /// Sequences and tokens per sequence that the run will ask for; memory is checked for them before loading.
    pub run: (usize, usize),
    /// Threads to compute with; `None` for one per physical core.
    pub threads: Option<usize>,
    /// Ends loading and steps early, with [`EngineError::Interrupted`].
    pub stop: Stop,
}

/// Inference on the CPU through candle.
pub struct CandleEngine {
    info: EngineInfo,
    weights: Loaded,
    rope: Rope,
    quant: ActivationQuant,
    fp8: Option<Fp8Scales>,
    cache: Option<KvCache>,
    logits: Vec<f32>,
    step: u64,
    threads: Arc<ThreadPool>,
    stop: Stop,
}

impl CandleEngine {
    /// Loads a model, after checking that weights, cache and activations of the run fit the memory there is.
    pub fn load(model: &Model, options: LoadOptions) -> Result<Self, EngineError> {
        check_run(&model.config, options.run)?;
        let weight_bytes = kernels::memory_of_weights(model, options.fp8.is_some());
        let need = MemoryNeed::of_run(&model.config, weight_bytes, options.run, VALUE_BYTES);
        if let Some(available) = available_memory() {
            need.check(available)?;
        }
        let threads = threads::pool(options.threads, model)?;
        let weights = load::load(model, options.fp8, &options.stop)?;
        let info = kernels::describe(model, (&weights, threads.current_num_threads()), options.fp8);
        Ok(Self {
            rope: Rope::new(&model.config, weights.rope_divisors.as_deref()),
            quant: ActivationQuant(options.fp8.map(|s| s.activations)),
            fp8: options.fp8,
            info,
            weights,
            cache: None,
            logits: Vec::new(),
            step: 0,
            threads,
            stop: options.stop,
        })
    }

    fn cache(&self) -> Result<&KvCache, EngineError> {
        self.cache.as_ref().ok_or(EngineError::Order(
            "`begin` must come before `prefill` and `decode`",
        ))
    }

    /// Runs `tokens` through all layers; `ends` are the rows whose next token is wanted.
    fn forward(
        &mut self,
        tokens: &[u32],
        places: &[RowPlace],
        ends: &[usize],
        marks: &mut Marks<'_>,
    ) -> Result<Vec<u32>, EngineError> {
        let config = &self.info.model;
        let cache = self.cache.as_mut().ok_or(EngineError::Order(
            "`begin` must come before `prefill` and `decode`",
        ))?;
        let cx = StepContext {
            config,
            rope: &self.rope,
            quant: &self.quant,
            places,
            stop: &self.stop,
        };
        let start = marks.now();
        let mut x = self.weights.embedding.rows(tokens)?;
        marks.op(None, Op::Embed, start);
        for (index, layer) in self.weights.layers.iter().enumerate() {
            layer.forward((index, &mut x), cache, &cx, marks)?;
        }
        for rows in places.chunk_by(|a, b| a.sequence == b.sequence) {
            cache.advance(rows[0].sequence, rows.len());
        }
        let start = marks.now();
        let ends: Vec<f32> = ends
            .iter()
            .flat_map(|&row| &x[row * config.hidden..(row + 1) * config.hidden])
            .copied()
            .collect();
        let normed = rows::rms_norm(&ends, &self.weights.norm, config.rms_eps);
        marks.op(None, Op::Norm, start);

        let start = marks.now();
        let head = self.weights.head.as_ref().unwrap_or(&self.weights.embedding);
        self.logits = head.forward(&normed)?;
        marks.op(None, Op::LmHead, start);

        let start = marks.now();
        let next = self.logits.chunks_exact(config.vocab);
        let next = next.map(|logits| rows::argmax(logits) as u32).collect();
        marks.op(None, Op::Sample, start);
        Ok(next)
    }

    /// One step: a forward pass on the engine's threads, with its marks before and after.
    fn run_step(
        &mut self,
        (phase, rec): (Phase, &mut Recorder),
        tokens: &[u32],
        (places, ends): (&[RowPlace], &[usize]),
    ) -> Result<Vec<u32>, EngineError> {
        let mut marks = Marks::begin(rec, self.step, phase);
        self.step += 1;
        let start = marks.now();
        let threads = Arc::clone(&self.threads);
        let next = threads.install(|| self.forward(tokens, places, ends, &mut marks))?;
        let occupancy = self.cache()?.occupancy();
        let size = StepSize {
            batch: ends.len(),
            tokens: tokens.len(),
            context_tokens: occupancy.tokens_stored,
        };
        marks.step(start, &size);
        marks.kv_cache(occupancy);
        Ok(next)
    }

    fn check_tokens(&self, sequence: usize, tokens: &[u32]) -> Result<(), EngineError> {
        let vocab = self.info.model.vocab;
        match tokens.iter().find(|&&t| t as usize >= vocab) {
            Some(&token) => Err(EngineError::Token {
                sequence,
                token,
                vocab,
            }),
            None => Ok(()),
        }
    }

    fn check_room(&self, sequence: usize, tokens: usize) -> Result<(), EngineError> {
        let cache = self.cache()?;
        let needed = cache.length(sequence) + tokens;
        if needed <= cache.max_tokens() {
            return Ok(());
        }
        Err(EngineError::Overrun {
            sequence,
            needed,
            prepared: cache.max_tokens(),
        })
    }

    fn check_batch(&self, found: usize) -> Result<(), EngineError> {
        let expected = self.cache()?.batch();
        if found == expected {
            return Ok(());
        }
        Err(EngineError::Batch { found, expected })
    }
}

/// Rotary frequencies of a model, one per pair; `divisors` are the file's own.
pub(super) fn rope_frequencies(config: &crate::model::ModelConfig, divisors: Option<&[f32]>) -> Vec<f32> {
    Rope::new(config, divisors).into_frequencies()
}

/// Sizes of a run against the model.
pub(super) fn check_run(
    config: &crate::model::ModelConfig,
    (batch, max_tokens): (usize, usize),
) -> Result<(), EngineError> {
    if batch == 0 {
        return Err(EngineError::Zero("batch size"));
    }
    if max_tokens == 0 {
        return Err(EngineError::Zero("sequence length"));
    }
    let limit = config.context_limit();
    if max_tokens <= limit {
        return Ok(());
    }
    Err(EngineError::Context {
        asked: max_tokens,
        limit,
        reason: if limit < config.max_context {
            "its sliding attention window"
        } else {
            "its context length"
        },
    })
}

impl Engine for CandleEngine {
    fn info(&self) -> &EngineInfo {
        &self.info
    }

    fn begin(&mut self, batch: usize, max_tokens: usize) -> Result<(), EngineError> {
        let config = &self.info.model;
        check_run(config, (batch, max_tokens))?;
        self.logits.clear();
        let fits = |c: &KvCache| c.batch() == batch && c.max_tokens() == max_tokens;
        if let Some(cache) = self.cache.as_mut().filter(|c| fits(c)) {
            cache.clear();
            return Ok(());
        }
        self.cache = None;
        let need = MemoryNeed::of_run(config, 0, (batch, max_tokens), VALUE_BYTES);
        if let Some(available) = available_memory() {
            need.check(available)?;
        }
        self.cache = Some(KvCache::new(config, batch, max_tokens));
        self.rope.prepare(max_tokens);
        Ok(())
    }

    fn prefill(&mut self, prompts: &[Vec<u32>], rec: &mut Recorder) -> Result<Vec<u32>, EngineError> {
        self.check_batch(prompts.len())?;
        if !self.cache()?.is_empty() {
            return Err(EngineError::Order(
                "`begin` must come between two calls of `prefill`",
            ));
        }
        let (mut places, mut ends) = (Vec::new(), Vec::new());
        for (sequence, prompt) in prompts.iter().enumerate() {
            if prompt.is_empty() {
                return Err(EngineError::Zero("prompt length"));
            }
            self.check_room(sequence, prompt.len())?;
            self.check_tokens(sequence, prompt)?;
            let rows = (0..prompt.len()).map(|position| RowPlace { sequence, position });
            places.extend(rows);
            ends.push(places.len() - 1);
        }
        let tokens = prompts.concat();
        self.run_step((Phase::Prefill, rec), &tokens, (&places, &ends))
    }

    fn decode(&mut self, tokens: &[u32], rec: &mut Recorder) -> Result<Vec<u32>, EngineError> {
        self.check_batch(tokens.len())?;
        if self.cache()?.is_empty() {
            return Err(EngineError::Order("`prefill` must come before `decode`"));
        }
        for (sequence, token) in tokens.iter().enumerate() {
            self.check_room(sequence, 1)?;
            self.check_tokens(sequence, std::slice::from_ref(token))?;
        }
        let cache = self.cache()?;
        let place = |sequence| RowPlace {
            sequence,
            position: cache.length(sequence),
        };
        let places: Vec<RowPlace> = (0..tokens.len()).map(place).collect();
        let ends: Vec<usize> = (0..tokens.len()).collect();
        self.run_step((Phase::Decode, rec), tokens, (&places, &ends))
    }

    fn record_load(&mut self, rec: &mut Recorder) {
        let Some(scales) = self.fp8 else {
            return;
        };
        let mut marks = Marks::of_load(rec);
        if !marks.wants_quant() {
            return;
        }
        for entry in &self.weights.weight_errors {
            let subject = QuantSubject {
                tensor: entry.tensor,
                granularity: scales.weights,
                error: &entry.error,
            };
            marks.quant(entry.layer, &subject);
        }
    }

    fn measure_peaks(&self) -> Vec<Peak> {
        // Without a peak there is no utilisation; the run itself does not suffer.
        self.threads.install(peaks::measure).unwrap_or_default()
    }

    fn logits(&self) -> Option<&[f32]> {
        (!self.logits.is_empty()).then_some(&self.logits)
    }
}

/// Bytes of all weights as this engine keeps them.
fn loaded_bytes(weights: &Loaded) -> u64 {
    let layers: u64 = weights.layers.iter().map(Layer::bytes).sum();
    let head = weights.head.as_ref().map_or(0, |h| h.bytes());
    weights.embedding.bytes() + layers + head + 4 * weights.norm.len() as u64
}
