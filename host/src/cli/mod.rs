//! The command line: one file per subcommand.

mod args;
mod exit;
mod lock;
mod output;
mod pack;
mod plugin;
mod progress;
mod replay;
mod run;

use std::process::ExitCode;

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
    /// Feed a recording to collectors and report
    Replay(replay::ReplayArgs),
    /// Build, sign, verify and install packs of plugins
    #[command(subcommand)]
    Pack(pack::PackCommand),
    /// List, inspect, start, build and pin plugins
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

/// Parses the command line, does what it says and gives the exit code.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Printing fails only when there is nobody to print for.
            let _ = error.print();
            // clap's own code for wrong usage is 2, which means a failed run here.
            return if error.use_stderr() {
                Exit::Unusable.into()
            } else {
                Exit::Valid.into()
            };
        }
    };
    let ended = match cli.command {
        Command::Run(args) => run::run(&args),
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
