//! The event kinds of contract version 1.0: one table from which the typed columns and rows below, the
//! documentation page `docs/events.md` and the schema of recordings are derived.
//!
//! Each kind has a module with `KIND` (its name), `COLUMNS` (typed column names for
//! [`Want`](crate::Want) and [`Resolved`](crate::Resolved)) and `Row` (what producers and tests append).

use std::borrow::Cow;

use crate::block::{ColumnBuf, EventRow};
use crate::column::{Cell, Column, ColumnDef, KindDef, Level, List, Sym};

use table::{kinds, may_be_nonfinite};

mod codes;
mod table;

pub use codes::{op_code, phase, request_phase};

kinds! {
    /// A request changed its phase.
    request Off {
        /// Number of the request within the run.
        id: u64, "1";
        /// Tenant that the request belongs to.
        tenant: Sym, "{symbol}";
        /// Request class of a mixed workload.
        class: Sym, "{symbol}";
        /// New phase: 0 due, 1 permit, 2 sent, 3 first token, 4 last content, 5 finished, 6 failed, 7 cancelled.
        phase: u8, "{code}";
        /// Prompt tokens of the request, 0 while unknown.
        prompt_tokens: u32, "{token}";
        /// Output tokens so far.
        output_tokens: u32, "{token}";
        /// What failed; the empty symbol when nothing did.
        error: Sym, "{symbol}";
    }

    /// A chunk of output arrived.
    token Off {
        /// Number of the request within the run.
        request: u64, "1";
        /// Index of the chunk's last token within the request's output, from 0.
        index: u32, "1";
        /// Index of the chunk within the request's output, from 0.
        chunk: u32, "1";
        /// Tokens that the chunk carries.
        tokens_in_chunk: u32, "{token}";
    }

    /// A stage of a service chain ended.
    span Off {
        /// Number of the request within the run.
        request: u64, "1";
        /// Name of the stage.
        stage: Sym, "{symbol}";
        /// Start of the stage since the run started.
        start_ns: u64, "ns";
        /// Duration of the stage.
        dur_ns: u64, "ns";
        /// Attempt, from 0; retries count up.
        attempt: u32, "1";
        /// Outcome: 0 ok, 1 failed, 2 fell back, 3 cancelled.
        status: u8, "{code}";
    }

    /// A forward pass ended.
    step Steps {
        /// Number of the forward pass within the run.
        step: u64, "1";
        /// Phase: 0 prefill, 1 decode, 2 mixed.
        phase: u8, "{code}";
        /// Sequences in the step.
        batch: u32, "1";
        /// Tokens computed in the step.
        tokens: u32, "{token}";
        /// Tokens in the KV cache of all sequences after the step.
        context_tokens: u64, "{token}";
        /// Time of the step on the host: its wall time without `measuring_ns`.
        host_ns: u64, "ns";
        /// Time of the step on the device; equals the host's for a CPU engine.
        device_ns: u64, "ns";
        /// Whether a captured graph was replayed: 0 no, 1 yes.
        graph: u8, "{code}";
        /// Time inside the step that the host spent on measuring it (sums for rows, the rows themselves), in no operator's time.
        measuring_ns: u64, "ns";
    }

    /// A request took part in a forward pass.
    sched Steps {
        /// Number of the forward pass within the run.
        step: u64, "1";
        /// Number of the request within the run.
        request: u64, "1";
        /// Phase: 0 prefill, 1 decode, 2 mixed.
        phase: u8, "{code}";
        /// Tokens computed for the request in the step.
        tokens: u32, "{token}";
        /// Prompt tokens taken from a prefix cache instead of being computed.
        cached_tokens: u32, "{token}";
        /// Time the request waited before the step, for its first step; else 0.
        queue_ns: u64, "ns";
    }

    /// State of the KV cache after a step.
    kv_cache Steps {
        /// Blocks that exist.
        blocks_total: u64, "{block}";
        /// Blocks that belong to a sequence.
        blocks_used: u64, "{block}";
        /// Tokens stored in the used blocks.
        tokens_stored: u64, "{token}";
        /// Token slots in one block; all slots of a sequence for a cache that is not paged.
        block_tokens: u32, "{token}";
        /// Prompt tokens found in the prefix cache since the row before; in the first row, since the measured part began.
        hits: u64, "{token}";
        /// Prompt tokens looked up in the prefix cache since the row before.
        queries: u64, "{token}";
        /// Blocks evicted since the row before.
        evictions: u64, "{block}";
    }

    /// A sample of memory use. Device columns are 0 where there is no device.
    memory Steps {
        /// Bytes that the allocator holds on the device.
        device_reserved: u64, "By";
        /// Bytes in use on the device.
        device_used: u64, "By";
        /// Highest value of bytes in use on the device so far.
        device_peak: u64, "By";
        /// Largest free block on the device.
        device_largest_free: u64, "By";
        /// Resident set size of the process.
        rss: u64, "By";
        /// Proportional set size of the process; 0 where the kernel does not tell.
        pss: u64, "By";
        /// Bytes copied from host to device since the row before; in the first row, since the measured part began.
        h2d_bytes: u64, "By";
        /// Bytes copied from device to host since the row before.
        d2h_bytes: u64, "By";
        /// Time spent in copies since the row before.
        copy_ns: u64, "ns";
    }

    /// A telemetry sample of a GPU.
    gpu Steps {
        /// Index of the device.
        device: u32, "1";
        /// Share of time in which a kernel ran, in per cent.
        sm_util: f32, "%", nonfinite;
        /// Share of time in which memory was accessed, in per cent.
        mem_util: f32, "%", nonfinite;
        /// Share of SM cycles with a resident warp, in per cent; NaN where unsupported.
        sm_active: f32, "%", nonfinite;
        /// Share of cycles with the tensor pipe active, in per cent; NaN where unsupported.
        tensor_active: f32, "%", nonfinite;
        /// Share of cycles with DRAM transfers, in per cent; NaN where unsupported.
        dram_active: f32, "%", nonfinite;
        /// Power draw.
        power_mw: u32, "mW";
        /// Energy since the driver was loaded.
        energy_mj: u64, "mJ";
        /// SM clock.
        sm_clock: u32, "MHz";
        /// Memory clock.
        mem_clock: u32, "MHz";
        /// Temperature of the GPU.
        temp: u32, "Cel";
        /// Throttle reasons as NVML's bit mask.
        throttle: u64, "{mask}";
    }

    /// An instrumented operator ended.
    op Ops {
        /// Number of the forward pass within the run.
        step: u64, "1";
        /// Phase: 0 prefill, 1 decode, 2 mixed.
        phase: u8, "{code}";
        /// Layer, from 0; 65535 outside the layers.
        layer: u16, "1";
        /// Operator: 0 embed, 1 norm, 2 qkv, 3 attention, 4 o_proj, 5 router, 6 experts, 7 mlp, 8 lm_head, 9 sample.
        op: u8, "{code}";
        /// Time on the device (wall time for a CPU engine).
        device_ns: u64, "ns";
    }

    /// An attention call ended: one layer of one step, all sequences and heads.
    attention Ops {
        /// Number of the forward pass within the run.
        step: u64, "1";
        /// Phase: 0 prefill, 1 decode, 2 mixed.
        phase: u8, "{code}";
        /// Layer, from 0.
        layer: u16, "1";
        /// Query heads.
        heads: u32, "1";
        /// Key and value heads.
        kv_heads: u32, "1";
        /// Size of a head.
        head_dim: u32, "1";
        /// Query tokens, summed over sequences.
        q_len: u64, "{token}";
        /// Key tokens, summed over sequences.
        kv_len: u64, "{token}";
        /// Whether a causal mask applies: 0 no, 1 yes.
        causal: u8, "{code}";
        /// Floating-point operations of the two matrix products, counting only visible query-key pairs.
        flops: f64, "{flop}";
        /// Least bytes to move: queries, keys, values and output once each.
        bytes: f64, "By";
        /// Time on the device (wall time for a CPU engine).
        device_ns: u64, "ns";
        /// Multiprocessors that the launch could use; 0 on a CPU.
        sm_count: u32, "1";
        /// Bytes read from shared memory by counter; 0 where there are no counters.
        smem_bytes: u64, "By";
        /// Bytes read from DRAM by counter; 0 where there are no counters.
        dram_bytes: u64, "By";
    }

    /// A router assigned the tokens of one layer of one step to experts.
    moe_route Ops {
        /// Number of the forward pass within the run.
        step: u64, "1";
        /// Phase: 0 prefill, 1 decode, 2 mixed.
        phase: u8, "{code}";
        /// Layer, from 0.
        layer: u16, "1";
        /// Tokens routed.
        tokens: u32, "{token}";
        /// Experts chosen per token.
        top_k: u32, "1";
        /// Experts in the layer.
        experts: u32, "1";
        /// Assignments to each expert, those that were dropped afterwards included.
        counts: List<u32>, "1";
        /// Router probability of each expert, summed over the tokens.
        prob_sum: List<f32>, "1";
        /// Assignments that were dropped for want of capacity.
        dropped: u32, "1";
    }

    /// A token was assigned to experts; produced only for a collector that asks for it.
    moe_assign Ops {
        /// Number of the forward pass within the run.
        step: u64, "1";
        /// Layer, from 0.
        layer: u16, "1";
        /// Index of the token within the step.
        token: u32, "1";
        /// Chosen experts, best first.
        expert: List<u32>, "1";
        /// Gate of each chosen expert after normalisation.
        gate: List<f32>, "1";
    }

    /// A tensor was quantised.
    quant Ops {
        /// Number of the forward pass within the run.
        step: u64, "1";
        /// Phase: 0 prefill, 1 decode, 2 mixed, 3 load (weights).
        phase: u8, "{code}";
        /// Layer, from 0; 65535 outside the layers.
        layer: u16, "1";
        /// Name of the tensor: a weight, such as `ffn_down`, or what goes into its product, such as `ffn_down_input`.
        tensor: Sym, "{symbol}";
        /// Number format, such as `e4m3`.
        format: Sym, "{symbol}";
        /// Extent of one scale: `tensor`, `row`, `1x128`, `128x128`.
        granularity: Sym, "{symbol}";
        /// Values in the tensor.
        n: u64, "1";
        /// Largest magnitude of the finite values.
        amax: f32, "1";
        /// Largest scale used: stored value times scale gives the value.
        scale: f32, "1";
        /// Sum of squares of the values.
        sum_sq_ref: f64, "1";
        /// Sum of squares of the differences after the round trip.
        sum_sq_err: f64, "1";
        /// Median over channels of the signal-to-quantisation-noise ratio; infinite where no error arose.
        sqnr_channel_p50: f32, "dB", nonfinite;
        /// Largest magnitude of the differences.
        max_abs_err: f32, "1";
        /// Values beyond the format's largest magnitude before the cast.
        saturated: u64, "1";
        /// Values that were not 0 and became 0.
        underflow: u64, "1";
        /// Values that were NaN or infinite.
        nonfinite: u64, "1";
    }

    /// A kernel ran on the device.
    kernel Kernels {
        /// Name of the kernel.
        name: Sym, "{symbol}";
        /// Number of the forward pass within the run.
        step: u64, "1";
        /// Layer, from 0; 65535 where unknown.
        layer: u16, "1";
        /// Stream.
        stream: u32, "1";
        /// Start on the run's clock.
        start_ns: u64, "ns";
        /// Duration on the device.
        dur_ns: u64, "ns";
        /// Thread blocks in the grid.
        grid: u64, "1";
        /// Threads in a block.
        block: u32, "1";
        /// Registers per thread.
        regs: u32, "1";
        /// Static shared memory per block.
        smem_static: u32, "By";
        /// Dynamic shared memory per block.
        smem_dynamic: u32, "By";
        /// Achieved occupancy, 0 to 1; NaN where unknown.
        occupancy: f32, "1", nonfinite;
    }

    /// A hardware counter was read for a kernel launch.
    counter Kernels {
        /// Name of the kernel.
        kernel: Sym, "{symbol}";
        /// Number of the launch.
        launch: u64, "1";
        /// Number of the forward pass within the run.
        step: u64, "1";
        /// Layer, from 0; 65535 where unknown.
        layer: u16, "1";
        /// Name of the counter as the tool spells it.
        metric: Sym, "{symbol}";
        /// Value in the counter's own unit.
        value: f64, "1", nonfinite;
    }

    /// Anything else worth a point on the time line.
    mark Off {
        /// Name of the mark.
        name: Sym, "{symbol}";
        /// Value.
        value: f64, "1", nonfinite;
    }
}

/// The layer number that stands for "outside the layers".
pub const NO_LAYER: u16 = u16::MAX;
