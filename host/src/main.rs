//! The `lm-bench` program: links the built-in collectors and hands over to the command line.

use std::process::ExitCode;

// A collector registers itself only when its crate is linked, and a crate that nothing names is not.
use attention_efficiency as _;
use core_metrics as _;
use fp8_error as _;
use moe_utilization as _;

fn main() -> ExitCode {
    lm_bench::cli::main()
}
