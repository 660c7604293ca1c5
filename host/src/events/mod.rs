//! The event stream: producers record rows, a thread brings them to the sinks, and they can be stored and replayed.
//!
//! ```text
//! Recorder (one per thread) -> blocks -> bounded queue -> Collection -> EventSink (collectors, recording)
//!         ^------------- empty blocks ---------------------'
//! ```
//!
//! Recording takes no lock and never waits: a full queue drops its oldest block, and each block carries the number
//! of rows recorded before it, so the count of lost rows is exact.

mod collection;
#[cfg(test)]
mod control_tests;
mod delivery;
mod document;
mod exchange;
mod kind_table;
mod pump;
mod recorder;
mod row_recorder;
pub mod recording;
mod sampling;
mod symbols;
#[cfg(test)]
mod tests;

pub use collection::{
    CollectMode, Collected, Collection, CollectionError, CollectionSetup, DEFAULT_BUDGET_BYTES,
    SINK_STACK_BYTES, Watch,
};
pub use delivery::{Delivery, EventSink, KindTotals, SinkError, Totals, Weights};
pub use document::markdown;
pub use kind_table::{KindError, KindTable};
pub use recorder::{LIVE_FLUSH_NS, Recorder, RecorderConfig};
pub use recording::{Recording, RecordingError, RecordingWriter};
pub use row_recorder::RowRecorder;
pub use sampling::sampled_steps;
pub use symbols::SymbolTable;
