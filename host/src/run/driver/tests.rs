//! The loop when a step is cut short.

use std::sync::Arc;
use std::time::Duration;

use lm_bench_plugin::kinds::{request, request_phase};
use lm_bench_plugin::{Data, Peak};

use super::*;
use crate::clock::Clock;
use crate::engine::EngineInfo;
use crate::engine::mock::{MockEngine, Script};
use crate::events::{
    CollectMode, Collection, CollectionSetup, Delivery, KindTable, RecorderConfig, SymbolTable,
};
use crate::model::preset;
use crate::stop::Stopped;
use crate::workload::PromptTokens;

/// An engine that is interrupted after some steps.
struct Interrupted {
    inner: MockEngine,
    left: u32,
}

impl Interrupted {
    fn after(steps: u32) -> Self {
        let script = Script {
            prefill: Duration::from_millis(5),
            decode: Duration::from_millis(1),
            tokens: vec![vec![3]],
            fails_at: None,
        };
        Self {
            inner: MockEngine::new(preset("tiny-llama").expect("preset"), script, |_| {}),
            left: steps,
        }
    }

    fn step(&mut self) -> Result<(), EngineError> {
        self.left = self.left.checked_sub(1).ok_or(Stopped)?;
        Ok(())
    }
}

impl Engine for Interrupted {
    fn info(&self) -> &EngineInfo {
        self.inner.info()
    }

    fn begin(&mut self, batch: usize, max_tokens: usize) -> Result<(), EngineError> {
        self.inner.begin(batch, max_tokens)
    }

    fn prefill(&mut self, prompts: &[Vec<u32>], rec: &mut Recorder) -> Result<Vec<u32>, EngineError> {
        self.step()?;
        self.inner.prefill(prompts, rec)
    }

    fn decode(&mut self, tokens: &[u32], rec: &mut Recorder) -> Result<Vec<u32>, EngineError> {
        self.step()?;
        self.inner.decode(tokens, rec)
    }

    fn measure_peaks(&self) -> Vec<Peak> {
        Vec::new()
    }

    fn logits(&self) -> Option<&[f32]> {
        None
    }
}

struct Silent;

impl Progress for Silent {
    fn stage(&mut self, _: &str) {}
    fn warn(&mut self, _: &str) {}
    fn steps(&mut self, _: u64, _: u64) {}
    fn done(&mut self) {}
}

/// What three iterations of one prefill and two decode steps do, and the phases and output tokens of their requests.
fn measured(engine: &mut dyn Engine) -> (Done, Vec<(u8, u32)>) {
    let setup = CollectionSetup {
        config: RecorderConfig::default(),
        kinds: KindTable::builtin(),
        symbols: Arc::new(SymbolTable::new()),
        clock: Clock::fake(),
        mode: CollectMode::default(),
    };
    let (recorder, collection) = Collection::start(setup, None, Vec::<Delivery>::new()).expect("starts");
    let (stop, mut silent) = (Stop::default(), Silent);
    let mut driver = Driver {
        engine,
        recorder,
        collection: &collection,
        prompts: Prompts::new(PromptTokens::Random { vocab: 9 }, 1, 4),
        shape: Loop {
            batch: 1,
            prompt_tokens: 4,
            output_tokens: 3,
            warmup: 0,
            iterations: 3,
            pairs: None,
        },
        stop: &stop,
        progress: &mut silent,
    };
    let done = driver.measure().expect("an interruption is no failure");
    let recorder = driver.recorder;
    let deliveries = collection.finish(recorder).expect("ends").collectors;
    let requests = deliveries.iter().filter(|d| d.kind == request::INDEX);
    let rows = requests.flat_map(|delivery| {
        let (Data::U8(phases), Data::U32(tokens)) =
            (delivery.block.column(4).data, delivery.block.column(6).data)
        else {
            panic!("phase and output_tokens are columns 4 and 6");
        };
        let rows = phases.iter().copied().zip(tokens.iter().copied());
        rows.collect::<Vec<_>>()
    });
    (done, rows.collect())
}

#[test]
fn a_step_that_is_cut_short_cancels_its_requests_and_keeps_what_was_done() {
    // In the prefill, in the second decode step, and in the prefill of the second iteration.
    for (steps, iterations, tokens) in [(0, 0, 0), (2, 0, 2), (3, 1, 0)] {
        let (done, rows) = measured(&mut Interrupted::after(steps));
        assert!(done.interrupted, "after {steps}");
        assert_eq!(done.iterations.len(), iterations);
        assert_eq!(
            rows.last(),
            Some(&(request_phase::CANCELLED, tokens)),
            "after {steps}"
        );
    }
    let (done, rows) = measured(&mut Interrupted::after(9));
    assert_eq!((done.interrupted, done.iterations.len()), (false, 3));
    assert_eq!(rows.last(), Some(&(request_phase::FINISHED, 3)));
}
