//! `lm-bench plugin doctor`.

use std::path::PathBuf;

use clap::Args;

use super::{Exit, Failure, json, output};
use crate::plugin::Policy;
use crate::plugin::doctor::{Diagnosis, diagnose};

/// Flags of `plugin doctor`.
#[derive(Debug, Args)]
pub(in crate::cli) struct DoctorArgs {
    /// Id or file
    #[arg(value_name = "ID|PATH")]
    plugin: String,

    /// Look for plugins in this folder first; may be given several times
    #[arg(long, value_name = "FOLDER")]
    plugin_dir: Vec<PathBuf>,

    /// Judge as if native plugins were allowed, as the same flag of `run` does
    #[arg(long)]
    allow_native: bool,

    /// Judge as for a deterministic run, as the same flag of `run` does
    #[arg(long)]
    deterministic: bool,

    /// Lock file that pins plugins [default: lm-bench.lock, if there is one]
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Tells whether a plugin would run, and why not.
pub(super) fn doctor(args: &DoctorArgs) -> Result<Exit, Failure> {
    let policy = Policy {
        plugin_dirs: args.plugin_dir.clone(),
        allow_native: args.allow_native,
        deterministic: args.deterministic,
        lock: args.lock.clone(),
        ..Policy::default()
    };
    let diagnosis = diagnose(&args.plugin, &policy);
    let text = if args.json {
        json(&diagnosis)?
    } else {
        report(&diagnosis)
    };
    output::result(&text)?;
    Ok(match diagnosis.problem {
        None => Exit::Valid,
        Some(_) => Exit::Unusable,
    })
}

fn report(diagnosis: &Diagnosis) -> String {
    let mut lines = Vec::new();
    for place in &diagnosis.places {
        let path = place.path.as_ref().map(|path| path.display().to_string());
        let path = path.map(|path| path + ": ").unwrap_or_default();
        lines.push(format!("{:<21}{path}{}", place.origin, place.state));
        for file in &place.files {
            let name = file.path.display();
            lines.push(format!("  {name}: {}", file.state));
        }
    }
    if let Some(plugin) = &diagnosis.plugin {
        let what = format!("{} {}, {}", plugin.id, plugin.version, plugin.door);
        lines.push(format!("{:<21}{what}", "plugin"));
        if let (Some(path), Some(sha256)) = (&plugin.path, &plugin.sha256) {
            lines.push(format!("{:<21}{}", "file", path.display()));
            lines.push(format!("{:<21}{sha256}", "sha256"));
        }
        lines.push(format!("{:<21}{}", "requires", plugin.requires.join(", ")));
    }
    lines.push(match &diagnosis.problem {
        None => format!("verdict: {} would run", diagnosis.target),
        Some(problem) => format!("verdict: {} would not run: {problem}", diagnosis.target),
    });
    lines.extend(diagnosis.advice.iter().map(|advice| format!("do: {advice}")));
    // Names and texts come from files that anyone may have written.
    let lines = lines.iter().map(|line| output::one_line(line) + "\n");
    lines.collect()
}
