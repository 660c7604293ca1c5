//! The program as a user sees it: the real binary, its output and its exit codes.

mod bad_input;
mod bench;
mod check;
mod demo;
mod doctor;
mod evil_packs;
mod hostile_paths;
mod interruption;
mod locks;
mod native;
mod observer;
mod packs;
mod plugins;
mod probes;
mod program;
mod recordings;
