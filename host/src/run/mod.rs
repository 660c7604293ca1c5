//! Drivers: what joins engine, events, collectors and report into a run.

mod collecting;
mod driver;
mod engine;
mod error;
mod facts;
mod load;
mod observer;
mod offline;
mod record;
mod replay;
mod request_rows;

pub use error::RunError;
pub use load::{LoadPlan, load};
pub use offline::offline;
pub use replay::{ReplayPlan, replay};

use crate::report::RunRecord;
pub use crate::stop::Stop;

/// Shows the user how far a run is.
pub trait Progress {
    /// A new part of the run begins.
    fn stage(&mut self, text: &str);
    /// Something that the user should know before the run goes on.
    fn warn(&mut self, text: &str);
    /// `done` of `all` steps are finished.
    fn steps(&mut self, done: u64, all: u64);
    /// Nothing more will be shown.
    fn done(&mut self);
}

/// What a run leaves.
#[derive(Debug)]
pub struct Finished {
    /// The record, also when the run was interrupted.
    pub record: RunRecord,
    /// Lines for the user beside the record: what plugins logged, what was not taken.
    pub remarks: Vec<String>,
    /// Why the recording that was asked for does not exist.
    pub recording_failed: Option<RunError>,
    /// Whether a plugin was quarantined.
    pub quarantined: bool,
    /// Whether the user ended the run early.
    pub interrupted: bool,
}
