//! `lm-bench pack trust …`.

use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::json;

use super::super::exit::{Exit, Failure};
use super::{FormatArgs, failure, now, print, print_json, trust_file, trusted};
use crate::plugin::pack::{KeyError, PackError, PublicKey, TrustStore};

/// Subcommands of `pack trust`.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum TrustCommand {
    /// Take signatures of a key from now on
    Add(AddArgs),
    /// List the keys whose signatures are taken
    List(FormatArgs),
    /// Take signatures of a key no longer, those of installed packs included
    Remove(RemoveArgs),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AddArgs {
    /// Name for the key, such as its vendor's
    #[arg(value_name = "NAME")]
    name: String,

    /// Public key: a file, or the text that starts with lmb-pub-ed25519:
    #[arg(value_name = "FILE|KEY")]
    key: String,

    #[command(flatten)]
    format: FormatArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RemoveArgs {
    /// Name of the key
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    format: FormatArgs,
}

pub(super) fn trust(command: &TrustCommand) -> Result<Exit, Failure> {
    match command {
        TrustCommand::Add(args) => add(args),
        TrustCommand::List(format) => list(format),
        TrustCommand::Remove(args) => {
            TrustStore::remove(&trust_file()?, &args.name).map_err(Failure::unusable)?;
            let lines = [("no longer trusted", args.name.clone())];
            print(&args.format, &lines, &json!({ "name": args.name }))?;
            Ok(Exit::Valid)
        }
    }
}

fn add(args: &AddArgs) -> Result<Exit, Failure> {
    let failed = |error: KeyError| {
        let path = args.key.clone().into();
        failure(PackError::Key { path, error })
    };
    // A private key given by mistake is not repeated in the message.
    let key: PublicKey = match args.key.starts_with("lmb-") {
        true => args.key.parse().map_err(Failure::unusable)?,
        false => PublicKey::read(Path::new(&args.key)).map_err(failed)?,
    };
    TrustStore::add(&trust_file()?, &args.name, key, now()).map_err(Failure::unusable)?;
    let lines = [("trusted", args.name.clone()), ("fingerprint", key.fingerprint())];
    let value = json!({ "name": args.name, "key": key, "fingerprint": key.fingerprint() });
    print(&args.format, &lines, &value)?;
    Ok(Exit::Valid)
}

fn list(format: &FormatArgs) -> Result<Exit, Failure> {
    let store = trusted()?;
    if format.output_format == super::Format::Json {
        let fingerprinted = |known: &crate::plugin::pack::TrustedKey| {
            json!({
                "name": known.name,
                "key": known.key,
                "fingerprint": known.key.fingerprint(),
                "added": known.added,
            })
        };
        let keys: Vec<_> = store.keys().iter().map(fingerprinted).collect();
        print_json(&keys)?;
        return Ok(Exit::Valid);
    }
    let lines: Vec<(&str, String)> = store
        .keys()
        .iter()
        .map(|known| {
            (
                known.name.as_str(),
                format!("{}  added {}", known.key.fingerprint(), known.added),
            )
        })
        .collect();
    let none = [("no key is trusted", String::new())];
    let lines = if lines.is_empty() { none.as_slice() } else { &lines };
    print(format, lines, &())?;
    Ok(Exit::Valid)
}
