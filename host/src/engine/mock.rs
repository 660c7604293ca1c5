//! An engine without a model: tokens and latencies from a script, to test what drives engines.

use std::time::Duration;

use super::marks::{Marks, Occupancy, Phase, StepSize};
use super::{Engine, EngineError, EngineInfo, Quantization};
use crate::events::Recorder;
use crate::model::ModelConfig;

/// Tokens per block of the paged cache that it pretends to have.
const KV_BLOCK_TOKENS: usize = 16;

/// What the engine pretends.
pub struct Script {
    /// Time of a prefill, whatever its size.
    pub prefill: Duration,
    /// Time of a decode step.
    pub decode: Duration,
    /// Token `i` of sequence `s` is `tokens[s % tokens.len()][i % …]`; must hold at least one list, none empty.
    pub tokens: Vec<Vec<u32>>,
    /// Step, counted from 0 over the engine's life, that fails.
    pub fails_at: Option<u64>,
}

/// Plays a [`Script`].
pub struct MockEngine {
    info: EngineInfo,
    script: Script,
    wait: Box<dyn FnMut(Duration)>,
    lengths: Vec<usize>,
    produced: usize,
    max_tokens: usize,
    step: u64,
}

impl MockEngine {
    /// `wait` lets time pass: a fake clock's advance, or a sleep.
    pub fn new(model: ModelConfig, script: Script, wait: impl FnMut(Duration) + 'static) -> Self {
        Self {
            info: info(model),
            script,
            wait: Box::new(wait),
            lengths: Vec::new(),
            produced: 0,
            max_tokens: 0,
            step: 0,
        }
    }

    fn run_step(
        &mut self,
        (phase, rec): (Phase, &mut Recorder),
        added: &[usize],
    ) -> Result<Vec<u32>, EngineError> {
        let mut marks = Marks::begin(rec, self.step, phase);
        let start = marks.now();
        (self.wait)(match phase {
            Phase::Prefill => self.script.prefill,
            Phase::Decode => self.script.decode,
        });
        if self.script.fails_at == Some(self.step) {
            return Err(EngineError::Compute {
                operation: "the scripted step",
                message: "as the script says".into(),
            });
        }
        for (length, added) in self.lengths.iter_mut().zip(added) {
            *length += added;
        }
        self.step += 1;
        let stored: usize = self.lengths.iter().sum();
        let size = StepSize {
            batch: added.len(),
            tokens: added.iter().sum(),
            context_tokens: stored as u64,
        };
        marks.step(start, &size);
        marks.kv_cache(self.occupancy());
        let position = self.produced;
        self.produced += 1;
        let token = |sequence: usize| {
            let list = &self.script.tokens[sequence % self.script.tokens.len()];
            list[position % list.len()]
        };
        Ok((0..added.len()).map(token).collect())
    }

    fn occupancy(&self) -> Occupancy {
        let blocks = |tokens: &usize| tokens.div_ceil(KV_BLOCK_TOKENS) as u64;
        Occupancy {
            block_tokens: KV_BLOCK_TOKENS,
            blocks_total: blocks(&self.max_tokens) * self.lengths.len() as u64,
            blocks_used: self.lengths.iter().map(blocks).sum(),
            tokens_stored: self.lengths.iter().map(|&l| l as u64).sum(),
        }
    }

    fn check(&self, added: &[usize]) -> Result<(), EngineError> {
        if added.len() != self.lengths.len() {
            return Err(EngineError::Batch {
                found: added.len(),
                expected: self.lengths.len(),
            });
        }
        for (sequence, (length, added)) in self.lengths.iter().zip(added).enumerate() {
            if length + added > self.max_tokens {
                return Err(EngineError::Overrun {
                    sequence,
                    needed: length + added,
                    prepared: self.max_tokens,
                });
            }
        }
        Ok(())
    }
}

fn info(model: ModelConfig) -> EngineInfo {
    EngineInfo {
        name: "mock".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        device: "none".into(),
        dtype: "none".into(),
        threads: 1,
        kernels: Vec::new(),
        weight_format: "none".into(),
        weight_bytes: 0,
        kv_bytes_per_token: 0,
        dummy_weights: true,
        model,
        quantization: Quantization::None,
    }
}

impl Engine for MockEngine {
    fn info(&self) -> &EngineInfo {
        &self.info
    }

    fn begin(&mut self, batch: usize, max_tokens: usize) -> Result<(), EngineError> {
        if batch == 0 {
            return Err(EngineError::Zero("batch size"));
        }
        self.lengths = vec![0; batch];
        self.produced = 0;
        self.max_tokens = max_tokens;
        Ok(())
    }

    fn prefill(&mut self, prompts: &[Vec<u32>], rec: &mut Recorder) -> Result<Vec<u32>, EngineError> {
        let added: Vec<usize> = prompts.iter().map(Vec::len).collect();
        self.check(&added)?;
        self.run_step((Phase::Prefill, rec), &added)
    }

    fn decode(&mut self, tokens: &[u32], rec: &mut Recorder) -> Result<Vec<u32>, EngineError> {
        let added = vec![1; tokens.len()];
        self.check(&added)?;
        self.run_step((Phase::Decode, rec), &added)
    }

    fn logits(&self) -> Option<&[f32]> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::engine::testing::quiet;
    use crate::model::preset;

    #[test]
    fn the_script_is_played_and_restarts_with_each_batch() {
        let waited = Rc::new(Cell::new(Duration::ZERO));
        let total = Rc::clone(&waited);
        let script = Script {
            prefill: Duration::from_millis(50),
            decode: Duration::from_millis(10),
            tokens: vec![vec![7, 8, 9], vec![1]],
            fails_at: Some(5),
        };
        let model = preset("tiny-llama").expect("preset");
        let mut engine = MockEngine::new(model, script, move |d| total.set(total.get() + d));
        let mut rec = quiet();
        for _ in 0..2 {
            engine.begin(2, 6).expect("begin");
            let prompts = [vec![1, 2, 3], vec![1]];
            assert_eq!(engine.prefill(&prompts, &mut rec).expect("prefill"), [7, 1]);
            assert_eq!(engine.decode(&[7, 1], &mut rec).expect("decode"), [8, 1]);
            if engine.step == 4 {
                break;
            }
        }
        assert_eq!(waited.get(), Duration::from_millis(120));
        assert_eq!(engine.occupancy().tokens_stored, 6);
        assert_eq!(engine.decode(&[8, 1], &mut rec).expect("decode"), [9, 1]);
        assert!(engine.decode(&[9, 1], &mut rec).is_err(), "step 5 fails");
        assert!(matches!(
            engine.decode(&[9], &mut rec),
            Err(EngineError::Batch {
                found: 1,
                expected: 2
            })
        ));
    }
}
