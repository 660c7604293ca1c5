//! The command line: one file per subcommand.

mod args;
mod exit;
mod load;
mod output;
mod pack;
mod plugin;
mod progress;
mod replay;
mod run;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

pub use exit::Exit;

use crate::plugin::{PROCESS_COMMAND, serve_plugin_process};

const EXIT_CODES: &str = "Exit codes: 0 valid; 1 usage, configuration or unusable input; 2 run failed; \
3 a plugin was quarantined; 4 result invalid; 130 interrupted";

/// Measures LLM inference with metrics that are plugins
#[derive(Debug, Parser)]
#[command(name = "lm-bench", version, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a model offline in fixed batches and report; without flags a small demo on the CPU
    Run(Box<args::RunArgs>),
    /// Send requests over time to a server that speaks the OpenAI interface, and report
    Load(Box<load::LoadArgs>),
    /// Feed a recording to collectors and report
    Replay(replay::ReplayArgs),
    /// Build, sign, verify and install packs of plugins
    #[command(subcommand)]
    Pack(pack::PackCommand),
    /// List, inspect, diagnose, start, build and pin plugins
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// Serve a native plugin to the lm-bench that started this process
    #[command(hide = true, name = PROCESS_COMMAND)]
    PluginProcess,
}

fn serve_plugin() -> Result<Exit, exit::Failure> {
    match serve_plugin_process() {
        Ok(()) => Ok(Exit::Valid),
        Err(error) => Err(exit::Failure::unusable(format!(
            "{PROCESS_COMMAND} serves a native plugin to another lm-bench and is not for use by hand: {error}"
        ))),
    }
}

/// Prints help, or in one line what is wrong with the command line.
fn usage(error: &clap::Error) -> Exit {
    let asked_for = !error.use_stderr();
    if asked_for || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // Printing fails only when there is nobody to print for.
        let _ = error.print();
    } else {
        output::note(&complaint(&error.to_string()));
    }
    // clap's own code for wrong usage is 2, which means a failed run here.
    if asked_for { Exit::Valid } else { Exit::Unusable }
}

/// What clap complains of, and its advice, in one line.
fn complaint(text: &str) -> String {
    let paragraphs = text
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|paragraph| {
            !paragraph.is_empty()
                && !paragraph.starts_with("Usage:")
                && !paragraph.starts_with("For more information")
        });
    paragraphs.collect::<Vec<_>>().join("; ") + " (--help lists all)"
}

/// Parses the command line, does what it says and gives the exit code.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            return usage(&error).into();
        }
    };
    let ended = match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Load(args) => load::load(&args),
        Command::Replay(args) => replay::replay(&args),
        Command::Pack(command) => pack::pack(&command),
        Command::Plugin(command) => plugin::plugin(&command),
        Command::PluginProcess => serve_plugin(),
    };
    match ended {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output::note(&format!("error: {}", failure.message));
            failure.exit.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complained(arguments: &[&str]) -> String {
        let arguments = std::iter::once(&"lm-bench").chain(arguments);
        complaint(
            &Cli::try_parse_from(arguments)
                .expect_err("wrong usage")
                .to_string(),
        )
    }

    #[test]
    fn wrong_usage_is_told_in_one_line_with_its_advice() {
        let missing = complained(&["plugin", "build", "x", "--door", "dylib"]);
        assert_eq!(
            missing,
            "error: the following required arguments were not provided: --out <FOLDER> (--help lists all)"
        );
        let misspelt = complained(&["run", "--modle", "x"]);
        assert!(!misspelt.contains('\n'), "{misspelt}");
        assert!(
            misspelt.contains("--modle") && misspelt.contains("'--model'"),
            "{misspelt}"
        );
    }
}
