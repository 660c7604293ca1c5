//! Commands and their output, with `…` for what differs each time.

/// A command of a page and what the page shows of its output.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) line: String,
    pub(crate) shown: Vec<String>,
}

const ANY: &str = "…";

impl Command {
    /// The commands of a block.
    pub(crate) fn parse(block: &[&str]) -> Result<Vec<Self>, String> {
        let mut commands: Vec<Self> = Vec::new();
        for line in block {
            if let Some(command) = line.strip_prefix("$ ") {
                commands.push(Self {
                    line: command.to_owned(),
                    shown: Vec::new(),
                });
            } else {
                let last = commands.last_mut();
                let last =
                    last.ok_or_else(|| format!("a block of commands starts with {line:?}, not with `$ `"))?;
                last.shown.extend(plain(line));
            }
        }
        let ignored =
            |command: &&Self| !command.shown.is_empty() && command.shown.iter().all(|line| line == ANY);
        match commands.iter().find(ignored) {
            Some(command) => Err(format!(
                "of `{}` nothing is shown but {ANY}: show a line",
                command.line
            )),
            None => Ok(commands),
        }
    }

    /// What differs between the output and what the page shows, if anything does.
    pub(crate) fn compare(&self, output: &str) -> Result<(), String> {
        let found: Vec<String> = output.lines().filter_map(plain).collect();
        if lines_match(&self.shown, &found) {
            return Ok(());
        }
        let shown = self.shown.join("\n");
        Err(format!(
            "`{}` is shown with\n{shown}\n\nbut printed\n{output}",
            self.line
        ))
    }
}

/// A line without what is only layout: widths of columns follow their values. `None` for an empty line.
fn plain(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let line = words.join(" ");
    let rule = !line.is_empty() && line.chars().all(|c| c == '─');
    (!line.is_empty()).then(|| if rule { "─".to_owned() } else { line })
}

fn lines_match(shown: &[String], found: &[String]) -> bool {
    match shown.split_first() {
        None => found.is_empty(),
        Some((first, rest)) if first == ANY => {
            (0..=found.len()).any(|skipped| lines_match(rest, &found[skipped..]))
        }
        Some((first, rest)) => {
            let (line, others) = match found.split_first() {
                Some(split) => split,
                None => return false,
            };
            line_matches(first, line) && lines_match(rest, others)
        }
    }
}

fn line_matches(shown: &str, found: &str) -> bool {
    let Some((start, rest)) = shown.split_once(ANY) else {
        return shown == found;
    };
    let Some(mut left) = found.strip_prefix(start) else {
        return false;
    };
    let parts: Vec<&str> = rest.split(ANY).collect();
    let (end, middle) = parts.split_last().expect("a split has a part");
    for part in middle {
        match left.find(part) {
            Some(at) => left = &left[at + part.len()..],
            None => return false,
        }
    }
    left.ends_with(end)
}

/// What is compared is compared: each of these pairs differs, and their opposites do not.
pub(crate) fn differences_are_found() -> Result<(), String> {
    let compare = |shown: &[&str], output: &str| {
        let block: Vec<&str> = std::iter::once("$ x").chain(shown.iter().copied()).collect();
        Command::parse(&block)?[0].compare(output)
    };
    let same: &[(&[&str], &str)] = &[
        (&[], ""),
        (&["a  b"], "a b\n\n"),
        (&["…", "b"], "a\nb\n"),
        (&["…", "b"], "b\n"),
        (&["a … c…"], "a 12 c\n"),
        (&["────", "a"], "─────────\na\n"),
    ];
    for (shown, output) in same {
        compare(shown, output)?;
    }
    let different: &[(&[&str], &str)] = &[
        (&[], "a"),
        (&["a"], ""),
        (&["a b"], "ab"),
        (&["…", "b"], "b\nc\n"),
        (&["a … c"], "a 12 d\n"),
        (&["a", "…", "c"], "a\nb\n"),
        (&["a…a"], "a"),
        (&["…"], "a\n"),
    ];
    for (shown, output) in different {
        if compare(shown, output).is_ok() {
            return Err(format!("{shown:?} passes for {output:?}"));
        }
    }
    Ok(())
}
