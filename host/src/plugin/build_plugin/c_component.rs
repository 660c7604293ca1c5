//! Makes components of collectors in C and C++: the same source as for a native library, with clang, an adapter and a
//! small C library without WASI in place of the entry.

use std::path::PathBuf;
use std::process::Command;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use super::BuildError;
use super::c::{self, is_cpp};
use super::component::{WIT, WORLD, with_manifest};
use super::project::Project;
use super::toolchain::{self, Tool};

macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../plugin-sdk/wasm-c/", $name)))),*]
    };
}

/// What is compiled beside the collector.
const SOURCES: &[(&str, &str)] = sources!(
    "adapter.c",
    "format.c",
    "json.c",
    "memory.c",
    "number.c",
    "text.c"
);
/// What those sources include.
const OWN_HEADERS: &[(&str, &str)] = sources!("door.h", "number.h");
/// The headers of the C library that the collector sees.
const HEADERS: &[(&str, &str)] = sources!(
    "include/assert.h",
    "include/ctype.h",
    "include/errno.h",
    "include/inttypes.h",
    "include/math.h",
    "include/stdio.h",
    "include/stdlib.h",
    "include/string.h",
);

/// Options for all code: as for native libraries, and the instructions that each engine of WebAssembly has.
const OPTIONS: &[&str] = &[
    "--target=wasm32-unknown-unknown",
    "-O3",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fvisibility=hidden",
    "-nostdlibinc",
    "-mbulk-memory",
    "-mmutable-globals",
    "-mnontrapping-fptoint",
    "-msign-ext",
    "-Wall",
];
/// Options for the C library, lest the compiler make calls of its functions out of these very functions.
const LIBRARY_OPTIONS: &[&str] = &["-std=c11", "-ffreestanding", "-fno-builtin"];
const C_OPTIONS: &[&str] = &["-std=c11"];
/// There is no C++ library: nothing that would call it.
const CPP_OPTIONS: &[&str] = &[
    "-std=c++17",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-threadsafe-statics",
    "-fno-c++-static-destructors",
];
/// The stack lies below the data, so that one that overflows traps; it is as large as in Rust's components.
const LINK_OPTIONS: &[&str] = &[
    "--no-entry",
    "--gc-sections",
    "--strip-all",
    "--stack-first",
    "-z",
    "stack-size=1048576",
];

/// Compiles a project and returns the component's path.
pub(super) fn component(project: &Project) -> Result<PathBuf, BuildError> {
    let compiler = if is_cpp(&project.source) {
        Tool::CLANG_CPP
    } else {
        Tool::CLANG
    };
    for tool in [Tool::CLANG, compiler, Tool::WASM_LD] {
        tool.check()?;
    }
    let mut objects = library(project)?;
    objects.push(collector(project, compiler)?);
    let module = project.work.join("module.wasm");
    let mut command = Tool::WASM_LD.command()?;
    command.args(LINK_OPTIONS).arg("-o").arg(&module).args(&objects);
    toolchain::run(&mut command, &project.manifest.id)?;
    let component = project.work.join("collector.wasm");
    let module = std::fs::read(&module).map_err(BuildError::write(&module))?;
    let bytes = wrapped(module).map_err(|message| BuildError::Answer {
        tool: "wit-component".to_owned(),
        message,
    })?;
    std::fs::write(&component, bytes).map_err(BuildError::write(&component))?;
    with_manifest(project, component)
}

/// Writes and compiles the adapter and the C library; returns the objects.
fn library(project: &Project) -> Result<Vec<PathBuf>, BuildError> {
    project.write("lm_bench_plugin.h", c::HEADER)?;
    for (name, text) in OWN_HEADERS.iter().chain(HEADERS) {
        project.write(&format!("wasm-c/{name}"), text)?;
    }
    let mut objects = Vec::new();
    for (name, text) in SOURCES {
        let source = project.write(&format!("wasm-c/{name}"), text)?;
        let object = source.with_extension("o");
        let mut command = Tool::CLANG.command()?;
        headers(&mut command, project);
        command.arg("-I").arg(&project.work);
        command
            .args(OPTIONS)
            .args(LIBRARY_OPTIONS)
            .arg("-c")
            .arg(&source)
            .arg("-o")
            .arg(&object);
        toolchain::run(&mut command, &project.manifest.id)?;
        objects.push(object);
    }
    Ok(objects)
}

/// Compiles the collector's own source.
fn collector(project: &Project, compiler: Tool) -> Result<PathBuf, BuildError> {
    let object = project.work.join("wasm-c/collector.o");
    let mut command = compiler.command()?;
    c::include(&mut command, project);
    headers(&mut command, project);
    let standard = if is_cpp(&project.source) {
        CPP_OPTIONS
    } else {
        C_OPTIONS
    };
    command
        .args(OPTIONS)
        .args(standard)
        // Flags may be meant for the linker of native libraries.
        .arg("-Wno-unused-command-line-argument")
        .arg("-c")
        .arg(project.dir.join(&project.source));
    command.arg("-o").arg(&object).args(&project.flags);
    toolchain::run(&mut command, &project.manifest.id)?;
    Ok(object)
}

/// Lets a command find the headers of the C library, and none of the system.
fn headers(command: &mut Command, project: &Project) {
    command.arg("-isystem").arg(project.work.join("wasm-c/include"));
}

/// Makes a component of a module that has the exports and imports of the contract.
fn wrapped(mut module: Vec<u8>) -> Result<Vec<u8>, String> {
    let told = |error: &dyn std::fmt::Display| crate::plugin::failure::one_line(&format!("{error:#}"), 600);
    let mut resolve = Resolve::default();
    let package = resolve
        .push_str("collector.wit", WIT)
        .map_err(|error| told(&error))?;
    let world = resolve
        .select_world(&[package], Some(WORLD))
        .map_err(|error| told(&error))?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .map_err(|error| told(&error))?;
    ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| told(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_module_of_the_contract_is_told_in_one_line() {
        // The smallest module: it exports nothing.
        let error = wrapped(b"\0asm\x01\0\0\0".to_vec()).expect_err("no exports");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains("lm-bench:collector/collector@1.0.0"), "{error}");
    }
}
