//! `lm-bench plugin …`: one file per subcommand.

mod bench;
mod build;
mod check;
mod doctor;
mod inspect;
mod list;
mod lock;
mod new;

use std::path::PathBuf;

use clap::Subcommand;
use comfy_table::{ContentArrangement, Table, TableStyle};

use super::args;
use super::exit::{Exit, Failure};
use super::output;
use crate::plugin::{Policy, Registry};

/// Subcommands of `plugin`.
#[derive(Debug, Subcommand)]
pub(super) enum PluginCommand {
    /// List the plugins that ids resolve to, and where they are
    List(list::ListArgs),
    /// Show what a plugin says about itself, without executing it
    Inspect(inspect::InspectArgs),
    /// Tell whether a plugin would run, and why not, without executing it
    Doctor(doctor::DoctorArgs),
    /// Measure what a plugin costs through each of its doors
    Bench(bench::BenchArgs),
    /// Start a collector: a folder with an example, its tests and a README
    New(new::NewArgs),
    /// Build a collector for a door: a crate, or a folder with a plugin.toml
    Build(build::BuildArgs),
    /// Check that a plugin keeps the contract: a built file, an id, or a project, which is built first
    Check(check::CheckArgs),
    /// Pin plugins: write their digests to a lock file that runs hold them to
    Lock(lock::LockArgs),
}

/// Does what a subcommand says.
pub(super) fn plugin(command: &PluginCommand) -> Result<Exit, Failure> {
    match command {
        PluginCommand::List(args) => list::list(args),
        PluginCommand::Inspect(args) => inspect::inspect(args),
        PluginCommand::Doctor(args) => doctor::doctor(args),
        PluginCommand::Bench(args) => bench::bench(args),
        PluginCommand::New(args) => new::new(args),
        PluginCommand::Build(args) => build::build(args),
        PluginCommand::Check(args) => check::check(args),
        PluginCommand::Lock(args) => lock::lock(args),
    }
}

fn registry(dirs: &[PathBuf]) -> Result<Registry, Failure> {
    let policy = Policy {
        plugin_dirs: dirs.to_vec(),
        ..Policy::default()
    };
    Registry::new(&policy).map_err(Failure::unusable)
}

fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value)
        .map(|text| text + "\n")
        .map_err(Failure::failed)
}

fn table() -> Table {
    let mut table = Table::new();
    table
        .load_style(TableStyle::new())
        .set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// A table without the blanks at line ends.
fn trimmed(table: &Table) -> String {
    table
        .lines()
        .fold(String::new(), |text, line| text + line.trim_end() + "\n")
}
