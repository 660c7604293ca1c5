//! What plugins log, within limits.

use std::time::Duration;

use lm_bench_plugin::LogLevel;

use super::failure::one_line;
use super::limits::Limits;
use crate::clock::Clock;

/// A line that a plugin logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Severity.
    pub level: LogLevel,
    /// Text, one line.
    pub text: String,
}

/// The log of one plugin. Lines beyond the limits are counted and not kept.
#[derive(Debug)]
pub(super) struct LogBook {
    /// `None` where time may decide nothing: the lines of a second are then those of the run.
    clock: Option<Clock>,
    lines_per_second: u32,
    line_bytes: usize,
    bytes_left: usize,
    second: u64,
    lines_in_second: u32,
    lines: Vec<LogLine>,
    refused: u64,
}

impl LogBook {
    /// An empty log.
    pub(super) fn new(limits: &Limits, clock: Clock) -> Self {
        Self {
            clock: Some(clock),
            ..Self::timeless(limits)
        }
    }

    /// An empty log that takes as many lines in all as another one takes in a second.
    pub(super) fn timeless(limits: &Limits) -> Self {
        Self {
            clock: None,
            lines_per_second: limits.log_lines_per_second,
            line_bytes: limits.text_bytes,
            bytes_left: limits.log_bytes,
            second: 0,
            lines_in_second: 0,
            lines: Vec::new(),
            refused: 0,
        }
    }

    /// Takes a line.
    pub(super) fn write(&mut self, level: LogLevel, text: &str) {
        let now_ns = self.clock.as_ref().map_or(0, Clock::now_ns);
        let second = now_ns / Duration::from_secs(1).as_nanos() as u64;
        if second != self.second {
            (self.second, self.lines_in_second) = (second, 0);
        }
        if self.lines_in_second >= self.lines_per_second || self.bytes_left == 0 {
            self.refused += 1;
            return;
        }
        let text = one_line(text, self.line_bytes);
        if text.len() > self.bytes_left {
            self.refused += 1;
            return;
        }
        self.lines_in_second += 1;
        self.bytes_left -= text.len();
        self.lines.push(LogLine { level, text });
    }

    /// Takes a line that was held against the lines of a second where it was written.
    pub(super) fn relay(&mut self, level: LogLevel, text: &str) {
        let text = one_line(text, self.line_bytes);
        // An empty line takes room too.
        let bytes = text.len().max(1);
        if bytes > self.bytes_left {
            self.refused += 1;
            return;
        }
        self.bytes_left -= bytes;
        self.lines.push(LogLine { level, text });
    }

    /// Counts lines that were refused before they came here.
    pub(super) fn refuse(&mut self, lines: u64) {
        self.refused = self.refused.saturating_add(lines);
    }

    /// The lines so far.
    pub(super) fn lines(&self) -> &[LogLine] {
        &self.lines
    }

    /// Number of lines that were not kept.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_limited_per_second_and_bytes_per_run() {
        let clock = Clock::fake();
        let limits = Limits {
            log_lines_per_second: 2,
            log_bytes: 10,
            ..Limits::default()
        };
        let mut book = LogBook::new(&limits, clock.clone());
        for _ in 0..3 {
            book.write(LogLevel::Info, "abc");
        }
        assert_eq!((book.lines().len(), book.refused()), (2, 1));
        clock.advance(Duration::from_secs(1));
        book.write(LogLevel::Warn, "defg");
        assert_eq!(book.lines().last().map(|line| line.text.as_str()), Some("defg"));
        // 3 + 3 + 4 bytes are used: not one is left.
        book.write(LogLevel::Warn, "x");
        assert_eq!((book.lines().len(), book.refused()), (3, 2));
    }
    #[test]
    fn without_a_clock_lines_are_limited_per_run() {
        let limits = Limits {
            log_lines_per_second: 2,
            ..Limits::default()
        };
        let mut book = LogBook::timeless(&limits);
        (0..5).for_each(|_| book.write(LogLevel::Info, "abc"));
        assert_eq!((book.lines().len(), book.refused()), (2, 3));
    }
}
