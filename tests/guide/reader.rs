//! Follows pages in scratch folders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use tempfile::TempDir;

use crate::console::Command;
use crate::page::{Page, Step};
use crate::root;

/// Ends the output of a command, before its exit status.
const END: char = '\u{1e}';
/// Longest time that the commands of a block may take, in seconds: a hanging one is a failure, not a stuck test.
const LIMIT: &str = "900";

/// A folder as a page leaves it, or why the page could not be followed.
type Left = Result<Arc<TempDir>, String>;

/// Somebody who reads page after page, each at most once.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    // One page at a time: they share cargo's folder, which only one of them could use anyway.
    done: Mutex<BTreeMap<String, Left>>,
}

impl Reader {
    /// Follows a page, after the one that it continues.
    pub(crate) fn follow(&self, name: &str) -> Left {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        follow(name, &mut done)
    }
}

fn follow(name: &str, done: &mut BTreeMap<String, Left>) -> Left {
    if let Some(left) = done.get(name) {
        return left.clone();
    }
    let left = Page::read(&root().join("docs/plugins").join(name)).and_then(|page| {
        let before = match &page.after {
            Some(before) => Some(follow(before, done).map_err(|error| format!("after {before}: {error}"))?),
            None => None,
        };
        let scratch = scratch(before.as_deref()).map_err(|error| error.to_string())?;
        let mut folder = scratch.path().to_owned();
        for step in &page.steps {
            take(step, scratch.path(), &mut folder).map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(Arc::new(scratch))
    });
    done.insert(name.to_owned(), left.clone());
    left
}

/// A folder with what is there before the page: this repository as `lm-bench`, and what the page before left.
fn scratch(before: Option<&TempDir>) -> std::io::Result<TempDir> {
    let scratch = tempfile::tempdir()?;
    if let Some(before) = before {
        let copied = Process::new("cp")
            .arg("-a")
            .arg(before.path().join("."))
            .arg(scratch.path())
            .status()?;
        return match copied.success() {
            true => Ok(scratch),
            false => Err(std::io::Error::other("cp failed")),
        };
    }
    std::os::unix::fs::symlink(root(), scratch.path().join("lm-bench"))?;
    // One folder of cargo's for all pages, so that what they depend on is compiled once; what `plugin build` makes is
    // where the tests of the doors have it.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guide");
    let plugins = target.join("plugins");
    std::fs::create_dir_all(&target)?;
    std::fs::create_dir_all(target.with_file_name("plugins"))?;
    if plugins.symlink_metadata().is_err() {
        std::os::unix::fs::symlink("../plugins", plugins)?;
    }
    std::fs::create_dir(scratch.path().join(".cargo"))?;
    let config = format!("[build]\ntarget-dir = {target:?}\n");
    std::fs::write(scratch.path().join(".cargo/config.toml"), config)?;
    Ok(scratch)
}

fn take(step: &Step, scratch: &Path, folder: &mut PathBuf) -> Result<(), String> {
    match step {
        Step::File { path, text } => {
            write(&scratch.join(path), text).map_err(|error| format!("{path}: {error}"))
        }
        Step::Quote { path, text } => quote(path, text),
        Step::Console(commands) => {
            pin_versions(scratch).map_err(|error| error.to_string())?;
            run(commands, scratch, folder)
        }
    }
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(path))?;
    std::fs::write(path, text)
}

/// Whether the file has these lines, however deep they are indented there.
fn quote(path: &str, text: &str) -> Result<(), String> {
    let places = [
        root().join("host/src/plugin/new_plugin/templates").join(path),
        root().join(path),
    ];
    let found = places
        .iter()
        .find_map(|place| std::fs::read_to_string(place).ok());
    let found = found.ok_or_else(|| {
        format!("{path} is quoted and neither a file of a new project nor of this repository")
    })?;
    let [found, quoted] = [found.as_str(), text].map(|text| {
        let lines = text.lines().map(str::trim);
        lines.fold("\n".to_owned(), |all, line| all + line + "\n")
    });
    found
        .contains(&quoted)
        .then_some(())
        .ok_or_else(|| format!("{path} does not say:\n{text}"))
}

/// New crates take the versions that this repository builds with: nothing is fetched, nothing compiled that need not be.
fn pin_versions(scratch: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(scratch)? {
        let entry = entry?;
        let lock = entry.path().join("Cargo.lock");
        if entry.file_type()?.is_dir() && entry.path().join("Cargo.toml").exists() && !lock.exists() {
            std::fs::copy(root().join("Cargo.lock"), lock)?;
        }
    }
    Ok(())
}

/// Runs the commands of a block in one shell, which starts in the folder where the last one ended.
fn run(commands: &[Command], scratch: &Path, folder: &mut PathBuf) -> Result<(), String> {
    let mut script = "exec 2>&1\n".to_owned();
    for command in commands {
        let line = &command.line;
        script += &format!("{line}\nstatus=$?; printf '\\036%d\\n' $status; (exit $status)\n");
    }
    script += "pwd\n";
    let output = shell(&script, scratch, folder).map_err(|error| format!("bash: {error}"))?;
    let mut rest = output.as_str();
    for (at, command) in commands.iter().enumerate() {
        let ended = rest
            .split_once(END)
            .and_then(|(output, rest)| Some((output, rest.split_once('\n')?)));
        let Some((output, (status, after))) = ended else {
            return Err(format!(
                "`{}` did not end within {LIMIT} s, or ended the shell:\n{rest}",
                command.line
            ));
        };
        let status_is_shown = commands.get(at + 1).is_some_and(|next| next.line == "echo $?");
        if status != "0" && !status_is_shown {
            return Err(format!("`{}` ended with code {status}:\n{output}", command.line));
        }
        command.compare(output)?;
        rest = after;
    }
    *folder = rest.trim_end().into();
    Ok(())
}

fn shell(script: &str, scratch: &Path, folder: &Path) -> std::io::Result<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_lm-bench"));
    let mut path = program.parent().unwrap_or(program).as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut shell = Process::new("timeout");
    shell
        .args([LIMIT, "bash", "-c", script])
        .current_dir(folder)
        .stdin(Stdio::null())
        .env("PATH", path)
        .env("CARGO_TERM_COLOR", "never")
        // Tests of a crate end in any order otherwise.
        .env("RUST_TEST_THREADS", "1")
        .env("XDG_DATA_HOME", scratch.join(".data"))
        .env("XDG_CONFIG_HOME", scratch.join(".config"))
        .env(
            "XDG_CACHE_HOME",
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("guide-cache"),
        );
    for variable in [
        "CARGO_TARGET_DIR",
        "CARGO_BUILD_TARGET_DIR",
        "RUSTFLAGS",
        "LM_BENCH_PLUGIN_PATH",
    ] {
        shell.env_remove(variable);
    }
    Ok(String::from_utf8_lossy(&shell.output()?.stdout).into_owned())
}
