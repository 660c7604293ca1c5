//! What users change: `install`, `remove`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::super::exit::{Exit, Failure};
use super::super::output;
use super::{FormatArgs, failure, now, print, trusted};
use crate::plugin::pack::{Installed, Receipt, examine, user_store};

#[derive(Debug, Args)]
pub(in crate::cli) struct InstallArgs {
    /// Archive or folder
    #[arg(value_name = "FILE|DIR")]
    pack: PathBuf,

    /// Install a pack that is not signed, or signed by an unknown key: you vouch for it
    #[arg(long)]
    allow_unsigned: bool,

    #[command(flatten)]
    format: FormatArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RemoveArgs {
    /// The pack; with its version where several are installed
    #[arg(value_name = "NAME[@VERSION]")]
    pack: String,

    #[command(flatten)]
    format: FormatArgs,
}

pub(super) fn install(args: &InstallArgs) -> Result<Exit, Failure> {
    let examined = examine(&args.pack, &trusted()?, now()).map_err(failure)?;
    let (content, manifest) = examined
        .accept(&args.pack, args.allow_unsigned)
        .map_err(failure)?;
    let store = user_store().map_err(failure)?;
    // Noted only where it is needed: a pack whose key is trusted now is refused when that ends.
    let vouched = !examined.verdict.is_accepted(false);
    let receipt = Receipt::new(content, now(), vouched);
    let installed = store.install(content, manifest, &receipt).map_err(failure)?;
    if vouched {
        output::note(&format!("warning: {}; you vouch for it", examined.verdict));
    }
    let (word, did) = match installed {
        Installed::New => ("installed", "installed"),
        Installed::Unchanged => ("unchanged", "was installed already"),
        Installed::Renewed => (
            "renewed",
            "was installed already; its signature or permission is renewed",
        ),
    };
    let folder = store
        .root()
        .join(&manifest.name)
        .join(manifest.version.to_string());
    let label = format!("{} {}", manifest.name, manifest.version);
    let ids: std::collections::BTreeSet<&str> =
        manifest.plugins.iter().map(|plugin| plugin.id.as_str()).collect();
    let ids: Vec<&str> = ids.into_iter().collect();
    let lines = [
        ("pack", format!("{label} {did}")),
        ("signature", examined.verdict.to_string()),
        ("plugins", ids.join(", ")),
        ("folder", folder.display().to_string()),
    ];
    let value = json!({
        "result": word,
        "name": manifest.name,
        "version": manifest.version,
        "plugins": ids,
        "folder": folder,
        "state": examined.verdict.state,
        "message": examined.verdict.to_string(),
    });
    print(&args.format, &lines, &value)?;
    Ok(Exit::Valid)
}

pub(super) fn remove(args: &RemoveArgs) -> Result<Exit, Failure> {
    let removed = user_store()
        .and_then(|store| store.remove(&args.pack))
        .map_err(failure)?;
    let lines = [("removed", format!("{} {}", removed.name, removed.version))];
    let value = json!({ "name": removed.name, "version": removed.version });
    print(&args.format, &lines, &value)?;
    Ok(Exit::Valid)
}
