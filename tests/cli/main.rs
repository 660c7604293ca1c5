//! The program as a user sees it: the real binary, its output and its exit codes.

mod bad_input;
mod demo;
mod evil_packs;
mod hostile_paths;
mod interruption;
mod locks;
mod observer;
mod packs;
mod plugins;
mod program;
mod recordings;
