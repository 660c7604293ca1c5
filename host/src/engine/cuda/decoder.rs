//! The forward pass of a dense decoder: which kernel runs on what, in order.

use cudarc::driver::{CudaEvent, CudaSlice};
use half::bf16;

use super::gpu::{Arg, Gpu, between};
use super::kernels::BLOCK_TOKENS;
use super::libraries::failed;
use super::weights::{LayerWeights, Weights};
use crate::engine::EngineError;
use crate::engine::marks::{Marks, Op};
use crate::model::{ModelConfig, RopeLayout};

/// Most rows that one pass takes; longer prefills are cut.
pub(super) const PASS_ROWS: usize = 8192;
/// Blocks of the decode attention that keep a device busy: several per multiprocessor of a large one.
const BUSY_BLOCKS: usize = 528;

/// Consecutive tokens of one sequence in a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) sequence: usize,
    /// Position of its first token.
    pub(super) start: usize,
    pub(super) len: usize,
    /// Whether the next token after it is wanted.
    pub(super) last: bool,
}

/// Cache and activations of a batch.
pub(super) struct Buffers {
    pub(super) batch: usize,
    pub(super) max_tokens: usize,
    pub(super) rows: usize,
    splits: usize,
    table_len: usize,
    tokens: CudaSlice<i32>,
    positions: CudaSlice<i32>,
    sequences: CudaSlice<i32>,
    ends: CudaSlice<i32>,
    tables: CudaSlice<i32>,
    keys: CudaSlice<bf16>,
    values: CudaSlice<bf16>,
    x: CudaSlice<f32>,
    normed: CudaSlice<bf16>,
    wide: CudaSlice<bf16>,
    q: CudaSlice<bf16>,
    mixed: CudaSlice<bf16>,
    delta: CudaSlice<bf16>,
    part_out: CudaSlice<f32>,
    part_stats: CudaSlice<f32>,
    pub(super) logits: CudaSlice<bf16>,
    next: CudaSlice<i32>,
}

/// Rows that a run's passes have at most.
pub(super) fn pass_rows((batch, max_tokens): (usize, usize)) -> usize {
    batch.saturating_mul(max_tokens).min(PASS_ROWS).max(batch)
}

/// Bytes that [`Buffers`] take, up to small tables.
pub(super) fn bytes_of(c: &ModelConfig, run: (usize, usize)) -> u64 {
    let rows = pass_rows(run) as u64;
    let per_row = 4 * c.hidden + 4 * c.hidden + 4 * c.q_width() + 2 * c.intermediate + 2 * widest(c);
    let blocks = run.0.saturating_mul(run.1.div_ceil(BLOCK_TOKENS)) as u64;
    let cache = blocks.saturating_mul((BLOCK_TOKENS * c.layers * 4 * c.kv_width()) as u64);
    rows.saturating_mul(per_row as u64)
        .saturating_add(cache)
        .saturating_add((run.0 * c.vocab * 2) as u64)
}

/// Values of the widest intermediate result of a row.
fn widest(c: &ModelConfig) -> usize {
    (2 * c.intermediate).max(c.q_width() + 2 * c.kv_width())
}

impl Buffers {
    pub(super) fn new(
        gpu: &Gpu,
        c: &ModelConfig,
        (batch, max_tokens): (usize, usize),
    ) -> Result<Self, EngineError> {
        let rows = pass_rows((batch, max_tokens));
        let table_len = max_tokens.div_ceil(BLOCK_TOKENS);
        let pool = batch * table_len * BLOCK_TOKENS * c.kv_width() * c.layers;
        // Neighbouring blocks belong to different sequences, as they do once a server has run for a while.
        let tables: Vec<i32> = (0..batch * table_len)
            .map(|i| (i % table_len * batch + i / table_len) as i32)
            .collect();
        let splits = BUSY_BLOCKS.div_ceil(c.kv_heads * batch);
        let splits = splits.min(max_tokens.div_ceil(4 * BLOCK_TOKENS)).max(1);
        let cells = batch * c.heads * splits;
        Ok(Self {
            batch,
            max_tokens,
            rows,
            splits,
            table_len,
            tokens: gpu.zeros(rows)?,
            positions: gpu.zeros(rows)?,
            sequences: gpu.zeros(rows)?,
            ends: gpu.zeros(batch)?,
            tables: gpu.upload(&tables)?,
            keys: gpu.zeros(pool)?,
            values: gpu.zeros(pool)?,
            x: gpu.zeros(rows * c.hidden)?,
            normed: gpu.zeros(rows * c.hidden)?,
            wide: gpu.zeros(rows * widest(c))?,
            q: gpu.zeros(rows * c.q_width())?,
            mixed: gpu.zeros(rows * c.q_width().max(c.intermediate))?,
            delta: gpu.zeros(rows * c.hidden)?,
            part_out: gpu.zeros(cells * c.head_dim)?,
            part_stats: gpu.zeros(cells * 2)?,
            logits: gpu.zeros(batch * c.vocab)?,
            next: gpu.zeros(batch)?,
        })
    }

    /// Copies a pass's tokens and where they belong.
    pub(super) fn set(&mut self, gpu: &Gpu, tokens: &[i32], segments: &[Segment]) -> Result<(), EngineError> {
        let (mut positions, mut sequences, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for s in segments {
            positions.extend((s.start..s.start + s.len).map(|p| p as i32));
            sequences.extend(std::iter::repeat_n(s.sequence as i32, s.len));
            if s.last {
                ends.push(positions.len() as i32 - 1);
            }
        }
        let copy = |from: &[i32], to: &mut CudaSlice<i32>| {
            let copied = gpu.stream.memcpy_htod(from, to);
            copied.map_err(failed("copying tokens to the device"))
        };
        copy(tokens, &mut self.tokens)?;
        copy(&positions, &mut self.positions)?;
        copy(&sequences, &mut self.sequences)?;
        if !ends.is_empty() {
            copy(&ends, &mut self.ends)?;
        }
        Ok(())
    }

    /// Waits for the pass and fetches the next token of each of `count` ends.
    pub(super) fn next(&self, gpu: &Gpu, count: usize) -> Result<Vec<u32>, EngineError> {
        let next = gpu.stream.clone_dtoh(&self.next.slice(0..count.max(1)));
        let next = next.map_err(failed("waiting for the device"))?;
        gpu.stream
            .synchronize()
            .map_err(failed("waiting for the device"))?;
        Ok(next.into_iter().take(count).map(|t| t as u32).collect())
    }
}

/// Device times of a pass's operators, where a step is sampled for them.
#[derive(Default)]
pub(super) struct OpTimes {
    marks: Vec<(Option<usize>, Option<Op>, CudaEvent)>,
}

impl OpTimes {
    /// Records what was measured; the pass must be over.
    pub(super) fn record(&self, marks: &mut Marks<'_>) -> Result<(), EngineError> {
        for pair in self.marks.windows(2) {
            if let Some(op) = pair[1].1 {
                marks.timed_op(pair[1].0, op, between(&pair[0].2, &pair[1].2)?);
            }
        }
        Ok(())
    }
}

/// What a pass computes with.
pub(super) struct Pass<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) config: &'a ModelConfig,
    pub(super) weights: &'a Weights,
    pub(super) segments: &'a [Segment],
    pub(super) decode: bool,
    pub(super) times: Option<&'a mut OpTimes>,
}

impl Pass<'_> {
    fn mark(&mut self, layer: Option<usize>, op: Option<Op>) -> Result<(), EngineError> {
        if let Some(times) = &mut self.times {
            times.marks.push((layer, op, self.gpu.event()?));
        }
        Ok(())
    }

    fn rows(&self) -> usize {
        self.segments.iter().map(|s| s.len).sum()
    }

    /// Starts everything that the pass does.
    pub(super) fn enqueue(&mut self, b: &mut Buffers) -> Result<(), EngineError> {
        let (gpu, c, weights) = (self.gpu, self.config, self.weights);
        let rows = self.rows();
        self.mark(None, None)?;
        let args = [
            gpu.pointer(&b.tokens),
            gpu.pointer(&weights.embedding),
            gpu.pointer(&b.x),
            Arg::Int(c.hidden as i32),
        ];
        gpu.launch("embed", ((rows, 1, 1), 256), &args)?;
        self.mark(None, Some(Op::Embed))?;
        for (index, layer) in weights.layers.iter().enumerate() {
            let residual = index > 0;
            self.attention_half(b, (index, layer), residual)?;
            self.mlp_half(b, (index, layer))?;
        }
        self.finish(b)
    }

    /// Adds the last result to the residual stream and normalises `rows` of it.
    fn norm(
        &self,
        b: &Buffers,
        (weight, rows): (&CudaSlice<f32>, usize),
        ends: bool,
    ) -> Result<(), EngineError> {
        self.add_norm(b, (weight, rows), (true, ends))
    }

    fn add_norm(
        &self,
        b: &Buffers,
        (weight, rows): (&CudaSlice<f32>, usize),
        (residual, ends): (bool, bool),
    ) -> Result<(), EngineError> {
        let (gpu, c) = (self.gpu, self.config);
        let optional = |there: bool, arg: Arg| if there { arg } else { Arg::Pointer(0) };
        let args = [
            gpu.pointer(&b.x),
            optional(residual, gpu.pointer(&b.delta)),
            gpu.pointer(weight),
            gpu.pointer(&b.normed),
            optional(ends, gpu.pointer(&b.ends)),
            Arg::Int(c.hidden as i32),
            Arg::Float(c.rms_eps),
        ];
        gpu.launch("add_norm", ((rows, 1, 1), 512), &args)
    }

    fn attention_half(
        &mut self,
        b: &mut Buffers,
        (index, layer): (usize, &LayerWeights),
        residual: bool,
    ) -> Result<(), EngineError> {
        let (gpu, c, rows) = (self.gpu, self.config, self.rows());
        let at = Some(index);
        self.add_norm(b, (&layer.attention_norm, rows), (residual, false))?;
        self.mark(at, Some(Op::Norm))?;
        let (q, all) = (c.q_width(), c.q_width() + 2 * c.kv_width());
        gpu.project((&layer.qkv, all, c.hidden), (&b.normed, rows), &mut b.wide)?;
        self.rope_store(b, (index, layer))?;
        self.mark(at, Some(Op::Qkv))?;
        if self.decode {
            self.decode_attention(b, index)?;
        } else {
            self.prefill_attention(b, index)?;
        }
        self.mark(at, Some(Op::Attention))?;
        gpu.project((&layer.output, c.hidden, q), (&b.mixed, rows), &mut b.delta)?;
        self.mark(at, Some(Op::OProj))
    }

    fn mlp_half(
        &mut self,
        b: &mut Buffers,
        (index, layer): (usize, &LayerWeights),
    ) -> Result<(), EngineError> {
        let (gpu, c, rows) = (self.gpu, self.config, self.rows());
        self.norm(b, (&layer.mlp_norm, rows), false)?;
        self.mark(Some(index), Some(Op::Norm))?;
        let wide = c.intermediate;
        gpu.project(
            (&layer.gate_up, 2 * wide, c.hidden),
            (&b.normed, rows),
            &mut b.wide,
        )?;
        let args = [gpu.pointer(&b.wide), gpu.pointer(&b.mixed), Arg::Int(wide as i32)];
        gpu.launch("silu_mul", ((wide.div_ceil(256), rows, 1), 256), &args)?;
        gpu.project((&layer.down, c.hidden, wide), (&b.mixed, rows), &mut b.delta)?;
        self.mark(Some(index), Some(Op::Mlp))
    }

    /// Where layer `index` begins in the pools of keys and of values.
    fn pool_start(&self, b: &Buffers, index: usize) -> usize {
        b.batch * b.table_len * BLOCK_TOKENS * self.config.kv_width() * index
    }

    fn rope_store(&self, b: &Buffers, (index, layer): (usize, &LayerWeights)) -> Result<(), EngineError> {
        let (gpu, c) = (self.gpu, self.config);
        let pool = self.pool_start(b, index);
        let optional = |s: Option<&CudaSlice<f32>>| s.map_or(Arg::Pointer(0), |s| gpu.pointer(s));
        let norms = layer.qk_norm.as_ref();
        let args = [
            gpu.pointer(&b.wide),
            gpu.pointer(&b.q),
            gpu.pointer_at(&b.keys, pool),
            gpu.pointer_at(&b.values, pool),
            gpu.pointer(&b.positions),
            gpu.pointer(&b.sequences),
            gpu.pointer(&b.tables),
            Arg::Int(b.table_len as i32),
            gpu.pointer(&self.weights.frequencies),
            optional(layer.bias.as_ref()),
            optional(norms.map(|n| &n.0)),
            optional(norms.map(|n| &n.1)),
            Arg::Int(c.heads as i32),
            Arg::Int(c.kv_heads as i32),
            Arg::Float(c.rms_eps),
            Arg::Int(i32::from(c.rope_layout == RopeLayout::Interleaved)),
        ];
        gpu.launch("rope_store", ((self.rows(), 1, 1), 512), &args)
    }

    /// Scale of the scores, for exponentials to the base 2.
    fn scale(&self) -> Arg {
        Arg::Float(std::f32::consts::LOG2_E / (self.config.head_dim as f32).sqrt())
    }

    fn decode_attention(&self, b: &Buffers, index: usize) -> Result<(), EngineError> {
        let (gpu, c) = (self.gpu, self.config);
        let pool = self.pool_start(b, index);
        let args = [
            gpu.pointer(&b.q),
            gpu.pointer_at(&b.keys, pool),
            gpu.pointer_at(&b.values, pool),
            gpu.pointer(&b.positions),
            gpu.pointer(&b.tables),
            Arg::Int(b.table_len as i32),
            gpu.pointer(&b.part_out),
            gpu.pointer(&b.part_stats),
            Arg::Int(c.kv_heads as i32),
            self.scale(),
        ];
        gpu.launch("decode_attention", ((c.kv_heads, b.splits, b.batch), 128), &args)?;
        let args = [
            gpu.pointer(&b.part_out),
            gpu.pointer(&b.part_stats),
            gpu.pointer(&b.mixed),
            Arg::Int(b.splits as i32),
        ];
        gpu.launch("combine_parts", ((c.heads, b.batch, 1), c.head_dim as u32), &args)
    }

    fn prefill_attention(&self, b: &Buffers, index: usize) -> Result<(), EngineError> {
        let (gpu, c) = (self.gpu, self.config);
        let (pool, mut row) = (self.pool_start(b, index), 0);
        for s in self.segments {
            let args = [
                gpu.pointer_at(&b.q, row * c.q_width()),
                gpu.pointer_at(&b.keys, pool),
                gpu.pointer_at(&b.values, pool),
                gpu.pointer_at(&b.tables, s.sequence * b.table_len),
                gpu.pointer_at(&b.mixed, row * c.q_width()),
                Arg::Int(s.start as i32),
                Arg::Int(s.len as i32),
                Arg::Int(c.heads as i32),
                self.scale(),
            ];
            let grid = (s.len.div_ceil(64), c.heads, 1);
            gpu.launch("prefill_attention", (grid, 128), &args)?;
            row += s.len;
        }
        Ok(())
    }

    fn finish(&mut self, b: &mut Buffers) -> Result<(), EngineError> {
        let (gpu, c) = (self.gpu, self.config);
        let ends = self.segments.iter().filter(|s| s.last).count();
        if ends == 0 {
            return Ok(());
        }
        self.norm(b, (&self.weights.norm, ends), true)?;
        self.mark(None, Some(Op::Norm))?;
        let head = self.weights.head.as_ref().unwrap_or(&self.weights.embedding);
        gpu.project((head, c.vocab, c.hidden), (&b.normed, ends), &mut b.logits)?;
        self.mark(None, Some(Op::LmHead))?;
        let args = [
            gpu.pointer(&b.logits),
            gpu.pointer(&b.next),
            Arg::Int(c.vocab as i32),
        ];
        gpu.launch("argmax", ((ends, 1, 1), 1024), &args)?;
        self.mark(None, Some(Op::Sample))
    }
}
