//! What is only looked at: `verify`, `list`.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::super::exit::{Exit, Failure};
use super::{Format, FormatArgs, failure, now, print, print_json, trusted};
use crate::plugin::pack::{
    InstalledPack, InstalledPacks, PackManifest, PackedPlugin, examine, user_store, user_trust,
};

#[derive(Debug, Args)]
pub(in crate::cli) struct VerifyArgs {
    /// Archive or folder
    #[arg(value_name = "FILE|DIR")]
    pack: PathBuf,

    /// Let a pack pass that is whole, but not signed, or signed by an unknown key
    #[arg(long)]
    allow_unsigned: bool,

    #[command(flatten)]
    format: FormatArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ListArgs {
    #[command(flatten)]
    format: FormatArgs,
}

pub(super) fn verify(args: &VerifyArgs) -> Result<Exit, Failure> {
    let examined = examine(&args.pack, &trusted()?, now()).map_err(failure)?;
    let verdict = &examined.verdict;
    let mut lines = vec![("state", verdict.to_string())];
    if let Some(manifest) = &examined.manifest {
        lines.push(("pack", format!("{} {}", manifest.name, manifest.version)));
        lines.push(("about", manifest.about.clone()));
        lines.push(("licence", manifest.license.clone()));
        lines.extend(
            manifest
                .plugins
                .iter()
                .map(|plugin| ("plugin", plugin_line(plugin))),
        );
    }
    let value = json!({
        "state": verdict.state,
        "message": verdict.to_string(),
        "signer": verdict.signer,
        "problem": verdict.problem,
        "pack": examined.manifest,
    });
    print(&args.format, &lines, &value)?;
    Ok(if verdict.is_accepted(args.allow_unsigned) {
        Exit::Valid
    } else {
        Exit::Unusable
    })
}

fn plugin_line(plugin: &PackedPlugin) -> String {
    let target = plugin
        .target
        .as_deref()
        .map(|target| format!(" for {target}"))
        .unwrap_or_default();
    format!(
        "{} ({}{target}, {} bytes, sha256 {})",
        plugin.id,
        door_name(plugin),
        plugin.size,
        plugin.sha256
    )
}

fn door_name(plugin: &PackedPlugin) -> &'static str {
    crate::plugin::Door::from(plugin.door).name()
}

pub(super) fn list(args: &ListArgs) -> Result<Exit, Failure> {
    let root = user_store().map_err(failure)?.root().to_owned();
    let mut packs = InstalledPacks::new(root, user_trust().ok()).list();
    // A run compares the files that it uses; here all of them are.
    let trust = trusted()?;
    for pack in packs.iter_mut().filter(|pack| pack.manifest.is_some()) {
        pack.verdict = examine(&pack.place.path, &trust, now()).map_err(failure)?.verdict;
    }
    if args.format.output_format == Format::Json {
        let values: Vec<Value> = packs.iter().map(as_json).collect();
        print_json(&values)?;
        return Ok(Exit::Valid);
    }
    let names: Vec<String> = packs
        .iter()
        .map(|pack| format!("{} {}", pack.place.name, pack.place.version))
        .collect();
    let mut lines: Vec<(&str, String)> = Vec::new();
    for (pack, name) in packs.iter().zip(&names) {
        lines.push((name, state(pack)));
        let plugins = pack.manifest.iter().flat_map(|manifest| &manifest.plugins);
        lines.extend(plugins.map(|plugin| {
            let other = if plugin.is_for_host() {
                ""
            } else {
                ", not for this machine"
            };
            ("", format!("{} ({}{other})", plugin.id, door_name(plugin)))
        }));
    }
    let none = [("no pack is installed", String::new())];
    let lines = if lines.is_empty() { none.as_slice() } else { &lines };
    print(&args.format, lines, &())?;
    Ok(Exit::Valid)
}

fn state(pack: &InstalledPack) -> String {
    let verdict = &pack.verdict;
    match (pack.is_usable(), verdict.is_accepted(false)) {
        (true, true) => verdict.to_string(),
        (true, false) => format!("{verdict}; allowed by you"),
        (false, _) => format!("REFUSED: {verdict}"),
    }
}

fn as_json(pack: &InstalledPack) -> Value {
    json!({
        "name": pack.place.name,
        "version": pack.place.version,
        "folder": pack.place.path,
        "usable": pack.is_usable(),
        "state": pack.verdict.state,
        "message": pack.verdict.to_string(),
        "signer": pack.verdict.signer,
        "installed": pack.receipt.as_ref().map(|receipt| receipt.installed),
        "allow_unsigned": pack.receipt.as_ref().map(|receipt| receipt.allow_unsigned),
        "plugins": pack.manifest.as_ref().map(|manifest: &PackManifest| &manifest.plugins),
    })
}
