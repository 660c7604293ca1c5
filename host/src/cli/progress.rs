//! Progress on stderr: a bar on a terminal, plain lines elsewhere.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

use super::output::note;
use crate::run::Progress;

/// Shows progress the way stderr allows.
pub(super) enum Shown {
    /// A bar with the time that is left.
    Bar(ProgressBar),
    /// Lines, a few per run.
    Lines {
        /// Tenths of the run that were told.
        told: u64,
    },
}

impl Shown {
    /// Looks at stderr.
    pub(super) fn detect() -> Self {
        if std::io::stderr().is_terminal() {
            Self::Bar(ProgressBar::new(0))
        } else {
            Self::Lines { told: 0 }
        }
    }
}

impl Progress for Shown {
    fn stage(&mut self, text: &str) {
        match self {
            Self::Bar(bar) => bar.set_message(text.to_owned()),
            Self::Lines { .. } => note(text),
        }
    }

    fn warn(&mut self, text: &str) {
        match self {
            Self::Bar(bar) => bar.suspend(|| note(&format!("warning: {text}"))),
            Self::Lines { .. } => note(&format!("warning: {text}")),
        }
    }

    fn steps(&mut self, done: u64, all: u64) {
        match self {
            Self::Bar(bar) => {
                if bar.length() != Some(all) {
                    bar.set_length(all);
                    let style =
                        ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} steps, {eta} left");
                    bar.set_style(
                        style
                            .unwrap_or_else(|_| ProgressStyle::default_bar())
                            .progress_chars("=> "),
                    );
                }
                bar.set_position(done);
            }
            Self::Lines { told } => {
                let tenths = done * 10 / all.max(1);
                if tenths > *told && tenths < 10 && all >= 1000 {
                    note(&format!("{}% of {all} steps", tenths * 10));
                    *told = tenths;
                }
            }
        }
    }

    fn done(&mut self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
