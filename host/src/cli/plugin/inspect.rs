//! `lm-bench plugin inspect`.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use lm_bench_plugin::Sampling;
use lm_bench_plugin::manifest::Description;

use super::{Exit, Failure, json, output, registry, table, trimmed};
use crate::plugin::Inspection;

/// Flags of `plugin inspect`.
#[derive(Debug, Args)]
pub(in crate::cli) struct InspectArgs {
    /// Id or file
    #[arg(value_name = "ID|PATH")]
    plugin: String,

    /// Look for plugins in this folder first; may be given several times
    #[arg(long, value_name = "FOLDER")]
    plugin_dir: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Shows what a plugin says about itself.
pub(super) fn inspect(args: &InspectArgs) -> Result<Exit, Failure> {
    let inspection = registry(&args.plugin_dir)?
        .inspect(&args.plugin)
        .map_err(Failure::unusable)?;
    let text = if args.json {
        json(&inspection)?
    } else {
        description(&inspection)
    };
    output::result(&text)?;
    Ok(Exit::Valid)
}

/// What a plugin wants, and the schema of its configuration. The texts are the plugin's own.
fn describe(text: &mut String, description: &Description) {
    match &description.subscription {
        None => *text += "wants      depends on the run or on its configuration\n",
        Some(subscription) => {
            for want in &subscription.wants {
                let required = want.columns.iter().cloned();
                let optional = want.optional.iter().map(|name| format!("{name} (optional)"));
                let columns: Vec<String> = required.chain(optional).collect();
                let sampling = match want.sampling {
                    Sampling::All => String::new(),
                    Sampling::EveryNth(n) => format!(" (one row in {n})"),
                };
                *text += &format!("wants      {}{sampling}: {}\n", want.kind, columns.join(", "));
            }
        }
    }
    let schema = serde_json::to_string_pretty(&description.config).unwrap_or_default();
    *text += &format!("config     {}\n", schema.replace('\n', "\n           "));
    *text = text
        .chars()
        .map(|character| match character {
            '\n' => '\n',
            character if character.is_control() => ' ',
            character => character,
        })
        .collect();
}

fn description(inspection: &Inspection) -> String {
    let manifest = &inspection.manifest;
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        writeln!(text, "{name:<11}{value}").expect("a String takes all text");
    };
    line("id", &manifest.id);
    line("version", &manifest.version);
    line("measures", &manifest.about);
    line("licence", &manifest.license);
    line("door", inspection.door.name());
    if let Some(path) = &inspection.path {
        line("file", &path.display().to_string());
    }
    if let (Some(size), Some(sha256)) = (inspection.size, &inspection.sha256) {
        line("size", &format!("{size} bytes"));
        line("sha256", sha256);
    }
    line("sdk", &manifest.sdk);
    line("requires", &manifest.requires.join(", "));
    if let Some(imports) = &inspection.imports {
        line("imports", &imports.join(", "));
    }
    if let Some(problem) = &inspection.problem {
        line("PROBLEM", problem);
    }
    match &inspection.description {
        Some(description) => describe(&mut text, description),
        None => text += "wants      not recorded by its build (lm-bench plugin build records it)\n",
    }
    let mut metrics = table();
    metrics.set_header(["metric", "unit", "kind", "better", "formula"]);
    for metric in &manifest.metrics {
        let word = |value: &dyn std::fmt::Debug| format!("{value:?}").to_lowercase();
        metrics.add_row([
            metric.name.clone(),
            metric.unit.clone(),
            word(&metric.kind),
            word(&metric.direction),
            metric.formula.clone(),
        ]);
    }
    text + "\n" + &trimmed(&metrics)
}
