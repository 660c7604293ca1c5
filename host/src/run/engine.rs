//! Chooses and loads the engine that a plan asks for.

use crate::engine::Engine;
use crate::engine::candle::{CandleEngine, LoadOptions};
use crate::engine::fp8::Fp8Scales;
use crate::model::{self, Model, Tokenizer};
use crate::plan::{PromptSource, RunPlan};

use super::RunError;

/// A loaded engine and the model's tokenizer, where prompts need one.
pub(super) struct Loaded {
    pub(super) engine: Box<dyn Engine>,
    pub(super) tokenizer: Option<Tokenizer>,
}

/// Loads the model of a plan into the engine for its device.
pub(super) fn load(plan: &RunPlan) -> Result<Loaded, RunError> {
    check_device(&plan.device)?;
    let fp8 = fp8_scales(plan)?;
    let model = model::open(plan.model_name(), plan.load_format, plan.seed)?;
    let tokenizer = tokenizer(plan.prompt_source, &model)?;
    let run = (plan.batch_size as usize, plan.tokens_per_sequence() as usize);
    let options = LoadOptions {
        fp8,
        run,
        threads: plan.threads.map(|threads| threads as usize),
    };
    let engine = CandleEngine::load(&model, options).map_err(RunError::Load)?;
    Ok(Loaded {
        engine: Box::new(engine),
        tokenizer,
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
