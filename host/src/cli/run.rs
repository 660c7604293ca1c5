//! `lm-bench run`.

use std::path::Path;

use super::args::RunArgs;
use super::exit::{Exit, Failure};
use super::output;
use super::progress::Shown;
use crate::plan::{self, OutputFormat, RunPlan};
use crate::report::{self, TableStyle};
use crate::run::{self, Finished, Progress, RunError, Stop};

/// Runs the plan that flags and file give.
pub(super) fn run(args: &RunArgs) -> Result<Exit, Failure> {
    let plan = plan(args)?;
    check_target(plan.save_result.as_deref())?;
    let stop = stop_on_signal();
    let mut shown = Shown::detect();
    let finished = run::offline(&plan, &mut shown, &stop).map_err(|error| ended(&mut shown, &error))?;
    // What was measured is shown even if it cannot be saved.
    let saved = save(&finished, plan.save_result.as_deref());
    let exit = show(&finished, plan.output_format, plan.detail)?;
    saved.map(|()| exit)
}

/// The wish that Ctrl-C expresses. The first signal ends the run after the step or the batch; the second ends the program,
/// whatever it is doing.
pub(super) fn stop_on_signal() -> Stop {
    let stop = Stop::default();
    let handler = stop.clone();
    let on_signal = move || {
        if handler.requested() {
            std::process::exit(Exit::Interrupted as i32);
        }
        handler.request();
    };
    // Without a handler Ctrl-C ends the program at once and there is no partial result: worth a word, not the run.
    if let Err(error) = ctrlc::set_handler(on_signal) {
        output::note(&format!(
            "warning: Ctrl-C will end the run without a result: {error}"
        ));
    }
    stop
}

fn plan(args: &RunArgs) -> Result<RunPlan, Failure> {
    let file = args
        .plan
        .as_deref()
        .map_or_else(|| Ok(toml::Table::new()), plan::read);
    let flags = args.overlay().map_err(Failure::unusable)?;
    plan::resolve(file.map_err(Failure::unusable)?, flags).map_err(Failure::unusable)
}

/// The failure that an error amounts to, with the progress out of its way.
pub(super) fn ended(shown: &mut Shown, error: &RunError) -> Failure {
    shown.done();
    if matches!(error, RunError::Interrupted) {
        Failure {
            exit: Exit::Interrupted,
            message: error.to_string(),
        }
    } else if error.is_unusable_input() {
        Failure::unusable(error)
    } else {
        Failure::failed(error)
    }
}

/// Refuses a file that the record could not be saved to, before the run's time is spent.
pub(super) fn check_target(path: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    report::check_writable(path)
        .map_err(|error| Failure::unusable(format!("cannot write {}: {error}", path.display())))
}

/// Saves the record, where that was asked for.
pub(super) fn save(finished: &Finished, path: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    report::save(&finished.record, path)
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
}

/// Prints a result and gives the exit code that it deserves.
pub(super) fn show(finished: &Finished, format: OutputFormat, detail: bool) -> Result<Exit, Failure> {
    let text = match format {
        OutputFormat::Table => report::table(
            &finished.record,
            &TableStyle {
                detail,
                ..TableStyle::of_stdout()
            },
        ),
        OutputFormat::Json => report::json(&finished.record),
        OutputFormat::Jsonl => report::jsonl(&finished.record),
        OutputFormat::Csv => report::csv(&finished.record),
    };
    for remark in &finished.remarks {
        output::note(remark);
    }
    output::result(&text)?;
    if let Some(error) = &finished.recording_failed {
        return Err(Failure::failed(error));
    }
    Ok(match finished {
        Finished {
            interrupted: true, ..
        } => Exit::Interrupted,
        Finished { record, .. } if !record.verdict.valid => Exit::Invalid,
        Finished {
            quarantined: true, ..
        } => Exit::Quarantined,
        _ => Exit::Valid,
    })
}
