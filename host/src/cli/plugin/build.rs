//! `lm-bench plugin build`.

use std::path::PathBuf;

use clap::Args;

use super::{Exit, Failure, output};
use crate::plugin::build_plugin::{self, BuildDoor, BuildRequest};

/// Flags of `plugin build`.
#[derive(Debug, Args)]
pub(in crate::cli) struct BuildArgs {
    /// Folder of the crate, or of the plugin.toml
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Door to build for
    #[arg(long)]
    door: BuildDoor,

    /// Folder for the built file
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,

    /// Folder for what is kept between builds, by default in the plugin's own target folder
    #[arg(long, value_name = "FOLDER")]
    target_dir: Option<PathBuf>,
}

/// Builds a collector for a door.
pub(super) fn build(args: &BuildArgs) -> Result<Exit, Failure> {
    let request = BuildRequest {
        dir: args.dir.clone(),
        door: args.door,
        out: args.out.clone(),
        target_dir: args.target_dir.clone(),
        program: std::env::current_exe().ok(),
    };
    let built = build_plugin::build(&request).map_err(Failure::unusable)?;
    output::result(&format!(
        "{}\n{} bytes, sha256 {}\n",
        built.path.display(),
        built.size,
        built.sha256
    ))?;
    Ok(Exit::Valid)
}
