//! `lm-bench plugin lock`.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;

use super::{Exit, Failure, output};
use crate::plugin::pack::{Lock, LockError};
use crate::plugin::{Door, Policy, Registry};

/// Flags of `plugin lock`.
#[derive(Debug, Args)]
pub(in crate::cli) struct LockArgs {
    /// Plugins to pin, as they are found now
    #[arg(value_name = "ID|PATH", required = true)]
    plugins: Vec<String>,

    /// Look for plugins in this folder first; may be given several times
    #[arg(long, value_name = "FOLDER")]
    plugin_dir: Vec<PathBuf>,

    /// Lock file to write; what it pins of other plugins stays [default: lm-bench.lock]
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
}

/// Pins plugins to the bytes that they have now.
pub(super) fn lock(args: &LockArgs) -> Result<Exit, Failure> {
    let policy = Policy {
        plugin_dirs: args.plugin_dir.clone(),
        ..Policy::default()
    };
    let registry = Registry::new(&policy).map_err(Failure::unusable)?;
    let mut lock = Lock::open_or_new(args.lock.as_deref()).map_err(Failure::unusable)?;
    let mut text = String::new();
    for target in &args.plugins {
        let entry = registry.lock_entry(target).map_err(Failure::unusable)?;
        let door = Door::from(entry.door);
        let _ = writeln!(text, "{} {door} {} {}", entry.id, entry.sha256, entry.source);
        lock.pin(entry);
    }
    lock.save().map_err(|error| match error {
        LockError::Io { .. } => Failure::failed(error),
        _ => Failure::unusable(error),
    })?;
    output::result(&text)?;
    Ok(Exit::Valid)
}
