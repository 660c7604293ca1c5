//! Makes components of collectors in JavaScript and Python, with the tools that the project's own files pin.

use std::path::{Path, PathBuf};
use std::process::Command;

use lm_bench_plugin::manifest::WASM_SECTION;
use sha2::{Digest, Sha256};

use super::project::Project;
use super::toolchain::{self, Tool};
use super::{BuildError, section};
use crate::plugin::file::hex;

/// The contract that components are made for.
pub(super) const WIT: &str = include_str!("../../../../wit/1.0.0/collector.wit");
pub(super) const WORLD: &str = "metric-collector";

/// Writes the contract for the tools, and returns its folder.
fn wit(project: &Project) -> Result<PathBuf, BuildError> {
    project.write("wit/collector.wit", WIT)?;
    Ok(project.work.join("wit"))
}

/// Adds the manifest to a component that a tool made.
pub(super) fn with_manifest(project: &Project, component: PathBuf) -> Result<PathBuf, BuildError> {
    let bytes = std::fs::read(&component).map_err(BuildError::write(&component))?;
    let bytes = section::with_custom_section(bytes, WASM_SECTION, &project.manifest_json()?);
    std::fs::write(&component, bytes).map_err(BuildError::write(&component))?;
    Ok(component)
}

/// Makes a component of a project in JavaScript: QuickJS with the source inside.
pub(super) fn javascript(project: &Project) -> Result<PathBuf, BuildError> {
    let id = &project.manifest.id;
    let mut command = Tool::NPM.command()?;
    command
        .current_dir(&project.dir)
        .args([
            "install",
            "--prefer-offline",
            "--no-audit",
            "--no-fund",
            "--no-progress",
        ])
        // What a dependency wants to run on being installed is not needed, and none of the build's business.
        .arg("--ignore-scripts");
    present(
        project,
        "package.json",
        "it names componentize-qjs with its version",
    )?;
    toolchain::run(&mut command, id)?;
    let tool = project.dir.join("node_modules/.bin/componentize-qjs");
    brought(&tool, "package.json", "componentize-qjs")?;
    let component = project.work.join("collector.wasm");
    let mut command = Command::new(tool);
    command.current_dir(&project.dir).arg("--wit").arg(wit(project)?);
    command
        .args(["--world", WORLD, "--stub-wasi", "--sync", "--module-root"])
        .arg(&project.dir);
    command
        .arg("--js")
        .arg(&project.source)
        .arg("--output")
        .arg(&component);
    toolchain::run(&mut command, id)?;
    with_manifest(project, component)
}

/// Makes a component of a project in Python: CPython with the source inside. The bindings that it imports stay beside
/// it, for the project's tests and for editors.
pub(super) fn python(project: &Project) -> Result<PathBuf, BuildError> {
    let id = &project.manifest.id;
    let bin = environment(project)?;
    let wit = wit(project)?;
    let tool = bin.join("componentize-py");
    brought(&tool, "requirements.txt", "componentize-py")?;
    let command = || {
        let mut command = Command::new(&tool);
        command
            .current_dir(&project.dir)
            .arg("-d")
            .arg(&wit)
            .args(["-w", WORLD]);
        command
    };
    let bindings = project.work.join("bindings");
    if bindings.exists() {
        std::fs::remove_dir_all(&bindings).map_err(BuildError::write(&bindings))?;
    }
    toolchain::run(command().arg("bindings").arg(&bindings), id)?;
    let source = project.dir.join(&project.source);
    let component = project.work.join("collector.wasm");
    let mut command = command();
    command
        .args(["componentize", "--stub-wasi", "-p"])
        .arg(source.with_file_name(""));
    command
        .arg(source.file_stem().unwrap_or_default())
        .arg("-o")
        .arg(&component);
    toolchain::run(&mut command, id)?;
    with_manifest(project, component)
}

/// The folder of programs of a virtual environment with the project's requirements, made where there is none yet.
fn environment(project: &Project) -> Result<PathBuf, BuildError> {
    let id = &project.manifest.id;
    let path = present(
        project,
        "requirements.txt",
        "it names componentize-py with its version",
    )?;
    let requirements = std::fs::read(&path).map_err(BuildError::write(&path))?;
    // Plugins with the same requirements share an environment; changed ones get another.
    let digest = hex(&Sha256::digest(&requirements));
    let venv = project.target_dir.join(format!("python-{}", &digest[..12]));
    let done = venv.join("installed");
    if !done.is_file() {
        let mut command = Tool::PYTHON.command()?;
        toolchain::run(command.args(["-m", "venv", "--clear"]).arg(&venv), id)?;
        let mut command = Command::new(venv.join("bin/python"));
        command
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "-r",
            ])
            .arg(&path);
        toolchain::run(&mut command, id)?;
        std::fs::write(&done, "").map_err(BuildError::write(&done))?;
    }
    Ok(venv.join("bin"))
}

/// A file that a project must have.
fn present(project: &Project, name: &str, why: &str) -> Result<PathBuf, BuildError> {
    let path = project.dir.join(name);
    if path.is_file() {
        return Ok(path);
    }
    let message = format!("there is no {name} ({why}); `lm-bench plugin new` shows one");
    Err(BuildError::Project {
        path: project.dir.clone(),
        message,
    })
}

/// Checks that the project's tools came.
fn brought(tool: &Path, file: &str, name: &str) -> Result<(), BuildError> {
    if tool.is_file() {
        return Ok(());
    }
    Err(BuildError::Project {
        path: file.into(),
        message: format!("it did not bring {name}: name it there with its version"),
    })
}
