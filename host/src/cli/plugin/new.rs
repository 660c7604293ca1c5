//! `lm-bench plugin new`.

use std::path::PathBuf;

use clap::Args;

use super::{Exit, Failure, output};
use crate::plugin::new_plugin::{Language, NewRequest, new_plugin};

/// Flags of `plugin new`.
#[derive(Debug, Args)]
pub(in crate::cli) struct NewArgs {
    /// Folder to create; its name is the plugin's id: a-z, 0-9 and -
    #[arg(value_name = "NAME")]
    folder: PathBuf,

    /// Language to write it in
    #[arg(long)]
    lang: Language,

    /// Folder of the SDK that a plugin in Rust depends on, by default the one that belongs to this program
    #[arg(long, value_name = "FOLDER")]
    sdk: Option<PathBuf>,
}

/// Writes the first files of a collector.
pub(super) fn new(args: &NewArgs) -> Result<Exit, Failure> {
    let request = NewRequest {
        folder: args.folder.clone(),
        language: args.lang,
        sdk: args.sdk.clone(),
    };
    let folder = new_plugin(&request).map_err(Failure::unusable)?;
    output::result(&format!(
        "{}\nits README.md says how to test, build and run it\n",
        folder.display()
    ))?;
    Ok(Exit::Valid)
}
