//! `lm-bench plugin list`.

use std::path::PathBuf;

use clap::Args;

use super::{Exit, Failure, json, output, registry, table, trimmed};
use crate::plugin::Listed;

/// Flags of `plugin list`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ListArgs {
    /// Look for plugins in this folder first; may be given several times
    #[arg(long, value_name = "FOLDER")]
    plugin_dir: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists the plugins that ids resolve to.
pub(super) fn list(args: &ListArgs) -> Result<Exit, Failure> {
    let listed = registry(&args.plugin_dir)?.list();
    let text = if args.json {
        json(&listed)?
    } else {
        listing(&listed)
    };
    output::result(&text)?;
    Ok(Exit::Valid)
}

fn listing(listed: &[Listed]) -> String {
    let mut table = table();
    table.set_header(["id", "version", "door", "from", "measures"]);
    for plugin in listed {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        let place = plugin
            .path
            .as_ref()
            .map_or_else(|| "built in".to_owned(), |path| path.display().to_string());
        let about = match (&plugin.problem, &plugin.shadowed_by) {
            (Some(problem), _) => format!("CANNOT BE USED: {problem}"),
            (None, Some(other)) => format!("NOT TAKEN: {other} comes first"),
            (None, None) => text(&plugin.about),
        };
        let door = plugin.door.map_or("-", |door| door.name()).to_owned();
        table.add_row([text(&plugin.id), text(&plugin.version), door, place, about]);
    }
    trimmed(&table)
}
