//! One misbehaviour, and what must come of it.

use std::path::Path;

use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};

use crate::stage::{Ended, Stage, expected, metrics_beside};

/// What must come of a misbehaviour.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expect {
    /// Exit code 3: the plugin alone is out, for this reason, and has no result. Alternatives are split by `|`.
    Quarantined(&'static str),
    /// As [`Expect::Quarantined`], and what it reported before is kept and marked as partial.
    Partial(&'static str),
    /// Exit code 0: it concerns nobody, and the plugin's own metrics are whole.
    Harmless,
    /// Exit code 1 before anything runs: the file is none that this program loads.
    Refused(&'static str),
    /// With `--in-process` the program ends with it; the risk was stated before.
    Stated,
}

impl Expect {
    /// The exit code of the program where it is the program's own.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Quarantined(_) | Self::Partial(_) => "3",
            Self::Harmless => "0",
            Self::Refused(_) => "1",
            Self::Stated => "the plugin's",
        }
    }

    /// What the report or the refusal says.
    pub(crate) fn says(self) -> &'static str {
        match self {
            Self::Quarantined(text) | Self::Partial(text) | Self::Refused(text) => text,
            Self::Harmless => "",
            Self::Stated => "loads it into this process",
        }
    }
}

/// Makes the plugin in a folder and gives its file name.
pub(crate) type Make = Box<dyn Fn(&Path) -> String + Send + Sync>;

/// Name of the file that plugins are told to harm, in the home.
pub(crate) const WRITTEN: &str = "written-by-a-plugin";

/// What the collectors of this corpus report of the whole recording: indices 0 to 3 of five requests and 1,000 for each of the
/// three rows that were lost after them; the number of rows.
pub(crate) const WHOLE: &[(&str, u64)] = &[("index_sum", 3_030), ("rows", 20)];

/// Version of the running Linux.
fn kernel() -> (u32, u32) {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release
        .split(|byte: char| !byte.is_ascii_digit())
        .map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// A misbehaviour.
pub(crate) struct Case {
    /// `door/what`.
    pub(crate) name: String,
    /// The plugin's id.
    pub(crate) id: &'static str,
    pub(crate) make: Make,
    /// Configuration of the plugin.
    pub(crate) config: Vec<(&'static str, String)>,
    /// Further arguments.
    pub(crate) args: Vec<&'static str>,
    /// Linux that can prevent it.
    pub(crate) kernel: (u32, u32),
    pub(crate) expect: Expect,
}

impl Case {
    pub(crate) fn trial(self) -> Trial {
        let ignored = kernel() < self.kernel;
        Trial::test(self.name.clone(), move || self.run().map_err(Failed::from)).with_ignored_flag(ignored)
    }

    fn run(&self) -> Result<(), String> {
        let stage = Stage::new();
        let file = (self.make)(stage.home());
        let mut args = vec![format!("--plugin=./{file}")];
        let target = stage.home().join(WRITTEN).display().to_string();
        let config = self.config.iter().cloned().chain([("path", target)]);
        if !self.config.is_empty() {
            args.extend(
                config.map(|(key, value)| format!("--plugin-config={}.{key}={}", self.id, json!(value))),
            );
        }
        args.extend(self.args.iter().map(|arg| (*arg).to_owned()));
        let ended = stage.replay(&args)?;
        self.judge(&ended, &file)
            .map_err(|what| format!("{what}\n{}\n{}", ended.status, ended.stderr))
    }

    fn judge(&self, ended: &Ended, file: &str) -> Result<(), String> {
        if !ended.written.is_empty() {
            return Err(format!("these were written: {:?}", ended.written));
        }
        if ended.stderr.contains("panicked at host") || ended.stderr.contains('\u{1b}') {
            return Err("the program panicked, or sent escape sequences to the terminal".to_owned());
        }
        let code = match self.expect {
            Expect::Stated => return stated(ended, file),
            Expect::Refused(reason) => return refused(ended, file, reason),
            Expect::Harmless => 0,
            Expect::Quarantined(_) | Expect::Partial(_) => 3,
        };
        if ended.status.code() != Some(code) {
            return Err(format!("the exit code is not {code}"));
        }
        let record: Value = serde_json::from_slice(&ended.stdout)
            .map_err(|error| format!("stdout is not one JSON document: {error}"))?;
        if metrics_beside(&record, self.id) != expected() {
            return Err("the metrics of other plugins changed".to_owned());
        }
        self.judge_account(&record)?;
        left_behind(&ended.stderr)
    }

    /// Holds the plugin's account and metrics against what is expected.
    fn judge_account(&self, record: &Value) -> Result<(), String> {
        let plugins = record["plugins"].as_array().cloned().unwrap_or_default();
        let (own, others): (Vec<&Value>, Vec<&Value>) =
            plugins.iter().partition(|plugin| plugin["id"] == self.id);
        if let Some(other) = others.iter().find(|other| other["faults"] != json!([])) {
            return Err(format!("another plugin is blamed: {other}"));
        }
        let [own] = own.as_slice() else {
            return Err(format!("{} is not in the report", self.id));
        };
        let faults = own["faults"].as_array().cloned().unwrap_or_default();
        let metrics = record["metrics"].as_array().cloned().unwrap_or_default();
        let metrics: Vec<Value> = metrics
            .into_iter()
            .filter(|metric| metric["plugin"] == self.id)
            .collect();
        let valued = metrics.iter().filter(|metric| !metric["value"].is_null()).count();
        let (reason, partial) = match self.expect {
            Expect::Quarantined(reason) => (reason, false),
            Expect::Partial(reason) => (reason, true),
            Expect::Harmless | Expect::Refused(_) | Expect::Stated => {
                let whole = |metric: &Value| {
                    WHOLE
                        .iter()
                        .any(|(name, value)| metric["name"] == *name && metric["value"] == *value)
                };
                return if faults.is_empty() && metrics.iter().any(whole) {
                    Ok(())
                } else {
                    Err(format!("it was held against the plugin: {own}, {metrics:?}"))
                };
            }
        };
        let text = match faults.as_slice() {
            [fault] => fault.as_str().unwrap_or_default(),
            other => return Err(format!("not one fault: {other:?}")),
        };
        if !reason.split('|').any(|reason| text.contains(reason)) {
            return Err(format!("the reason is {text:?}, not {reason:?}"));
        }
        if own["partial"] != partial || (valued > 0) != partial {
            return Err(format!("partial should be {partial}: {own}, {metrics:?}"));
        }
        let unexplained = metrics
            .iter()
            .find(|metric| metric["value"].is_null() && metric["reason"].as_str().is_none_or(str::is_empty));
        unexplained.map_or(Ok(()), |metric| Err(format!("no value and no reason: {metric}")))
    }
}

/// A file that is refused: one line that names it and the reason, and no result.
fn refused(ended: &Ended, file: &str, reason: &str) -> Result<(), String> {
    if ended.status.code() != Some(1) || !ended.stdout.is_empty() {
        return Err("not refused with exit code 1 and nothing on stdout".to_owned());
    }
    let errors: Vec<&str> = ended
        .stderr
        .lines()
        .filter(|line| line.starts_with("error: "))
        .collect();
    match errors.as_slice() {
        [line] if line.contains(file) && reason.split('|').any(|reason| line.contains(reason)) => Ok(()),
        _ => Err(format!("not one error that names {file} and {reason:?}")),
    }
}

/// A plugin that ends the program itself: the user was told before that it can.
fn stated(ended: &Ended, file: &str) -> Result<(), String> {
    let told = ended.stderr.lines().any(|line| {
        line.contains(file) && line.contains("is native code and --in-process loads it into this process")
    });
    match (told, ended.status.code()) {
        (true, Some(77)) => Ok(()),
        _ => Err("not the exit status of the plugin after a warning".to_owned()),
    }
}

/// Looks for a process that says that it escaped.
fn left_behind(stderr: &str) -> Result<(), String> {
    let numbers = stderr
        .lines()
        .filter_map(|line| line.split("escaped as ").nth(1)?.trim().parse::<u32>().ok());
    for number in numbers {
        let status = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        // A dead process that nobody has waited for yet has state Z.
        if !status.is_empty() && !status.contains(") Z ") {
            return Err(format!("process {number} lives on"));
        }
    }
    Ok(())
}
