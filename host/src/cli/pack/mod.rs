//! `lm-bench pack …`.

mod make;
mod show;
mod trust;
mod change;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

use super::exit::{Exit, Failure};
use super::output;
use crate::clock::Clock;
use crate::plugin::pack::{PackError, Timestamp, TrustStore, user_trust};

/// Subcommands of `pack`.
#[derive(Debug, Subcommand)]
pub(super) enum PackCommand {
    /// Make a pair of keys: a private one to sign with, a public one for others to trust
    Keygen(make::KeygenArgs),
    /// Build an archive from a folder with a pack.toml
    Build(make::BuildArgs),
    /// Sign an archive or a folder
    Sign(make::SignArgs),
    /// Say whether a pack is whole, and who signed it
    Verify(show::VerifyArgs),
    /// Install a pack for this user
    Install(change::InstallArgs),
    /// List installed packs
    List(show::ListArgs),
    /// Remove an installed pack
    Remove(change::RemoveArgs),
    /// Say whose signatures are taken
    #[command(subcommand)]
    Trust(trust::TrustCommand),
}

/// Shape of what is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON document.
    Json,
}

#[derive(Debug, Args)]
pub(super) struct FormatArgs {
    /// Shape of what is printed
    #[arg(long, value_name = "SHAPE", default_value = "text")]
    output_format: Format,
}

/// Does what a subcommand says.
pub(super) fn pack(command: &PackCommand) -> Result<Exit, Failure> {
    match command {
        PackCommand::Keygen(args) => make::keygen(args),
        PackCommand::Build(args) => make::build_pack(args),
        PackCommand::Sign(args) => make::sign_pack(args),
        PackCommand::Verify(args) => show::verify(args),
        PackCommand::Install(args) => change::install(args),
        PackCommand::List(args) => show::list(args),
        PackCommand::Remove(args) => change::remove(args),
        PackCommand::Trust(command) => trust::trust(command),
    }
}

/// Prints a result: lines of names and values for people, or the value as JSON.
fn print(format: &FormatArgs, lines: &[(&str, String)], value: &impl Serialize) -> Result<(), Failure> {
    match format.output_format {
        Format::Json => print_json(value),
        Format::Text => {
            let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 2;
            let text = lines.iter().fold(String::new(), |text, (name, value)| {
                text + format!("{name:<width$}{value}").trim_end() + "\n"
            });
            output::result(&text)
        }
    }
}

fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::failed)?;
    output::result(&(text + "\n"))
}

fn failure(error: PackError) -> Failure {
    if error.is_failure() {
        Failure::failed(error)
    } else {
        Failure::unusable(error)
    }
}

fn now() -> Timestamp {
    Timestamp::from_unix(Clock::start().unix_ms() / 1_000)
}

fn trust_file() -> Result<PathBuf, Failure> {
    user_trust().map_err(failure)
}

fn trusted() -> Result<TrustStore, Failure> {
    TrustStore::read(&trust_file()?).map_err(Failure::unusable)
}
