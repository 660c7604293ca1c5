//! `lm-bench plugin …`.

use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use comfy_table::{ContentArrangement, Table, TableStyle};
use lm_bench_plugin::Sampling;
use lm_bench_plugin::manifest::Description;

use super::exit::{Exit, Failure};
use super::lock;
use super::output;
use crate::plugin::build_plugin::{BuildDoor, BuildRequest, build};
use crate::plugin::new_plugin::{Language, NewRequest, new_plugin};
use crate::plugin::{Inspection, Listed, Policy, Registry};

/// Subcommands of `plugin`.
#[derive(Debug, Subcommand)]
pub(super) enum PluginCommand {
    /// List the plugins that ids resolve to, and where they are
    List(ListArgs),
    /// Show what a plugin says about itself, without executing it
    Inspect(InspectArgs),
    /// Start a collector: a folder with an example, its tests and a README
    New(NewArgs),
    /// Build a collector for a door: a crate, or a folder with a plugin.toml
    Build(BuildArgs),
    /// Pin plugins: write their digests to a lock file that runs hold them to
    Lock(lock::LockArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Look for plugins in this folder first; may be given several times
    #[arg(long, value_name = "FOLDER")]
    plugin_dir: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct InspectArgs {
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

#[derive(Debug, Args)]
pub(super) struct NewArgs {
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

#[derive(Debug, Args)]
pub(super) struct BuildArgs {
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

/// Does what a subcommand says.
pub(super) fn plugin(command: &PluginCommand) -> Result<Exit, Failure> {
    match command {
        PluginCommand::List(args) => list(args),
        PluginCommand::Inspect(args) => inspect(args),
        PluginCommand::New(args) => new(args),
        PluginCommand::Lock(args) => lock::lock(args),
        PluginCommand::Build(args) => {
            let request = BuildRequest {
                dir: args.dir.clone(),
                door: args.door,
                out: args.out.clone(),
                target_dir: args.target_dir.clone(),
                program: std::env::current_exe().ok(),
            };
            let built = build(&request).map_err(Failure::unusable)?;
            output::result(&format!(
                "{}\n{} bytes, sha256 {}\n",
                built.path.display(),
                built.size,
                built.sha256
            ))?;
            Ok(Exit::Valid)
        }
    }
}

fn new(args: &NewArgs) -> Result<Exit, Failure> {
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

fn registry(dirs: &[PathBuf]) -> Result<Registry, Failure> {
    let policy = Policy {
        plugin_dirs: dirs.to_vec(),
        ..Policy::default()
    };
    Registry::new(&policy).map_err(Failure::unusable)
}

fn list(args: &ListArgs) -> Result<Exit, Failure> {
    let listed = registry(&args.plugin_dir)?.list();
    let text = if args.json {
        json(&listed)?
    } else {
        listing(&listed)
    };
    output::result(&text)?;
    Ok(Exit::Valid)
}

fn inspect(args: &InspectArgs) -> Result<Exit, Failure> {
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

/// A table without the blanks at line ends.
fn trimmed(table: &Table) -> String {
    table
        .lines()
        .fold(String::new(), |text, line| text + line.trim_end() + "\n")
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
