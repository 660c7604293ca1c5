//! Finds what the Rust toolchain brings for building components.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{BuildError, WASM_TARGET};
use crate::plugin::failure::one_line;

/// The linker that makes components, and the folder of the linker that it starts.
#[derive(Debug)]
pub(super) struct WasmTools {
    linker: PathBuf,
    wasm_ld: PathBuf,
}

impl WasmTools {
    /// Asks the toolchain that is in force in `folder`.
    pub(super) fn find(folder: &Path) -> Result<Self, BuildError> {
        let rustc = |arguments: &[&str]| {
            let program = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
            output(Command::new(program).args(arguments).current_dir(folder))
        };
        let sysroot = PathBuf::from(rustc(&["--print", "sysroot"])?.trim());
        let about = rustc(&["-vV"])?;
        let host = about
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .ok_or_else(|| BuildError::Answer {
                tool: "rustc -vV".to_owned(),
                message: "it names no host".to_owned(),
            })?;
        Self::below(&sysroot, host)
    }

    fn below(sysroot: &Path, host: &str) -> Result<Self, BuildError> {
        let rustlib = sysroot.join("lib/rustlib");
        if !rustlib.join(WASM_TARGET).join("lib").is_dir() {
            return Err(BuildError::NoTarget);
        }
        let tools = rustlib.join(host).join("bin");
        let (linker, wasm_ld) = (tools.join("wasm-component-ld"), tools.join("gcc-ld"));
        for tool in [linker.clone(), wasm_ld.join("wasm-ld")] {
            if !tool.is_file() {
                return Err(BuildError::NoLinker(tool));
            }
        }
        Ok(Self { linker, wasm_ld })
    }

    /// Lets a cargo command link components.
    pub(super) fn apply(&self, command: &mut Command) {
        command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", &self.linker);
        command.env_remove("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS");
        // The component linker starts `wasm-ld` from the path.
        let mut path = OsString::from(&self.wasm_ld);
        if let Some(rest) = std::env::var_os("PATH") {
            path.push(":");
            path.push(rest);
        }
        command.env("PATH", path);
    }
}

/// A program that a build needs and the user may lack.
#[derive(Clone, Copy, Debug)]
pub(in crate::plugin) struct Tool {
    name: &'static str,
    cure: &'static str,
}

/// Other compilers of C have no target for components, and clang links them with the linker of its own project.
const CLANG_CURE: &str =
    "components of C need clang 14 or later and its linker (Debian: apt-get install clang lld)";

impl Tool {
    pub(in crate::plugin) const CARGO: Self =
        Self::new("cargo", "install Rust with rustup (https://rustup.rs)");
    pub(in crate::plugin) const CC: Self =
        Self::new("cc", "install a C compiler (Debian: apt-get install gcc)");
    pub(in crate::plugin) const CPP: Self =
        Self::new("c++", "install a C++ compiler (Debian: apt-get install g++)");
    pub(in crate::plugin) const CLANG: Self = Self::new("clang", CLANG_CURE);
    pub(in crate::plugin) const CLANG_CPP: Self = Self::new("clang++", CLANG_CURE);
    pub(in crate::plugin) const WASM_LD: Self = Self::new("wasm-ld", CLANG_CURE);
    pub(in crate::plugin) const NODE: Self =
        Self::new("node", "install Node.js 18 or later (https://nodejs.org)");
    pub(in crate::plugin) const NPM: Self = Self::new(
        "npm",
        "install Node.js 18 or later, npm with it (https://nodejs.org)",
    );
    pub(in crate::plugin) const PYTHON: Self =
        Self::new("python3", "install Python 3.11 or later (https://python.org)");

    /// A program, and what to do where it is missing.
    const fn new(name: &'static str, cure: &'static str) -> Self {
        Self { name, cure }
    }

    /// A command that starts it.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub(super) fn command(self) -> Result<Command, BuildError> {
        self.check()?;
        Ok(Command::new(self.name))
    }

    /// Whether it can be started.
    ///
    /// # Errors
    /// Naming what to do when it cannot.
    pub(in crate::plugin) fn check(self) -> Result<(), BuildError> {
        let mut command = Command::new(self.name);
        command
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match command.status() {
            Ok(status) if status.success() => Ok(()),
            _ => Err(BuildError::Missing {
                tool: self.name.to_owned(),
                cure: self.cure.to_owned(),
            }),
        }
    }
}

/// Runs a tool that speaks to the user; whatever it prints goes to stderr.
pub(super) fn run(command: &mut Command, plugin: &str) -> Result<(), BuildError> {
    let tool = name(command);
    let status = command
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .stderr(Stdio::inherit())
        .status();
    let status = status.map_err(|error| BuildError::Tool {
        tool: tool.clone(),
        error,
    })?;
    if status.success() {
        return Ok(());
    }
    let plugin = plugin.to_owned();
    Err(BuildError::Refused { tool, plugin })
}

fn name(command: &Command) -> String {
    Path::new(command.get_program())
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Runs a tool for its answer.
pub(super) fn output(command: &mut Command) -> Result<String, BuildError> {
    const LONGEST: usize = 600;
    let tool = name(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| BuildError::Tool {
            tool: tool.clone(),
            error,
        })?;
    if !output.status.success() {
        let message = one_line(&String::from_utf8_lossy(&output.stderr), LONGEST);
        return Err(BuildError::Answer { tool, message });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_with_the_cure() {
        let sysroot = tempfile::tempdir().expect("a temporary folder");
        let error = WasmTools::below(sysroot.path(), "x86_64-unknown-linux-gnu").expect_err("empty");
        assert_eq!(
            error.to_string(),
            "the Rust target wasm32-unknown-unknown is not installed: run `rustup target add wasm32-unknown-unknown`"
        );
        let target = sysroot.path().join("lib/rustlib").join(WASM_TARGET).join("lib");
        std::fs::create_dir_all(target).expect("a folder");
        let error = WasmTools::below(sysroot.path(), "x86_64-unknown-linux-gnu").expect_err("no linker");
        assert!(
            matches!(&error, BuildError::NoLinker(path) if path.ends_with("wasm-component-ld")),
            "{error}"
        );
    }

    #[test]
    fn a_tool_that_is_not_there_is_named() {
        let error = output(&mut Command::new("lm-bench-no-such-tool"))
            .expect_err("not there")
            .to_string();
        assert!(
            error.starts_with("lm-bench-no-such-tool cannot be run: "),
            "{error}"
        );
    }
}
