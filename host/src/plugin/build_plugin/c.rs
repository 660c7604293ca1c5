//! Compiles collectors in C and C++ to native libraries.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::BuildError;
use super::project::Project;
use super::toolchain::{self, Tool};

/// The header, for projects that have none beside their source.
pub(super) const HEADER: &str = include_str!("../../../../plugin-sdk/include/lm_bench_plugin.h");
/// The entry around the collector.
const ENTRY: &str = include_str!("entry.c");

/// Options for all code: no multiplication and addition may become one operation, which would round once instead of
/// twice, and nothing but the entry is visible.
const OPTIONS: &[&str] = &[
    "-O3",
    "-ffp-contract=off",
    "-fPIC",
    "-fvisibility=hidden",
    "-Wall",
];

/// Compiles a project and returns the library's path.
pub(super) fn library(project: &Project) -> Result<PathBuf, BuildError> {
    project.write("lm_bench_plugin.h", HEADER)?;
    project.write("manifest.inc", numbers(&project.manifest_json()?))?;
    project.write("config.inc", numbers(project.config.to_string().as_bytes()))?;
    let entry = project.write("entry.c", ENTRY)?;
    let id = &project.manifest.id;
    let (compiler, standard) = if is_cpp(&project.source) {
        (Tool::CPP, "-std=c++17")
    } else {
        (Tool::CC, "-std=c11")
    };
    let objects = [project.work.join("entry.o"), project.work.join("collector.o")];
    let mut command = Tool::CC.command()?;
    command
        .arg("-std=c11")
        .args(OPTIONS)
        .arg("-c")
        .arg(&entry)
        .arg("-o")
        .arg(&objects[0]);
    toolchain::run(&mut command, id)?;
    let mut command = compiler.command()?;
    include(&mut command, project);
    command
        .arg(standard)
        .args(OPTIONS)
        .arg("-c")
        .arg(project.dir.join(&project.source));
    command.arg("-o").arg(&objects[1]).args(&project.flags);
    toolchain::run(&mut command, id)?;
    let library = project.work.join("collector.so");
    let mut command = compiler.command()?;
    command
        .args(["-shared", "-Wl,--no-undefined", "-o"])
        .arg(&library)
        .args(&objects)
        .args(&project.flags)
        // Where the square root and its like are not instructions, they come from here.
        .arg("-lm");
    toolchain::run(&mut command, id)?;
    Ok(library)
}

/// Bytes as C writes them between braces.
fn numbers(bytes: &[u8]) -> String {
    let numbers: Vec<String> = bytes.iter().map(u8::to_string).collect();
    numbers.join(",") + "\n"
}

/// The header is looked for beside the source first.
pub(super) fn include(command: &mut Command, project: &Project) {
    command
        .current_dir(&project.dir)
        .arg("-idirafter")
        .arg(&project.work);
}

pub(super) fn is_cpp(source: &Path) -> bool {
    let extension = source.extension().unwrap_or_default();
    ["cc", "cpp", "cxx", "C"].iter().any(|cpp| extension == *cpp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_told_by_the_extension() {
        assert!(is_cpp(Path::new("a/b.cc")) && is_cpp(Path::new("b.cpp")));
        assert!(!is_cpp(Path::new("cpp/b.c")) && !is_cpp(Path::new("b")));
    }
}
