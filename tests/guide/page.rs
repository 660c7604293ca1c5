//! Reads what a page asks its reader to do.

use std::path::Path;

use crate::console::Command;

/// A page, in the order of its steps.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// The page in whose folder this one goes on.
    pub(crate) after: Option<String>,
    /// The variable that is set where the tools for the page are there.
    pub(crate) needs: Option<String>,
    pub(crate) steps: Vec<Step>,
}

/// A block of code.
#[derive(Debug)]
pub(crate) enum Step {
    /// A file that the reader writes.
    File { path: String, text: String },
    /// A part of a file that is there.
    Quote { path: String, text: String },
    /// Commands in one shell.
    Console(Vec<Command>),
}

impl Page {
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut page = Self::default();
        // What the comment just before a block says of it.
        let mut mark = None;
        let mut lines = text.lines().enumerate();
        while let Some((at, line)) = lines.next() {
            if let Some(comment) = line
                .strip_prefix("<!-- ")
                .and_then(|rest| rest.strip_suffix(" -->"))
            {
                match comment.split_once(' ') {
                    Some(("after", other)) => page.after = Some(other.to_owned()),
                    Some(("needs", variable)) => page.needs = Some(variable.to_owned()),
                    _ => mark = Some(comment),
                }
            } else if let Some(language) = line.trim_start().strip_prefix("```") {
                let block: Vec<&str> = lines
                    .by_ref()
                    .map(|(_, line)| line)
                    .take_while(|line| line.trim() != "```")
                    .collect();
                let step = step(mark.take(), language, &block);
                page.steps
                    .extend(step.map_err(|error| format!("line {}: {error}", at + 1))?);
            } else if !line.is_empty() {
                mark = None;
            }
        }
        Ok(page)
    }
}

fn step(mark: Option<&str>, language: &str, block: &[&str]) -> Result<Option<Step>, String> {
    if language == "console" {
        return Ok(Some(Step::Console(Command::parse(block)?)));
    }
    let text = block.join("\n") + "\n";
    let (what, rest) = mark.and_then(|mark| mark.split_once(' ')).unwrap_or_default();
    match (what, rest.trim().to_owned()) {
        ("file", path) => Ok(Some(Step::File { path, text })),
        ("from", path) => Ok(Some(Step::Quote { path, text })),
        ("not", reason) if reason.starts_with("run: ") => Ok(None),
        _ => Err(format!(
            "nothing checks this block of {language:?}: make it `console`, or put <!-- file PATH -->, <!-- from PATH --> or \
             <!-- not run: WHY --> before it"
        )),
    }
}

/// A block that nothing checks is an error, wherever its mark is lost.
pub(crate) fn unmarked_blocks_are_refused() -> Result<(), String> {
    for text in [
        "```rust\nx\n```\n",
        "<!-- file a -->\ntext\n```rust\nx\n```\n",
        "```text\nx\n```",
    ] {
        if Page::parse(text).is_ok() {
            return Err(format!("passes: {text:?}"));
        }
    }
    let page = Page::parse("<!-- file a -->\n```rust\nx\n```\n")?;
    match &page.steps[..] {
        [Step::File { path, text }] if path == "a" && text == "x\n" => Ok(()),
        other => Err(format!("{other:?}")),
    }
}
