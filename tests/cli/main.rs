//! The program as a user sees it: the real binary, its output and its exit codes.

mod bad_input;
mod demo;
mod hostile_paths;
mod interruption;
mod observer;
mod plugins;
mod program;
mod recordings;
