//! The three doors end to end: collectors built as native library and as component, run beside the built-in ones.

mod components;
mod deterministic;
mod equality;
mod entries;
mod files;
mod isolation;
mod languages;
mod misbehaviour;
mod registry;
/// The collector that `plugin new` starts with, linked like the others; its own tests run with these.
#[path = "../../host/src/plugin/new_plugin/templates/rust/src/lib.rs"]
#[expect(unreachable_pub, reason = "it is the root of a crate elsewhere")]
mod rust_template;
mod slow_steps;
mod support;
mod written;

// A collector registers itself only when its crate is linked, and a crate that nothing names is not.
use attention_efficiency as _;
use core_metrics as _;
use fp8_error as _;
use hostile as _;
use moe_utilization as _;
use probe_collector as _;
