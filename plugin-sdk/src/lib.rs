//! Write a metric collector for lm-bench.
//!
//! lm-bench drives LLM inference and turns what happens into a stream of events: forward passes, requests, operators,
//! router decisions, quantised tensors ([`kinds`] lists them all). A collector subscribes to some columns of some kinds,
//! receives them in batches, and reports metrics. The same source file becomes
//!
//! * a **built-in**, linked into the program;
//! * a **native library** (`.so`), for code that must reach native libraries or the last nanosecond;
//! * a **component** (`.wasm`), sandboxed: a user can run it without trusting its author.
//!
//! All three give the same numbers, to the bit.
//!
//! # A complete collector
//!
//! It reports the share of decode steps that were slower than a limit. The crate's manifest needs
//! `lm-bench-plugin`, `serde` and `schemars`; its name is the collector's id. For a native library or a component it is
//! built as `cdylib`, which `lm-bench plugin build` asks for itself.
//!
//! ```
//! use lm_bench_plugin::kinds::{phase, step};
//! use lm_bench_plugin::{
//!     Batch, Col, Collector, Cx, Direction, Fault, Info, MetricDef, Resolved, RunInfo, Sink, Subscription, Want,
//! };
//!
//! /// Each metric is declared: its name, unit, direction, formula and labels stand in the built file.
//! const SLOW: MetricDef = MetricDef::gauge("slow_decode_step_ratio", "1")
//!     .better(Direction::Lower)
//!     .formula("decode steps with host_ns > limit_ms * 1e6 / decode steps")
//!     .about("Share of decode steps that a user would notice.");
//!
//! /// What a user may set: `--plugin-config slow-steps.limit_ms=20`.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! #[serde(default, deny_unknown_fields)]
//! struct Config {
//!     /// Steps above this are slow.
//!     limit_ms: u32,
//! }
//!
//! impl Default for Config {
//!     fn default() -> Self {
//!         Self { limit_ms: 50 }
//!     }
//! }
//!
//! struct SlowSteps {
//!     limit_ns: u64,
//!     kind: u16,
//!     phase: Col<u8>,
//!     host_ns: Col<u64>,
//!     steps: f64,
//!     slow: f64,
//!     rows: u64,
//! }
//!
//! impl Collector for SlowSteps {
//!     const INFO: Info = Info {
//!         id: "slow-steps",
//!         version: "1.0.0",
//!         about: "Share of slow decode steps",
//!         license: "MIT",
//!     };
//!     const METRICS: &'static [MetricDef] = &[SLOW];
//!     type Config = Config;
//!
//!     fn subscribe(config: &Config, _run: &RunInfo) -> Result<Subscription, Fault> {
//!         if config.limit_ms == 0 {
//!             return Err(Fault::config("limit_ms is 0: give a time above it"));
//!         }
//!         let want = Want::kind(step::KIND).column(step::COLUMNS.phase).column(step::COLUMNS.host_ns);
//!         Ok(Subscription::new([want]))
//!     }
//!
//!     fn new(config: Config, _run: &RunInfo, resolved: &Resolved) -> Result<Self, Fault> {
//!         let kind = resolved.kind(step::KIND)?;
//!         Ok(Self {
//!             limit_ns: u64::from(config.limit_ms) * 1_000_000,
//!             kind: kind.id,
//!             phase: kind.column(step::COLUMNS.phase)?,
//!             host_ns: kind.column(step::COLUMNS.host_ns)?,
//!             steps: 0.0,
//!             slow: 0.0,
//!             rows: 0,
//!         })
//!     }
//!
//!     fn on_batch(&mut self, batch: &Batch<'_>, _cx: &mut Cx<'_>) -> Result<(), Fault> {
//!         if batch.kind == self.kind {
//!             for (&phase, &host_ns) in batch.get(self.phase).iter().zip(batch.get(self.host_ns)) {
//!                 if phase == phase::DECODE {
//!                     self.rows += 1;
//!                     self.steps += batch.weight;
//!                     self.slow += if host_ns > self.limit_ns { batch.weight } else { 0.0 };
//!                 }
//!             }
//!         }
//!         Ok(())
//!     }
//!
//!     fn checkpoint(&mut self, sink: &mut Sink<'_>) -> Result<(), Fault> {
//!         // Without a step this reports "unavailable" and why, never 0.
//!         sink.ratio(&SLOW, &[], self.rows, (self.slow, self.steps));
//!         Ok(())
//!     }
//! }
//!
//! lm_bench_plugin::export!(SlowSteps);
//!
//! // In a crate, this is a #[test].
//! fn main() {
//!     let mut test = lm_bench_plugin::testing::CollectorTest::<SlowSteps>::new().config(r#"{"limit_ms":20}"#);
//!     for host_ms in [10, 30, 15, 40] {
//!         test.row(&step::Row { phase: phase::DECODE, host_ns: host_ms * 1_000_000, ..Default::default() });
//!     }
//!     test.row(&step::Row { phase: phase::PREFILL, host_ns: 90_000_000, ..Default::default() });
//!     test.metrics().assert("slow_decode_step_ratio", &[], 0.5);
//! }
//! ```
//!
//! # Life cycle
//!
//! 1. [`Collector::subscribe`] sees configuration and run, and says what to deliver. It may be called more than once.
//! 2. [`Collector::new`] learns where the columns are. A required column that the host lacks ends here with a clear
//!    message; an optional one is `None`.
//! 3. [`Collector::on_batch`] gets batches of one kind each, at least one row and at most the `max_rows` asked for.
//!    [`Collector::on_loss`] tells where rows are missing between them, and after the last one.
//! 4. [`Collector::checkpoint`] comes any number of times in between and reports everything so far. It must change
//!    nothing.
//! 5. [`Collector::finish`] comes once.
//!
//! Calls never overlap, and none follows a fault or a panic: the collector is then quarantined, its last checkpoint is
//! kept as *partial*, and the run goes on. Return a [`Fault`] for events that contradict themselves; do not guess.
//!
//! # Weights and losses
//!
//! Kinds of level `ops` and `kernels` are recorded in one step of `N`; [`Batch::weight`] tells how many events a row
//! stands for. Sums must count it, counts of *samples* must not. A collector never slows the engine: when it cannot keep
//! up, rows are dropped and [`Collector::on_loss`] tells how many, to the last one. A share survives that, a rate per wall
//! time does not. Rows of one kind keep their order; rows of different kinds have none.
//!
//! # Same numbers through each door
//!
//! * Logarithms, roots and the like come from [`math`], never from `f64`'s own methods: those differ between platforms in
//!   the last bit.
//! * No `HashMap`: its order differs from run to run. Use `BTreeMap`, or [`PhaseLayers`]. Symbol ids differ between a run
//!   and its replay, so order by text or by first appearance.
//! * Long sums in [`math::Sum`], means and deviations in [`math::Moments`].
//! * `usize` has 32 bits in a component: count in `u64` or `f64`.
//! * No clock, no random number, no thread, no file, no environment: [`Cx`] offers log and symbol look-up and nothing
//!   else.
//!
//! [`testing::CollectorTest`] finds dependence on batch boundaries and on the order of kinds.
//!
//! # Limits
//!
//! By default, and changeable by the user: 64 MiB of memory, 100 ms per batch, 5 s for each other call, [`MAX_METRICS`]
//! metrics, names of at most 128 bytes of `[a-z0-9_.]`, at most 16 labels with values of at most 128 bytes, 200 log lines
//! per second. A metric that was not declared, or a value that is not finite, is refused. A collector whose detail could
//! exceed the limit leaves it out and says so with [`Sink::unavailable`].
//!
//! # Doors
//!
//! | door | built by | what is added |
//! |---|---|---|
//! | built-in | linking the crate into the program | registration at link time |
//! | native library | `lm-bench plugin build DIR --door dylib --out FOLDER` | the C entry `lmb_entry_v1`, the manifest in section `.lmb.manifest` |
//! | component | `lm-bench plugin build DIR --door wasm --out FOLDER` | the world of `wit/1.0.0`, the manifest in custom section `lmb:manifest` |
//!
//! `plugin build` also asks what it has built for the schema of its configuration and its default subscription, and
//! writes the answer into the file ([`manifest::Description`]).
//!
//! [`export!`] does all of it. Use it once per crate: two native entries cannot share a file.
#![deny(missing_docs)]

mod batch;
mod block;
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub mod builtin;
mod collector;
mod column;
mod columns;
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub mod dylib;
#[doc(hidden)]
pub mod erased;
mod export;
mod fault;
mod json;
pub mod kinds;
mod layers;
pub mod manifest;
pub mod math;
mod metric;
mod probe;
mod run_info;
mod subscription;
pub mod testing;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod wasm;

pub use batch::Batch;
pub use block::{Block, ColumnBuf, EventRow};
pub use collector::{Collector, Cx, Host, Info, LogLevel, Symbols};
pub use column::{
    Cell, Col, Column, ColumnData, ColumnDef, Data, ElementType, KindDef, Level, List, Lists, Sym,
};
pub use fault::{Fault, FaultCode};
pub use layers::{PhaseLayers, layer_label};
pub use metric::{Direction, Labels, MAX_METRICS, Metric, MetricDef, MetricKind, MetricSink, Sink, Value};
pub use probe::{Probe, ProbeColumn, ProbeHost, ProbeKind, ProbeSink};
pub use run_info::{ModelInfo, Peak, RunInfo};
pub use subscription::{
    DEFAULT_MAX_ROWS, Resolved, ResolvedColumn, ResolvedKind, Sampling, Subscription, Want,
};

/// For the export macro only.
#[doc(hidden)]
pub mod __private {
    #[cfg(not(target_arch = "wasm32"))]
    pub use inventory;
    #[cfg(not(target_arch = "wasm32"))]
    pub use lm_bench_abi as abi;
}
