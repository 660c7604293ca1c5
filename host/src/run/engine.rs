//! Chooses and loads the engine that a plan asks for.

use std::thread;

use crate::engine::candle::{CandleEngine, LoadOptions};
use crate::engine::fp8::Fp8Scales;
use crate::engine::{Engine, EngineError};
use crate::model::{self, Model, StorageType, Tokenizer};
use crate::plan::{PromptSource, RunPlan};

use super::{RunError, Stop};

/// A loaded engine and the model's tokenizer, where prompts need one.
pub(super) struct Loaded {
    pub(super) engine: Box<dyn Engine>,
    pub(super) tokenizer: Option<Tokenizer>,
    pub(super) weights: WeightFacts,
}

/// Which weights were loaded.
pub(super) struct WeightFacts {
    /// Type in which most of the values are stored.
    pub(super) storage: Option<&'static str>,
    /// Hash of the files.
    pub(super) sha256: Option<String>,
}

/// Loads the model of a plan into the engine for its device.
pub(super) fn load(plan: &RunPlan, stop: &Stop) -> Result<Loaded, RunError> {
    check_device(&plan.device)?;
    let fp8 = fp8_scales(plan)?;
    let model = model::open(plan.model_name(), plan.load_format, plan.seed)?;
    let tokenizer = tokenizer(plan.prompt_source, &model)?;
    let run = (plan.batch_size as usize, plan.tokens_per_sequence() as usize);
    let options = LoadOptions {
        fp8,
        run,
        threads: plan.threads.map(|threads| threads as usize),
        stop: stop.clone(),
    };
    let (engine, sha256) = load_and_hash(&model, options)?;
    Ok(Loaded {
        engine: Box::new(engine),
        tokenizer,
        weights: WeightFacts {
            storage: model.weights.main_storage().map(StorageType::name),
            sha256,
        },
    })
}

/// Hashes the files beside loading them: together they read each file once from the disk.
fn load_and_hash(model: &Model, options: LoadOptions) -> Result<(CandleEngine, Option<String>), RunError> {
    let (stop, failed) = (options.stop.clone(), Stop::default());
    thread::scope(|scope| {
        let hash = scope.spawn(|| model.weights.sha256(|| stop.requested() || failed.requested()));
        let engine = CandleEngine::load(model, options).map_err(|error| {
            failed.request();
            match error {
                EngineError::Interrupted(_) => RunError::Interrupted,
                other => RunError::Load(other),
            }
        });
        let hash = hash
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((engine?, hash?))
    })
}

fn check_device(device: &str) -> Result<(), RunError> {
    match device {
        "auto" | "cpu" => Ok(()),
        other => Err(RunError::Unsupported(format!(
            "no device {other}: this build computes on cpu; use --device cpu or auto"
        ))),
    }
}

fn fp8_scales(plan: &RunPlan) -> Result<Option<Fp8Scales>, RunError> {
    match plan.quantization() {
        "none" => Ok(None),
        "fp8" => Ok(Some(Fp8Scales::default())),
        other => Err(RunError::Unsupported(format!(
            "no quantisation {other}: the candle engine can do none and fp8; GGUF files bring their own"
        ))),
    }
}

fn tokenizer(source: PromptSource, model: &Model) -> Result<Option<Tokenizer>, RunError> {
    match source {
        PromptSource::Random => Ok(None),
        PromptSource::Text => Ok(Some(model.tokenizer()?)),
        PromptSource::Auto if model.dummy => Ok(None),
        PromptSource::Auto => Ok(Some(model.tokenizer()?)),
    }
}
