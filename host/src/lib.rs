//! The library behind the `lm-bench` program, in the order of its layers: a module imports only modules above it.

pub mod clock;
pub mod stop;
pub mod model;
pub mod workload;
pub mod events;
pub mod engine;
pub mod probe;
pub mod plugin;
pub mod stats;
pub mod report;
pub mod plan;
pub mod run;
pub mod cli;
