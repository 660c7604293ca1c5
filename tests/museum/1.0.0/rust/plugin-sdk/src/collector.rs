//! The trait that a plugin author implements.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::fault::Fault;
use crate::metric::{MetricDef, Sink};
use crate::run_info::RunInfo;
use crate::subscription::{Resolved, Subscription};

/// Who a collector is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Id: `[a-z][a-z0-9-]{1,62}`, the same as the crate's name.
    pub id: &'static str,
    /// Version of the collector, semver.
    pub version: &'static str,
    /// What it measures, in one line.
    pub about: &'static str,
    /// SPDX licence expression.
    pub license: &'static str,
}

/// Severity of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum LogLevel {
    /// Only for the collector's author.
    Debug = 0,
    /// Worth knowing.
    Info = 1,
    /// The result may be less than expected.
    Warn = 2,
    /// Something is wrong.
    Error = 3,
}

/// What the host does for a collector during a call.
pub trait Host {
    /// Writes a line to the run's log.
    fn log(&mut self, level: LogLevel, text: &str);
    /// The text of a symbol id; `None` for an id that no event carried.
    fn symbol(&mut self, id: u32) -> Option<String>;
}

/// Lends the host to [`Collector::on_batch`]: log and symbol look-up, nothing else. There is no clock, no random
/// number and no I/O, so that live runs, replays and all doors give the same metrics.
pub struct Cx<'a> {
    host: &'a mut dyn Host,
}

impl<'a> Cx<'a> {
    /// A context backed by `host`.
    pub fn new(host: &'a mut dyn Host) -> Self {
        Self { host }
    }

    /// Writes a line to the run's log. The host limits lines and bytes.
    pub fn log(&mut self, level: LogLevel, text: &str) {
        self.host.log(level, text);
    }

    /// The text of a symbol id; `None` for an id that no event carried.
    ///
    /// Costs a call to the host: keep what you look up.
    pub fn symbol(&mut self, id: u32) -> Option<String> {
        self.host.symbol(id)
    }
}

/// Texts of the symbols looked up so far, so that the host is asked once for each.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    texts: BTreeMap<u32, String>,
}

impl Symbols {
    /// The text of a symbol id.
    ///
    /// # Errors
    /// A [`Fault::data`] for an id that the host does not know.
    pub fn text(&mut self, id: u32, cx: &mut Cx<'_>) -> Result<&str, Fault> {
        use std::collections::btree_map::Entry;
        match self.texts.entry(id) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => {
                let text = cx.symbol(id);
                let text = text.ok_or_else(|| Fault::data(format!("no text for symbol {id}")))?;
                Ok(new.insert(text))
            }
        }
    }
}

/// A metric collector.
///
/// The host calls [`subscribe`](Self::subscribe), then [`new`](Self::new), then
/// [`on_batch`](Self::on_batch) and [`on_loss`](Self::on_loss) any number of times with
/// [`checkpoint`](Self::checkpoint) in between any number of times, then [`finish`](Self::finish) once. Calls never overlap, and there is none after an error.
pub trait Collector: Sized + Send + 'static {
    /// Who the collector is.
    const INFO: Info;
    /// Each metric that it may report.
    const METRICS: &'static [MetricDef];
    /// Configuration. Use `#[serde(default, deny_unknown_fields)]`: the host starts from `{}` and a user's
    /// spelling mistake must not pass.
    type Config: DeserializeOwned + schemars::JsonSchema;

    /// Says what to deliver.
    ///
    /// # Errors
    /// A [`Fault::config`] when the configuration does not suit the run.
    fn subscribe(config: &Self::Config, run: &RunInfo) -> Result<Subscription, Fault>;

    /// Creates the collector, once its columns are known.
    ///
    /// # Errors
    /// As [`subscribe`](Self::subscribe), or when a column is missing.
    fn new(config: Self::Config, run: &RunInfo, resolved: &Resolved) -> Result<Self, Fault>;

    /// Takes one batch.
    ///
    /// # Errors
    /// A [`Fault::data`] ends the collector: what its last checkpoint reported is kept as partial.
    fn on_batch(&mut self, batch: &Batch<'_>, cx: &mut Cx<'_>) -> Result<(), Fault>;

    /// Learns that rows of a kind were lost, in the order in which it would have got them: just before the batch whose
    /// [`Batch::lost_before`] says the same, or before [`finish`](Self::finish) when no batch of the kind followed.
    /// `kind` is the [`Batch::kind`]. By default nothing is done, which suits means and shares.
    fn on_loss(&mut self, kind: u16, rows: u64) {
        let _ = (kind, rows);
    }

    /// Reports the metrics of all batches so far, without changing them.
    ///
    /// # Errors
    /// A fault ends the collector.
    fn checkpoint(&mut self, sink: &mut Sink<'_>) -> Result<(), Fault>;

    /// Reports the final metrics; by default a last [`checkpoint`](Self::checkpoint).
    ///
    /// # Errors
    /// A fault leaves the last checkpoint as partial result.
    fn finish(mut self, sink: &mut Sink<'_>) -> Result<(), Fault> {
        self.checkpoint(sink)
    }
}
