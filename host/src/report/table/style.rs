//! How the table looks, decided by the terminal and its environment.

use std::io::IsTerminal;

use comfy_table::{LineStyle, Table, TableStyle};

/// Columns where the terminal does not tell.
const DEFAULT_WIDTH: u16 = 100;
/// Fewest columns that are assumed; on anything narrower lines wrap.
const MIN_WIDTH: u16 = 40;

/// How the table looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns.
    pub width: u16,
    /// Whether rules and signs outside ASCII are used.
    pub unicode: bool,
    /// Whether the verdict, warnings and headings are coloured.
    pub color: bool,
    /// Whether metrics are listed per layer and expert, and percentiles with their intervals.
    pub detail: bool,
}

impl Style {
    /// For a file or a pipe: 100 columns, ASCII, no colour.
    pub const PLAIN: Self = Self {
        width: DEFAULT_WIDTH,
        unicode: false,
        color: false,
        detail: false,
    };

    /// Looks at stdout and the environment: colour only on a terminal and where `NO_COLOR` (<https://no-color.org>) is unset or
    /// empty; signs outside ASCII only where the locale is UTF-8.
    pub fn of_stdout() -> Self {
        let terminal = std::io::stdout().is_terminal();
        let variable = |name: &str| std::env::var(name).ok();
        let width = if terminal { Table::new().width() } else { None };
        Self::of(terminal, width, variable)
    }

    /// The rule behind [`Self::of_stdout`].
    fn of(terminal: bool, width: Option<u16>, variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        // POSIX: the first of these that is set and not empty decides.
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .find_map(set)
            .unwrap_or_default();
        let locale = locale.to_ascii_lowercase();
        Self {
            width: width.unwrap_or(DEFAULT_WIDTH).max(MIN_WIDTH),
            unicode: locale.contains("utf-8") || locale.contains("utf8"),
            color: terminal && set("NO_COLOR").is_none() && set("TERM").as_deref() != Some("dumb"),
            detail: false,
        }
    }

    pub(super) fn lines(self) -> TableStyle {
        let rule = if self.unicode { '\u{2500}' } else { '-' };
        TableStyle::new().header_separator(LineStyle::none().fill(rule).junction(rule))
    }

    pub(super) fn paint(self, paint: Paint, text: &str) -> String {
        let code = match paint {
            Paint::Heading => "1",
            Paint::Good => "1;32",
            Paint::Caution => "33",
            Paint::Bad => "1;31",
        };
        if self.color {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    pub(super) const fn times(self) -> &'static str {
        if self.unicode { "\u{d7}" } else { "x" }
    }
}

/// What a colour means.
#[derive(Clone, Copy, Debug)]
pub(super) enum Paint {
    Heading,
    Good,
    Caution,
    Bad,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(terminal: bool, width: Option<u16>, variables: &[(&str, &str)]) -> Style {
        Style::of(terminal, width, |name| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn colour_needs_a_terminal_and_no_objection() {
        assert!(of(true, None, &[]).color);
        assert!(
            of(true, None, &[("NO_COLOR", "")]).color,
            "an empty NO_COLOR does not count"
        );
        assert!(
            !of(true, None, &[("NO_COLOR", "0")]).color,
            "any other value does"
        );
        assert!(!of(true, None, &[("TERM", "dumb")]).color);
        assert!(!of(false, None, &[]).color);
    }

    #[test]
    fn signs_follow_the_first_locale_variable_that_is_set() {
        assert!(of(false, None, &[("LANG", "de_DE.UTF-8")]).unicode);
        assert!(of(false, None, &[("LC_ALL", ""), ("LC_CTYPE", "C.utf8")]).unicode);
        assert!(!of(false, None, &[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")]).unicode);
        assert!(!of(false, None, &[]).unicode);
    }

    #[test]
    fn width_is_the_terminals_or_a_hundred() {
        assert_eq!(of(true, Some(132), &[]).width, 132);
        assert_eq!(of(false, None, &[]).width, 100);
        assert_eq!(of(true, Some(3), &[]).width, 40);
    }
}
