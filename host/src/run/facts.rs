//! Facts about engine, model and plan in the shapes that collectors and record want.

use lm_bench_plugin::{ModelInfo, Peak, RunInfo};

use super::engine::WeightFacts;
use crate::engine::{EngineInfo, Quantization};
use crate::plan::RunPlan;
use crate::probe::machine::Machine;
use crate::report::{Build, Cgroup, Cpu, EngineFacts, Environment, ModelFacts};

/// What collectors are told.
pub(super) fn run_info(plan: &RunPlan, engine: &EngineInfo, peaks: Vec<Peak>) -> RunInfo {
    let model = &engine.model;
    RunInfo {
        model: ModelInfo {
            name: plan.model_name().to_owned(),
            architecture: model.architecture.name().to_owned(),
            layers: model.layers as u32,
            hidden: model.hidden as u32,
            heads: model.heads as u32,
            kv_heads: model.kv_heads as u32,
            head_dim: model.head_dim as u32,
            experts: model.experts.as_ref().map_or(0, |experts| experts.count as u32),
            experts_per_token: model
                .experts
                .as_ref()
                .map_or(0, |experts| experts.per_token as u32),
            vocab: model.vocab as u32,
            parameters: model.parameters(),
            weight_bytes: engine.weight_bytes,
            kv_bytes_per_token: engine.kv_bytes_per_token,
        },
        engine: engine.name.clone(),
        device: engine.device.clone(),
        quantization: quantization(engine),
        batch_size: plan.batch_size,
        prompt_tokens: plan.seq_len,
        output_tokens: plan.output_len,
        sample_every: plan.sample_every,
        peaks,
    }
}

/// What the record says about the engine.
pub(super) fn engine_facts(engine: &EngineInfo) -> EngineFacts {
    EngineFacts {
        name: engine.name.clone(),
        version: Some(engine.version.clone()),
        device: engine.device.clone(),
        dtype: engine.dtype.clone(),
        threads: engine.threads as u32,
        kernels: engine.kernels.clone(),
        quantization: quantization(engine),
        weight_bytes: engine.weight_bytes,
        kv_bytes_per_token: engine.kv_bytes_per_token,
        graph: None,
    }
}

/// What the record says about the model.
pub(super) fn model_facts(
    info: &RunInfo,
    engine: &EngineInfo,
    (weights, tokenizer): (WeightFacts, bool),
) -> ModelFacts {
    let model = &info.model;
    ModelFacts {
        name: model.name.clone(),
        architecture: model.architecture.clone(),
        format: engine.weight_format.clone(),
        weight_type: weights.storage.map(str::to_owned),
        sha256: weights.sha256,
        parameters: model.parameters,
        active_parameters: Some(engine.model.active_parameters()),
        layers: model.layers,
        hidden: model.hidden,
        heads: model.heads,
        kv_heads: model.kv_heads,
        head_dim: model.head_dim,
        experts: model.experts,
        experts_per_token: model.experts_per_token,
        vocab: model.vocab,
        context_length: u32::try_from(engine.model.context_limit()).ok(),
        tokenizer,
    }
}

fn quantization(engine: &EngineInfo) -> String {
    match &engine.quantization {
        Quantization::None => "none".to_owned(),
        Quantization::Fp8 { weights, activations } => {
            format!("fp8 e4m3, weights per {weights}, activations per {activations}")
        }
    }
}

/// What the record says about machine and build.
pub(super) fn environment(machine: &Machine) -> Environment {
    Environment {
        os: machine.os.clone(),
        kernel: machine.kernel.clone(),
        arch: machine.arch.to_owned(),
        cpu: Cpu {
            model: machine.cpu_model.clone(),
            physical_cores: machine.physical_cores,
            logical_cores: machine.logical_cores,
            usable_cores: machine.usable_cores,
            governor: machine.governors.first().cloned(),
            features: machine.cpu_features.clone(),
        },
        memory_total_bytes: machine.memory_bytes,
        memory_available_bytes: machine.memory_available_bytes,
        cgroup: Cgroup {
            cpu_cores: machine.cgroup.cpus,
            memory_bytes: machine.cgroup.memory_bytes,
        },
        load_1m: machine.load_average.map(|loads| loads[0]),
        gpus: Vec::new(),
        build: Build {
            profile: if cfg!(debug_assertions) {
                "debug"
            } else {
                "optimised"
            }
            .to_owned(),
            target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        },
    }
}
