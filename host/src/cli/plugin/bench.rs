//! `lm-bench plugin bench`.

mod judge;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Exit, Failure, json, output, table, trimmed};
use crate::plugin::Policy;
use crate::plugin::bench::{BenchDoor, BenchRequest, bench as measure};
use judge::{Estimate, Judged};

/// Flags of `plugin bench`.
#[derive(Debug, Args)]
pub(in crate::cli) struct BenchArgs {
    /// Id, file, or folder with a plugin's files: each door that it has is measured
    #[arg(value_name = "ID|FILE|FOLDER")]
    plugin: String,

    /// Measure this door only; may be given several times
    #[arg(long, value_name = "DOOR")]
    door: Vec<BenchDoor>,

    /// Feed the rows of this recording instead of rows from a seed
    #[arg(long, value_name = "FILE", conflicts_with = "rows")]
    recording: Option<PathBuf>,

    /// Rows of each kind that the plugin takes, made from a seed, lists 128 wide
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rows: u32,

    /// Times that each door is measured, in turn
    #[arg(long, value_name = "N", default_value_t = 31, value_parser = clap::value_parser!(u32).range(6..=10_000))]
    rounds: u32,

    /// Look for plugins in this folder first; may be given several times
    #[arg(long, value_name = "FOLDER")]
    plugin_dir: Vec<PathBuf>,

    /// Measure native plugins, which can do whatever you can
    #[arg(long)]
    allow_native: bool,

    /// Lock file that pins plugins [default: lm-bench.lock, if there is one]
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,

    /// How the result is printed
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    output_format: BenchFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum BenchFormat {
    /// For people
    Table,
    /// For programs
    Json,
}

/// Measures what a plugin costs through each of its doors.
pub(super) fn bench(args: &BenchArgs) -> Result<Exit, Failure> {
    let policy = Policy {
        plugin_dirs: args.plugin_dir.clone(),
        allow_native: args.allow_native,
        lock: args.lock.clone(),
        ..Policy::default()
    };
    let request = BenchRequest {
        target: args.plugin.clone(),
        doors: args.door.clone(),
        recording: args.recording.clone(),
        rows: args.rows,
        rounds: args.rounds,
    };
    let samples = measure(&request, &policy, output::note).map_err(Failure::unusable)?;
    let judged = judge::judge(&samples, args.rounds).map_err(Failure::failed)?;
    let text = match args.output_format {
        BenchFormat::Json => json(&judged)?,
        BenchFormat::Table => report(&judged),
    };
    output::result(&text)?;
    // The figures of a quarantined plugin mean nothing: that, too, is no valid result.
    Ok(if judged.valid { Exit::Valid } else { Exit::Invalid })
}

/// A figure with its interval, in three significant digits.
fn shown(estimate: &Estimate) -> String {
    let Estimate { median, low, high } = estimate;
    let digits = match median.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{median:.digits$} [{low:.digits$}, {high:.digits$}]")
}

fn milliseconds(estimate: Option<&Estimate>) -> String {
    estimate.map_or_else(|| "-".to_owned(), |ns| shown(&ns.times(1e-6)))
}

fn report(judged: &Judged) -> String {
    let mut lines = vec![
        format!("{} {} on {}", judged.id, judged.version, judged.machine),
        format!(
            "{} rows of {} per pass, {} rounds; medians with 95 % intervals",
            judged.rows,
            judged.kinds.join(", "),
            judged.rounds
        ),
        format!(
            "a collector that does nothing: {} ns per row",
            shown(&judged.noop_ns)
        ),
    ];
    let mut figures = table();
    figures.set_header([
        "door",
        "ns per row",
        "less nothing",
        "ratio",
        "checkpoint ms",
        "start ms",
        "cold ms",
        "calls/s",
        "peak KiB",
    ]);
    for door in &judged.doors {
        figures.add_row([
            door.name(),
            shown(&door.row_ns),
            shown(&door.net_ns),
            door.ratio.as_ref().map_or_else(|| "1".to_owned(), shown),
            milliseconds(Some(&door.checkpoint_ns)),
            milliseconds(Some(&door.start_ns)),
            milliseconds(door.cold_start_ns.as_ref()),
            format!("{:.0}", door.calls_per_s),
            door.peak_memory
                .map_or_else(|| "-".to_owned(), |bytes| (bytes / 1_024).to_string()),
        ]);
    }
    lines.extend(trimmed(&figures).lines().map(str::to_owned));
    let first = judged.doors.first().map(judge::JudgedDoor::name);
    lines.push(format!("ratio: to {}", first.unwrap_or_default()));
    if let Some(ratio) = &judged.process_ratio {
        lines.push(format!("a process of its own: {} times in-process", shown(ratio)));
    }
    for left in &judged.left_out {
        lines.push(format!("not measured: {}", left.reason));
    }
    lines.extend(judged.reasons.iter().map(|reason| format!("NOT VALID: {reason}")));
    let lines = lines.iter().map(|line| output::one_line(line) + "\n");
    lines.collect()
}
