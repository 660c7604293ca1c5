//! Progress on stderr: a bar on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::output::note;
use crate::run::Progress;

/// A stage that cannot tell how far it is.
const WAITING: &str = "{wide_msg} {elapsed}";
/// A stage whose first part has not ended, so that nothing is known about the rest.
const BEGUN: &str = "{msg} [{bar:30}] {pos}/{len}, {elapsed} so far";
/// A stage under way.
const UNDER_WAY: &str = "{msg} [{bar:30}] {pos}/{len}, {eta} left";
/// Time between two redraws while nothing happens: rare enough to take nothing from the engine.
const REDRAW: Duration = Duration::from_millis(500);

/// Shows progress the way stderr allows.
pub(super) enum Shown {
    /// A bar with the time that is left.
    Bar {
        /// The bar; its length is that of the stage.
        bar: ProgressBar,
        /// Its layout.
        template: &'static str,
    },
    /// Lines, a few per run.
    Lines {
        /// Tenths of the stage that were told.
        told: u64,
    },
}

impl Shown {
    /// Looks at stderr. A terminal that cannot move its cursor gets lines.
    pub(super) fn detect() -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if dumb || !std::io::stderr().is_terminal() {
            return Self::Lines { told: 0 };
        }
        Self::Bar {
            bar: ProgressBar::no_length(),
            template: "",
        }
    }
}

/// Gives the bar a layout that it does not have yet.
fn lay_out(bar: &ProgressBar, current: &mut &'static str, template: &'static str) {
    if *current == template {
        return;
    }
    *current = template;
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.progress_chars("=> "));
}

/// The tenths to tell of a stage of many steps.
fn tenths(done: u64, all: u64, told: u64) -> Option<u64> {
    let tenths = u128::from(done) * 10 / u128::from(all.max(1));
    let tenths = u64::try_from(tenths).unwrap_or(10);
    (tenths > told && tenths < 10 && all >= 1000).then_some(tenths)
}

impl Progress for Shown {
    fn stage(&mut self, text: &str) {
        match self {
            Self::Bar { bar, template } => {
                bar.finish_and_clear();
                // A new one: setting back the old one would draw it in between.
                *bar = ProgressBar::no_length().with_message(text.to_owned());
                *template = "";
                lay_out(bar, template, WAITING);
                bar.enable_steady_tick(REDRAW);
            }
            Self::Lines { told } => {
                *told = 0;
                note(text);
            }
        }
    }

    fn warn(&mut self, text: &str) {
        match self {
            Self::Bar { bar, .. } => bar.suspend(|| note(&format!("warning: {text}"))),
            Self::Lines { .. } => note(&format!("warning: {text}")),
        }
    }

    fn steps(&mut self, done: u64, all: u64) {
        if all == 0 {
            return;
        }
        match self {
            Self::Bar { bar, template } => {
                bar.set_length(all);
                lay_out(bar, template, if done == 0 { BEGUN } else { UNDER_WAY });
                bar.set_position(done);
            }
            Self::Lines { told } => {
                if let Some(tenths) = tenths(done, all, *told) {
                    note(&format!("{}% of {all} steps", tenths * 10));
                    *told = tenths;
                }
            }
        }
    }

    fn done(&mut self) {
        if let Self::Bar { bar, .. } = self {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_few_and_start_anew_with_each_stage() {
        let told = |steps: &[u64], all| {
            let mut told = 0;
            let told_of = |done: &u64| {
                let now = tenths(*done, all, told);
                told = now.unwrap_or(told);
                now
            };
            steps.iter().filter_map(told_of).collect::<Vec<_>>()
        };
        assert_eq!(told(&[0, 99, 100, 101, 350, 1000], 1000), [1, 3]);
        assert!(told(&[1, 5, 9], 10).is_empty(), "short stages need no lines");
        assert_eq!(tenths(u64::MAX - 1, u64::MAX, 0), Some(9));
        let mut lines = Shown::Lines { told: 9 };
        lines.stage("next");
        assert!(matches!(lines, Shown::Lines { told: 0 }));
    }

    #[test]
    fn the_layouts_are_valid() {
        for template in [WAITING, BEGUN, UNDER_WAY] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
