//! The one shape of a loaded plugin, whatever its door.

use std::sync::Arc;

use lm_bench_plugin::{Batch, Host, LogLevel, Resolved, Subscription};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::gather::Report;
use super::log::LogBook;
use crate::events::SymbolTable;

/// How a plugin is connected to this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Door {
    /// Linked into the program.
    #[serde(rename = "built-in")]
    Builtin,
    /// A native library.
    Dylib,
    /// A WebAssembly component in a sandbox.
    Wasm,
}

impl Door {
    /// The word used on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Builtin => "built-in",
            Self::Dylib => "dylib",
            Self::Wasm => "wasm",
        }
    }
}

impl std::fmt::Display for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What a plugin may ask of the host during a call.
#[derive(Debug)]
pub(crate) struct HostSide {
    /// The plugin's log.
    pub(crate) log: LogBook,
    /// Texts of the symbols that were known when the last batch came, by id. Symbols are only ever added.
    symbols: Vec<Arc<str>>,
}

impl HostSide {
    /// A host that knows no symbol yet.
    pub(crate) fn new(log: LogBook) -> Self {
        Self {
            log,
            symbols: Vec::new(),
        }
    }

    /// Learns the symbols that are new since the last batch.
    pub(crate) fn learn(&mut self, table: &SymbolTable) {
        let known = self.symbols.len() as u32;
        self.symbols.extend((known..).map_while(|id| table.text(id)));
    }

    /// Learns the texts of the symbols after those that are known.
    pub(crate) fn learn_texts(&mut self, texts: &[String]) {
        self.symbols
            .extend(texts.iter().map(|text| Arc::from(text.as_str())));
    }

    /// The texts of the symbols from an id on.
    pub(crate) fn texts_from(&self, id: usize) -> &[Arc<str>] {
        self.symbols.get(id..).unwrap_or_default()
    }

    /// The text of a symbol.
    pub(crate) fn symbol_text(&self, id: u32) -> Option<&str> {
        self.symbols.get(id as usize).map(AsRef::as_ref)
    }
}

impl Host for HostSide {
    fn log(&mut self, level: LogLevel, text: &str) {
        self.log.write(level, text);
    }

    fn symbol(&mut self, id: u32) -> Option<String> {
        self.symbol_text(id).map(str::to_owned)
    }
}

/// A loaded plugin, its code ready to be called.
///
/// The caller keeps the order `describe? subscribe open (on_batch | checkpoint)* lost_after* finish`, and calls nothing after a
/// [`Failure`]. What a call returns is copied: nothing of the plugin's memory is referred to.
pub(crate) trait Session: Send {
    /// JSON schema of the plugin's configuration, where its own code tells it.
    ///
    /// # Errors
    /// When the call fails, or it does not.
    fn describe(&mut self) -> Result<String, Failure>;

    /// What the plugin wants; arguments are configuration and run facts as JSON.
    ///
    /// # Errors
    /// When the call fails.
    fn subscribe(&mut self, config: &str, run: &str) -> Result<Subscription, Failure>;

    /// Starts the collector; arguments are configuration and run facts as JSON.
    ///
    /// # Errors
    /// When the call fails.
    fn open(&mut self, config: &str, run: &str, resolved: &Resolved) -> Result<(), Failure>;

    /// Delivers a batch.
    ///
    /// # Errors
    /// When the call fails.
    fn on_batch(&mut self, batch: &Batch<'_>) -> Result<(), Failure>;

    /// Tells of rows of a kind, by its place in the subscription, that were lost after its last batch.
    ///
    /// # Errors
    /// When the call fails.
    fn lost_after(&mut self, kind: u16, rows: u64) -> Result<(), Failure>;

    /// The metrics of all batches so far.
    ///
    /// # Errors
    /// When the call fails.
    fn checkpoint(&mut self) -> Result<Report, Failure>;

    /// The final metrics.
    ///
    /// # Errors
    /// When the call fails.
    fn finish(&mut self) -> Result<Report, Failure>;

    /// The host as the plugin sees it.
    fn host(&mut self) -> &mut HostSide;

    /// Most memory that the plugin held, where it can be told.
    fn peak_memory(&self) -> Option<u64>;

    /// Fuel that its calls have used so far, where calls are given fuel.
    fn fuel(&self) -> Option<u64> {
        None
    }

    /// Whether a call that exceeds its time limit is interrupted. One that is not can only be ended afterwards.
    fn interrupts(&self) -> bool {
        false
    }

    /// Lets go of the plugin's code. Called once, after the last call; the log may still grow.
    fn end(&mut self) {}
}
