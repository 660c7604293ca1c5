//! The three doors end to end: collectors built as native library and as component, run beside the built-in ones.

mod components;
mod equality;
mod entries;
mod files;
mod isolation;
mod misbehaviour;
mod registry;
mod support;

// A collector registers itself only when its crate is linked, and a crate that nothing names is not.
use attention_efficiency as _;
use core_metrics as _;
use fp8_error as _;
use hostile as _;
use moe_utilization as _;
use probe_collector as _;
