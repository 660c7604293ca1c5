//! A collector without its type: the one shape that every door builds on.

use crate::batch::Batch;
use crate::collector::{Collector, Cx, Host};
use crate::fault::Fault;
use crate::json;
use crate::metric::{MetricSink, Sink};
use crate::run_info::RunInfo;
use crate::subscription::{Resolved, Subscription};

/// A running collector.
pub trait Instance: Send {
    /// See [`Collector::on_batch`].
    ///
    /// # Errors
    /// What the collector returned.
    fn on_batch(&mut self, batch: &Batch<'_>, host: &mut dyn Host) -> Result<(), Fault>;
    /// Tells of rows that were lost after the last batch of a kind; see [`Collector::on_loss`].
    fn lost_after(&mut self, kind: u16, rows: u64);
    /// See [`Collector::checkpoint`].
    ///
    /// # Errors
    /// What the collector returned.
    fn checkpoint(&mut self, sink: &mut dyn MetricSink) -> Result<(), Fault>;
    /// See [`Collector::finish`].
    ///
    /// # Errors
    /// What the collector returned.
    fn finish(self: Box<Self>, sink: &mut dyn MetricSink) -> Result<(), Fault>;
}

struct Typed<C>(C);

impl<C: Collector> Instance for Typed<C> {
    fn on_batch(&mut self, batch: &Batch<'_>, host: &mut dyn Host) -> Result<(), Fault> {
        if batch.lost_before > 0 {
            self.0.on_loss(batch.kind, batch.lost_before);
        }
        self.0.on_batch(batch, &mut Cx::new(host))
    }

    fn lost_after(&mut self, kind: u16, rows: u64) {
        self.0.on_loss(kind, rows);
    }

    fn checkpoint(&mut self, sink: &mut dyn MetricSink) -> Result<(), Fault> {
        self.0.checkpoint(&mut Sink::new(sink))
    }

    fn finish(self: Box<Self>, sink: &mut dyn MetricSink) -> Result<(), Fault> {
        self.0.finish(&mut Sink::new(sink))
    }
}

/// The message of a panic.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a message")
}

/// JSON schema of a collector's configuration.
pub fn config_schema<C: Collector>() -> String {
    schema_of::<C::Config>()
}

/// JSON schema of a configuration.
pub fn schema_of<T: schemars::JsonSchema>() -> String {
    let schema = schemars::schema_for!(T);
    serde_json::to_string(&schema).expect("a generated schema has only string keys")
}

/// Parses configuration and run facts, and asks the collector what it wants.
///
/// # Errors
/// A configuration fault naming the offending key, or what the collector returned.
pub fn subscribe<C: Collector>(config: &str, run: &str) -> Result<Subscription, Fault> {
    C::subscribe(&parse_config::<C>(config)?, &parse_run(run)?)
}

/// Parses configuration and run facts, and starts the collector.
///
/// # Errors
/// A configuration fault naming the offending key, or what the collector returned.
pub fn open<C: Collector>(config: &str, run: &str, resolved: &Resolved) -> Result<Box<dyn Instance>, Fault> {
    let collector = C::new(parse_config::<C>(config)?, &parse_run(run)?, resolved)?;
    Ok(Box::new(Typed(collector)))
}

fn parse_config<C: Collector>(config: &str) -> Result<C::Config, Fault> {
    parse::<C::Config>(config)
}

/// Parses a configuration.
///
/// # Errors
/// A configuration fault naming the offending key.
pub fn parse<T: serde::de::DeserializeOwned>(config: &str) -> Result<T, Fault> {
    json::from_str::<T>(if config.is_empty() { "{}" } else { config })
        .map_err(|error| Fault::config(format!("configuration: {error}")))
}

/// Parses run facts.
///
/// # Errors
/// When the host sent something else.
pub fn parse_run(run: &str) -> Result<RunInfo, Fault> {
    json::from_str(run).map_err(|error| Fault::contract(format!("run facts: {error}")))
}
