//! The engine for NVIDIA GPUs: dense decoders in bf16, with kernels compiled for the device at run time.
//!
//! Nothing of CUDA is linked: driver, NVRTC and cuBLASLt are found when a GPU is asked for, so that the same program
//! runs where there is none. All work goes to one stream; a step's device time is taken by events that are read after
//! its tokens have arrived.
#![allow(
    unsafe_code,
    reason = "kernels and the driver's functions take raw device pointers; each call says why it is sound"
)]

mod decoder;
mod gpu;
mod kernels;
mod libraries;
#[cfg(test)]
mod tests;
mod weights;

use cudarc::driver::{CudaGraph, sys};

use decoder::{Buffers, OpTimes, PASS_ROWS, Pass, Segment};
use gpu::{Gpu, between};
use kernels::BLOCK_TOKENS;
pub use libraries::driver_present;
use libraries::failed;

use super::candle::check_run;
use super::marks::{Marks, Occupancy, Phase, StepSize};
use super::{Engine, EngineError, EngineInfo, Quantization};
use crate::events::Recorder;
use crate::model::{MemoryNeed, Model, ModelConfig};
use crate::stop::Stop;

/// Bytes of one value in weights, cache and activations.
const VALUE_BYTES: u64 = 2;
/// The release of the bindings.
const CUDARC_VERSION: &str = "0.19.10";

/// How to load a model.
#[derive(Debug, Clone)]
pub struct CudaOptions {
    /// Number of the device, as the driver counts them.
    pub ordinal: usize,
    /// Sequences and tokens per sequence that the run will ask for; memory is checked for them before loading.
    pub run: (usize, usize),
    /// Ends loading and steps early, with [`EngineError::Interrupted`].
    pub stop: Stop,
}

/// Inference on an NVIDIA GPU.
pub struct CudaEngine {
    info: EngineInfo,
    // Before the GPU, so that it goes first: a graph belongs to the GPU's context.
    graph: Option<CudaGraph>,
    buffers: Option<Buffers>,
    weights: weights::Weights,
    gpu: Gpu,
    lengths: Vec<usize>,
    /// Decode steps done with the present buffers; the second one is captured.
    decoded: u64,
    step: u64,
    stop: Stop,
}

impl CudaEngine {
    /// Finds the device and loads a model, after checking that weights, cache and activations fit its free memory.
    pub fn load(model: &Model, options: CudaOptions) -> Result<Self, EngineError> {
        check_run(&model.config, options.run)?;
        check_shape(&model.config)?;
        let gpu = Gpu::open(options.ordinal, &model.config)?;
        let elements = model.weights.iter().map(|t| t.elements() as u64);
        let weight_bytes = elements.fold(0, u64::saturating_add).saturating_mul(VALUE_BYTES);
        let needed = weight_bytes.saturating_add(decoder::bytes_of(&model.config, options.run));
        check_memory(&gpu, needed)?;
        let loader = weights::Loader {
            gpu: &gpu,
            model,
            stop: &options.stop,
        };
        let weights = loader.load()?;
        gpu.stream.synchronize().map_err(failed("loading the weights"))?;
        Ok(Self {
            info: describe(model, (&gpu, options.ordinal), weight_bytes)?,
            graph: None,
            buffers: None,
            weights,
            gpu,
            lengths: Vec::new(),
            decoded: 0,
            step: 0,
            stop: options.stop,
        })
    }

    /// Runs segments in passes of at most [`PASS_ROWS`] rows; the tokens follow one another as the segments do.
    fn passes(
        &mut self,
        tokens: &[i32],
        segments: &[Segment],
        mut times: Option<&mut OpTimes>,
    ) -> Result<Vec<u32>, EngineError> {
        let buffers = self.buffers.as_mut().ok_or(BEGIN_FIRST)?;
        let (mut next, mut first, mut done) = (Vec::new(), 0, 0);
        while done < segments.len() {
            self.stop.check()?;
            let (mut rows, mut count) = (0, 0);
            for s in &segments[done..] {
                if rows + s.len > buffers.rows {
                    break;
                }
                (rows, count) = (rows + s.len, count + 1);
            }
            let part = &segments[done..done + count];
            buffers.set(&self.gpu, &tokens[first..first + rows], part)?;
            let mut pass = Pass {
                gpu: &self.gpu,
                config: &self.info.model,
                weights: &self.weights,
                segments: part,
                decode: false,
                times: times.as_deref_mut(),
            };
            pass.enqueue(buffers)?;
            let ends = part.iter().filter(|s| s.last).count();
            next.extend(buffers.next(&self.gpu, ends)?);
            (first, done) = (first + rows, done + count);
        }
        Ok(next)
    }

    /// Starts a decode step, by replaying its graph if there is one. Returns whether it was a graph.
    fn enqueue_decode(
        &mut self,
        segments: &[Segment],
        times: Option<&mut OpTimes>,
    ) -> Result<bool, EngineError> {
        let buffers = self.buffers.as_mut().ok_or(BEGIN_FIRST)?;
        let graph = times.is_none() && self.decoded > 0;
        let mut pass = Pass {
            gpu: &self.gpu,
            config: &self.info.model,
            weights: &self.weights,
            segments,
            decode: true,
            times,
        };
        if !graph {
            pass.enqueue(buffers)?;
            return Ok(false);
        }
        if self.graph.is_none() {
            let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
            let stream = &self.gpu.stream;
            stream.begin_capture(mode).map_err(failed("capturing a graph"))?;
            let enqueued = pass.enqueue(buffers);
            let flags = sys::CUgraphInstantiate_flags_enum::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
            let captured = stream.end_capture(flags).map_err(failed("capturing a graph"));
            enqueued?;
            self.graph = captured?;
        }
        let graph = self
            .graph
            .as_ref()
            .ok_or(EngineError::Order("the captured graph is empty"))?;
        graph.launch().map_err(failed("starting a graph"))?;
        Ok(true)
    }

    /// Logits of the last step, `[batch, vocab]`, copied from the device. After a prefill in several passes only those
    /// of the last pass are there.
    pub fn read_logits(&self) -> Result<Vec<f32>, EngineError> {
        let buffers = self.buffers.as_ref().ok_or(BEGIN_FIRST)?;
        let logits = self.gpu.stream.clone_dtoh(&buffers.logits);
        let logits = logits.map_err(failed("copying logits"))?;
        self.gpu.stream.synchronize().map_err(failed("copying logits"))?;
        Ok(logits.into_iter().map(f32::from).collect())
    }

    fn occupancy(&self) -> Occupancy {
        let blocks = |tokens: usize| tokens.div_ceil(BLOCK_TOKENS) as u64;
        let most = self.buffers.as_ref().map_or(0, |b| b.max_tokens);
        Occupancy {
            block_tokens: BLOCK_TOKENS,
            blocks_total: blocks(most) * self.lengths.len() as u64,
            blocks_used: self.lengths.iter().map(|&l| blocks(l)).sum(),
            tokens_stored: self.lengths.iter().map(|&l| l as u64).sum(),
        }
    }

    fn check(&self, added: &[&[u32]]) -> Result<(), EngineError> {
        let buffers = self.buffers.as_ref().ok_or(BEGIN_FIRST)?;
        let (expected, found, vocab) = (buffers.batch, added.len(), self.info.model.vocab);
        if found != expected {
            return Err(EngineError::Batch { found, expected });
        }
        for (sequence, (tokens, length)) in added.iter().zip(&self.lengths).enumerate() {
            if tokens.is_empty() {
                return Err(EngineError::Zero("prompt length"));
            }
            let (needed, prepared) = (length + tokens.len(), buffers.max_tokens);
            if needed > prepared {
                return Err(EngineError::Overrun {
                    sequence,
                    needed,
                    prepared,
                });
            }
            if let Some(&token) = tokens.iter().find(|&&t| t as usize >= vocab) {
                return Err(EngineError::Token {
                    sequence,
                    token,
                    vocab,
                });
            }
        }
        Ok(())
    }

    fn end_step(
        &mut self,
        (marks, start): (&mut Marks<'_>, u64),
        (device_ns, graph): (u64, bool),
        tokens: usize,
    ) {
        let occupancy = self.occupancy();
        let size = StepSize {
            batch: self.lengths.len(),
            tokens,
            context_tokens: occupancy.tokens_stored,
        };
        marks.device_step(start, &size, (device_ns, graph));
        marks.kv_cache(occupancy);
        self.step += 1;
    }
}

const BEGIN_FIRST: EngineError = EngineError::Order("`begin` must come before `prefill` and `decode`");

/// Cuts prompts into segments that fit a pass.
fn segments_of(prompts: &[Vec<u32>]) -> Vec<Segment> {
    let mut segments = Vec::new();
    for (sequence, prompt) in prompts.iter().enumerate() {
        for start in (0..prompt.len()).step_by(PASS_ROWS) {
            let len = (prompt.len() - start).min(PASS_ROWS);
            segments.push(Segment {
                sequence,
                start,
                len,
                last: start + len == prompt.len(),
            });
        }
    }
    segments
}

/// Refuses shapes that the kernels are not written for.
fn check_shape(c: &ModelConfig) -> Result<(), EngineError> {
    let refuse = |what: String, supported: &str| {
        Err(EngineError::Unsupported {
            engine: "cuda",
            what,
            supported: supported.into(),
        })
    };
    if c.experts.is_some() {
        return refuse(
            "mixture-of-experts layers".into(),
            "dense models; --device cpu does both",
        );
    }
    if !kernels::HEAD_DIMS.contains(&c.head_dim) {
        return refuse(
            format!("heads of width {}", c.head_dim),
            "widths 32, 64, 96 and 128",
        );
    }
    let grouped = c.heads / c.kv_heads;
    if grouped > kernels::MOST_GROUPED {
        return refuse(format!("{grouped} query heads per key/value head"), "up to 8");
    }
    if !c.hidden.is_multiple_of(8) || !c.intermediate.is_multiple_of(8) {
        let what = format!("widths {} and {}", c.hidden, c.intermediate);
        return refuse(what, "multiples of 8");
    }
    Ok(())
}

fn check_memory(gpu: &Gpu, needed: u64) -> Result<(), EngineError> {
    let free = gpu
        .context
        .mem_get_info()
        .map_err(failed("asking for free memory"))?
        .0 as u64;
    if needed <= free {
        return Ok(());
    }
    Err(EngineError::DeviceMemory { needed, free })
}

fn describe(
    model: &Model,
    (gpu, ordinal): (&Gpu, usize),
    weight_bytes: u64,
) -> Result<EngineInfo, EngineError> {
    let name = gpu.context.name().map_err(failed("asking the device's name"))?;
    Ok(EngineInfo {
        name: "cuda".into(),
        version: CUDARC_VERSION.into(),
        device: format!("cuda:{ordinal} ({name})"),
        dtype: "bf16".into(),
        threads: 1,
        kernels: [
            "matmul bf16: up to 4 rows own dot products, cuBLASLt above",
            "attention: prefill on tensor cores, decode split over the sequence, paged cache",
            "decode: CUDA graph from the second step on, except where operators are timed",
            "norms, rope, SwiGLU, greedy sampling: own kernels",
        ]
        .map(String::from)
        .to_vec(),
        weight_format: model.weight_format.into(),
        weight_bytes,
        kv_bytes_per_token: MemoryNeed::kv_bytes_per_token(&model.config, VALUE_BYTES),
        dummy_weights: model.dummy,
        model: model.config.clone(),
        quantization: Quantization::None,
    })
}

impl Engine for CudaEngine {
    fn info(&self) -> &EngineInfo {
        &self.info
    }

    fn begin(&mut self, batch: usize, max_tokens: usize) -> Result<(), EngineError> {
        check_run(&self.info.model, (batch, max_tokens))?;
        self.lengths = vec![0; batch];
        let fits = |b: &Buffers| b.batch == batch && b.max_tokens == max_tokens;
        if self.buffers.as_ref().is_some_and(fits) {
            return Ok(());
        }
        (self.graph, self.buffers, self.decoded) = (None, None, 0);
        check_memory(
            &self.gpu,
            decoder::bytes_of(&self.info.model, (batch, max_tokens)),
        )?;
        self.buffers = Some(Buffers::new(&self.gpu, &self.info.model, (batch, max_tokens))?);
        self.gpu
            .stream
            .synchronize()
            .map_err(failed("preparing the cache"))
    }

    fn prefill(&mut self, prompts: &[Vec<u32>], rec: &mut Recorder) -> Result<Vec<u32>, EngineError> {
        let slices: Vec<&[u32]> = prompts.iter().map(Vec::as_slice).collect();
        if self.lengths.iter().any(|&l| l > 0) {
            return Err(EngineError::Order(
                "`begin` must come between two calls of `prefill`",
            ));
        }
        self.check(&slices)?;
        let tokens: Vec<i32> = prompts.iter().flatten().map(|&t| t as i32).collect();
        let segments = segments_of(prompts);
        let mut marks = Marks::begin(rec, self.step, Phase::Prefill);
        let mut times = marks.wants_ops().then(OpTimes::default);
        let start = marks.now();
        let before = self.gpu.event()?;
        let next = self.passes(&tokens, &segments, times.as_mut())?;
        let after = self.gpu.event()?;
        for (length, prompt) in self.lengths.iter_mut().zip(prompts) {
            *length = prompt.len();
        }
        let device_ns = between(&before, &after)?;
        if let Some(times) = times {
            times.record(&mut marks)?;
        }
        self.end_step((&mut marks, start), (device_ns, false), tokens.len());
        Ok(next)
    }

    fn decode(&mut self, tokens: &[u32], rec: &mut Recorder) -> Result<Vec<u32>, EngineError> {
        let slices: Vec<&[u32]> = tokens.iter().map(std::slice::from_ref).collect();
        if self.lengths.contains(&0) {
            return Err(EngineError::Order("`prefill` must come before `decode`"));
        }
        self.check(&slices)?;
        self.stop.check()?;
        let inputs: Vec<i32> = tokens.iter().map(|&t| t as i32).collect();
        let segment = |(sequence, &start): (usize, &usize)| Segment {
            sequence,
            start,
            len: 1,
            last: true,
        };
        let segments: Vec<Segment> = self.lengths.iter().enumerate().map(segment).collect();
        let mut marks = Marks::begin(rec, self.step, Phase::Decode);
        let mut times = marks.wants_ops().then(OpTimes::default);
        let start = marks.now();
        let buffers = self.buffers.as_mut().ok_or(BEGIN_FIRST)?;
        buffers.set(&self.gpu, &inputs, &segments)?;
        let before = self.gpu.event()?;
        let graph = self.enqueue_decode(&segments, times.as_mut())?;
        let after = self.gpu.event()?;
        let buffers = self.buffers.as_ref().ok_or(BEGIN_FIRST)?;
        let next = buffers.next(&self.gpu, tokens.len())?;
        self.lengths.iter_mut().for_each(|l| *l += 1);
        self.decoded += 1;
        let device_ns = between(&before, &after)?;
        if let Some(times) = times {
            times.record(&mut marks)?;
        }
        self.end_step((&mut marks, start), (device_ns, graph), tokens.len());
        Ok(next)
    }

    fn logits(&self) -> Option<&[f32]> {
        None
    }
}
