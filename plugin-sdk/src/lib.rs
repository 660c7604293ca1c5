//! Write a metric collector for lm-bench.
//!
//! TODO-DOC
#![deny(missing_docs)]

mod batch;
mod block;
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub mod builtin;
mod collector;
mod column;
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub mod dylib;
#[doc(hidden)]
pub mod erased;
mod export;
mod fault;
pub mod kinds;
mod layers;
pub mod manifest;
pub mod math;
mod metric;
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
pub use metric::{Direction, Labels, Metric, MetricDef, MetricKind, MetricSink, Sink, Value};
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
