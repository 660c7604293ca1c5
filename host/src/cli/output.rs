//! Results go to stdout, everything else to stderr.

use std::io::{ErrorKind, Write};

use super::exit::Failure;

/// Writes a result. A reader that closed the pipe (`| head`) is no error.
///
/// # Errors
/// When stdout cannot be written, such as on a full disk.
pub(super) fn result(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::failed(format!(
            "cannot write the result to stdout: {error}"
        ))),
        _ => Ok(()),
    }
}

/// Writes a line for the person at the terminal. That it cannot be written changes nothing.
pub(super) fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", one_line(text));
}

/// The text with its control characters spelled out: names come from files that anyone may have written, and must
/// neither break the line nor command the terminal.
pub(super) fn one_line(text: &str) -> String {
    text.chars().fold(String::new(), |mut line, c| {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
        line
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_spelled_out() {
        assert_eq!(one_line("a\nb \u{1b}[31mé"), "a\\nb \\u{1b}[31mé");
    }
}
