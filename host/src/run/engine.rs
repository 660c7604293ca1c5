//! Chooses and loads the engine that a plan asks for.

use std::thread;

use crate::engine::candle::{CandleEngine, LoadOptions};
use crate::engine::cuda::{self, CudaEngine, CudaOptions};
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
    let device = chosen_device(&plan.device)?;
    let fp8 = fp8_scales(plan)?;
    let model = model::open(plan.model_name(), plan.load_format, plan.seed)?;
    let tokenizer = tokenizer(plan.prompt_source, &model)?;
    let run = (plan.batch_size as usize, plan.tokens_per_sequence() as usize);
    let (engine, sha256) = load_and_hash(&model, stop, || {
        load_engine(plan, &model, (device, fp8, run, stop))
    })?;
    Ok(Loaded {
        engine,
        tokenizer,
        weights: WeightFacts {
            storage: model.weights.main_storage().map(StorageType::name),
            sha256,
        },
    })
}

/// What computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChosenDevice {
    Cpu,
    /// GPU of this number.
    Cuda(usize),
}

type EngineChoice<'a> = (ChosenDevice, Option<Fp8Scales>, (usize, usize), &'a Stop);

fn load_engine(
    plan: &RunPlan,
    model: &Model,
    (device, fp8, run, stop): EngineChoice<'_>,
) -> Result<Box<dyn Engine>, EngineError> {
    let stop = stop.clone();
    match device {
        ChosenDevice::Cpu => {
            let threads = plan.threads.map(|threads| threads as usize);
            let options = LoadOptions {
                fp8,
                run,
                threads,
                stop,
            };
            Ok(Box::new(CandleEngine::load(model, options)?))
        }
        ChosenDevice::Cuda(_) if fp8.is_some() => Err(EngineError::Unsupported {
            engine: "cuda",
            what: "--quantize fp8".into(),
            supported: "bf16; --device cpu does fp8".into(),
        }),
        ChosenDevice::Cuda(_) if plan.threads.is_some() => Err(EngineError::Unsupported {
            engine: "cuda",
            what: "--threads".into(),
            supported: "one thread that feeds the GPU; leave --threads out".into(),
        }),
        ChosenDevice::Cuda(ordinal) => Ok(Box::new(CudaEngine::load(
            model,
            CudaOptions { ordinal, run, stop },
        )?)),
    }
}

/// Hashes the files beside loading them: together they read each file once from the disk.
fn load_and_hash(
    model: &Model,
    stop: &Stop,
    load: impl FnOnce() -> Result<Box<dyn Engine>, EngineError>,
) -> Result<(Box<dyn Engine>, Option<String>), RunError> {
    let failed = Stop::default();
    thread::scope(|scope| {
        let hash = scope.spawn(|| model.weights.sha256(|| stop.requested() || failed.requested()));
        let engine = load().map_err(|error| {
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

/// `auto` stays on the CPU: which GPU can do a model is known only once it is loaded, and a run must not change its
/// device by itself.
fn chosen_device(device: &str) -> Result<ChosenDevice, RunError> {
    let number = |text: &str| text.parse().ok();
    let chosen = match device {
        "auto" | "cpu" => Some(ChosenDevice::Cpu),
        "cuda" => Some(ChosenDevice::Cuda(0)),
        other => other
            .strip_prefix("cuda:")
            .and_then(number)
            .map(ChosenDevice::Cuda),
    };
    let Some(chosen) = chosen else {
        return Err(RunError::Unsupported(format!(
            "no device {device}: use --device cpu, cuda, cuda:N or auto (which is cpu)"
        )));
    };
    if chosen != ChosenDevice::Cpu && !cuda::driver_present() {
        return Err(RunError::Unsupported(format!(
            "no device {device}: no NVIDIA driver (libcuda.so.1 cannot be loaded); use --device cpu or auto"
        )));
    }
    Ok(chosen)
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
