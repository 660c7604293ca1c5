//! `lm-bench plugin check`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use comfy_table::Cell;
use serde::Deserialize as _;

use super::args::{ConfigEntry, config_entry, config_of, limit_entry, limits_of};
use super::{Exit, Failure, json, output, table, trimmed};
use crate::plugin::build_plugin::{self, BuildDoor, BuildRequest};
use crate::plugin::contract::{self, Check, ContractReport, ContractRequest, Verdict};
use crate::plugin::{Limits, Policy, Requests};

/// Flags of `plugin check`.
#[derive(Debug, Args)]
pub(in crate::cli) struct CheckArgs {
    /// Built file, id, or folder of a project: that is built first, for every door that it has
    #[arg(value_name = "FILE|ID|FOLDER")]
    target: String,

    /// Door to build a project for [default: all that it has]
    #[arg(long)]
    door: Option<BuildDoor>,

    /// Folder for what is kept between builds of a project, by default in its own target folder
    #[arg(long, value_name = "FOLDER")]
    target_dir: Option<PathBuf>,

    /// Replay this recording and compare with NAME.metrics.json beside it; may be given several times [default: those in the
    /// project's folder golden]
    #[arg(long, value_name = "NAME.lmrec")]
    golden: Vec<PathBuf>,

    /// Write what the plugin reports of the recordings as what is expected of it
    #[arg(long)]
    bless: bool,

    /// Shape of the result on stdout
    #[arg(long, default_value = "table")]
    output_format: Shape,

    #[command(flatten)]
    policy: PolicyArgs,
}

/// What the plugin may do, as in a run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Plugin")]
struct PolicyArgs {
    /// Configure the plugin; VALUE is JSON, or text where it is not; may be given several times
    #[arg(long, value_name = "ID.KEY=VALUE", value_parser = config_entry)]
    plugin_config: Vec<ConfigEntry>,

    /// Change what the plugin may take, such as batch_ms=200; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = limit_entry)]
    plugin_limit: Vec<(String, i64)>,

    /// Look for plugins in this folder first; may be given several times
    #[arg(long, value_name = "FOLDER")]
    plugin_dir: Vec<PathBuf>,

    /// Lock file that pins plugins [default: lm-bench.lock, if there is one]
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,

    /// Permit a native plugin (.so): it can do whatever you can
    #[arg(long)]
    allow_native: bool,

    /// Load a native plugin into this process instead of one of its own: a crash or an endless loop then ends the check
    #[arg(long)]
    in_process: bool,
}

/// Shapes of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// A table for people.
    Table,
    /// One JSON document.
    Json,
}

/// Checks a plugin.
pub(super) fn check(args: &CheckArgs) -> Result<Exit, Failure> {
    let folder = Path::new(&args.target);
    let built = tempfile::tempdir().map_err(Failure::failed)?;
    let is_project = folder.is_dir() && build_plugin::is_buildable(folder);
    let (targets, golden) = if is_project {
        (project(args, folder, built.path())?, recordings(args, folder)?)
    } else {
        refuse_build_flags(args)?;
        (vec![args.target.clone()], args.golden.clone())
    };
    if args.bless && golden.is_empty() {
        return Err(Failure::unusable(
            "--bless writes what is expected of a recording, and there is none: name one with --golden",
        ));
    }
    let policy = policy(args, is_project)?;
    if policy.in_process {
        output::note(
            "warning: --in-process loads native code into this process: if it crashes or loops, the check ends without a result",
        );
    }
    let mut reports = Vec::new();
    for (at, target) in targets.into_iter().enumerate() {
        let request = ContractRequest {
            requests: Requests {
                plugins: vec![target],
                defaults: false,
                config: config_of(&args.policy.plugin_config),
                replay: true,
                ..Requests::default()
            },
            golden: golden.clone(),
            // All doors of a project have to report what the first one does.
            bless: args.bless && at == 0,
        };
        reports.extend(contract::check(&request, &policy).map_err(Failure::unusable)?);
    }
    let text = match args.output_format {
        Shape::Json => json(&reports)?,
        Shape::Table => reports.iter().map(listing).collect::<Vec<_>>().join("\n"),
    };
    output::result(&text)?;
    let failed = reports.iter().any(|report| report.failed() > 0);
    Ok(if failed { Exit::Unusable } else { Exit::Valid })
}

/// Builds a project for its doors and gives the files.
fn project(args: &CheckArgs, folder: &Path, out: &Path) -> Result<Vec<String>, Failure> {
    let request = |door| BuildRequest {
        dir: folder.to_owned(),
        door,
        out: out.to_owned(),
        target_dir: args.target_dir.clone(),
        program: std::env::current_exe().ok(),
    };
    let doors = match args.door {
        Some(door) => vec![door],
        None => {
            // Which door is asked about does not matter.
            let doors = build_plugin::doors(&request(BuildDoor::Wasm));
            doors.map_err(Failure::unusable)?.to_vec()
        }
    };
    let build = |door| {
        let built = build_plugin::build(&request(door)).map_err(Failure::unusable)?;
        Ok(built.path.to_string_lossy().into_owned())
    };
    doors.into_iter().map(build).collect()
}

/// The recordings that are named, or those of a project.
fn recordings(args: &CheckArgs, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !args.golden.is_empty() {
        return Ok(args.golden.clone());
    }
    let golden = folder.join("golden");
    if !golden.is_dir() {
        return Ok(Vec::new());
    }
    let cannot = |error: std::io::Error| Failure::unusable(format!("{}: {error}", golden.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&golden).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        if path.extension().is_some_and(|extension| extension == "lmrec") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// What only says something about the building of a project is no flag for a file or an id.
fn refuse_build_flags(args: &CheckArgs) -> Result<(), Failure> {
    let flag = match (&args.door, &args.target_dir) {
        (Some(_), _) => "--door",
        (_, Some(_)) => "--target-dir",
        (None, None) => return Ok(()),
    };
    Err(Failure::unusable(format!(
        "{flag} is for the folder of a project, with a Cargo.toml or a plugin.toml, and {} is none: leave it out",
        args.target
    )))
}

fn policy(args: &CheckArgs, built: bool) -> Result<Policy, Failure> {
    let flags = &args.policy;
    let limits = limits_of(&flags.plugin_limit);
    let limits = Limits::deserialize(toml::Value::Table(limits)).map_err(Failure::unusable)?;
    limits.validate().map_err(Failure::unusable)?;
    Ok(Policy {
        // Who builds a project runs it: the build asks it what it is.
        allow_native: flags.allow_native || built,
        in_process: flags.in_process,
        limits,
        plugin_dirs: flags.plugin_dir.clone(),
        lock: flags.lock.clone(),
        ..Policy::default()
    })
}

fn listing(report: &ContractReport) -> String {
    let mut table = table();
    table.set_header(["check", "verdict", ""]);
    for check in &report.checks {
        let (verdict, text) = words(check);
        table.add_row([
            Cell::new(&check.name),
            Cell::new(verdict),
            Cell::new(printable(&text)),
        ]);
    }
    let count = |of: fn(&Verdict) -> bool| report.checks.iter().filter(|check| of(&check.verdict)).count();
    let passed = count(|verdict| matches!(verdict, Verdict::Pass { .. }));
    let idle = count(|verdict| matches!(verdict, Verdict::NotApplicable { .. }));
    let ContractReport {
        id, version, door, ..
    } = report;
    format!(
        "{id} {version}, {door}\n\n{}\n{passed} passed, {} failed, {idle} not applicable\n",
        trimmed(&table),
        report.failed()
    )
}

fn words(check: &Check) -> (&'static str, String) {
    match &check.verdict {
        Verdict::Pass { note } => ("pass", note.clone()),
        Verdict::Fail { what, at: None } => ("FAIL", what.clone()),
        Verdict::Fail { what, at: Some(at) } => ("FAIL", format!("{at}: {what}")),
        Verdict::NotApplicable { reason } => ("n/a", reason.clone()),
    }
}

/// Text in which a plugin may have its say, without control characters.
fn printable(text: &str) -> String {
    text.chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect()
}
