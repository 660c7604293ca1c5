//! Builds a collector into a plugin file, and adds what the result says of itself. A crate is built by one `cargo rustc`
//! with the door's options, which installs nothing; a folder with a `plugin.toml` by the tools of its language, which
//! fetch what the project pins.

mod c;
mod c_component;
mod cargo;
mod component;
mod error;
mod project;
mod section;
mod toolchain;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use lm_bench_plugin::manifest::{DYLIB_DESCRIPTION, Description, Manifest, WASM_DESCRIPTION};

use super::describe::{Schema, describe};
use super::file::PluginFile;
use super::identity::is_id;
use super::limits::Policy;
use super::registry::Registry;
use super::search::file_name;
use super::session::Door;
use cargo::Artefact;
pub use error::BuildError;
use project::Project;
pub(super) use toolchain::Tool;

/// Target of WASM plugins: without WASI, so that the component imports nothing but the host's interface.
pub const WASM_TARGET: &str = "wasm32-unknown-unknown";

/// A file that was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// Its digest.
    pub sha256: String,
    /// Its manifest.
    pub manifest: Manifest,
}

/// Doors that a plugin can be built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum BuildDoor {
    /// A native library.
    Dylib,
    /// A WebAssembly component.
    Wasm,
}

impl From<BuildDoor> for Door {
    fn from(door: BuildDoor) -> Self {
        match door {
            BuildDoor::Dylib => Self::Dylib,
            BuildDoor::Wasm => Self::Wasm,
        }
    }
}

/// What to build.
#[derive(Clone, Debug)]
pub struct BuildRequest {
    /// Folder of the crate or project.
    pub dir: PathBuf,
    /// Door to build for.
    pub door: BuildDoor,
    /// Folder for the plugin file.
    pub out: PathBuf,
    /// Folder for intermediate results; by default `plugins` in the crate's or project's own target folder.
    pub target_dir: Option<PathBuf>,
    /// This program, to run a library in a process of its own when it is asked what it has to say; without it the
    /// library runs in this process.
    pub program: Option<PathBuf>,
}

/// Whether a folder is one that can be built: a crate, or a folder with a `plugin.toml`.
pub fn is_buildable(dir: &Path) -> bool {
    dir.join("Cargo.toml").is_file() || dir.join(project::FILE).is_file()
}

/// The doors that a folder can be built for.
///
/// # Errors
/// When its `plugin.toml` is not as it must be.
pub fn doors(request: &BuildRequest) -> Result<&'static [BuildDoor], BuildError> {
    if request.dir.join("Cargo.toml").is_file() {
        return Ok(&[BuildDoor::Dylib, BuildDoor::Wasm]);
    }
    Ok(Project::open(request)?.doors())
}

/// Builds a plugin, checks the result, and asks it once what it has to say about itself, so that `inspect` need not:
/// a component in its sandbox, a library in a process of its own. The tools' messages go to stderr.
///
/// # Errors
/// When a tool is missing or fails, or the result is not a plugin.
pub fn build(request: &BuildRequest) -> Result<Built, BuildError> {
    let is_project = !request.dir.join("Cargo.toml").is_file() && request.dir.join(project::FILE).is_file();
    let Compiled { id, library, schema } = if is_project {
        project(request)?
    } else {
        package(request)?
    };
    let registry = Registry::new(&Policy::default())?;
    let found = registry.find(&library.to_string_lossy())?;
    found.check()?;
    let policy = Policy {
        in_process: request.program.is_none(),
        program: request.program.clone(),
        ..Policy::default()
    };
    let description = describe(&found, &schema, &policy)?;
    let bytes = match found.file() {
        // The bytes that were checked and asked, not the file as it is now.
        Some(file) => with_description(file, &description)?,
        None => return Err(BuildError::NoSection(library)),
    };
    let path = install(&bytes, &request.out, &file_name(&id, request.door.into()))?;
    let found = registry.find(&path.to_string_lossy())?;
    found.check()?;
    if found.manifest.id != id {
        return Err(BuildError::OtherId {
            name: id,
            id: found.manifest.id,
        });
    }
    let sha256 = found.file().map_or_else(String::new, |file| file.sha256.clone());
    Ok(Built {
        path,
        size: bytes.len() as u64,
        sha256,
        manifest: found.manifest,
    })
}

/// What the tools of a language made.
struct Compiled {
    id: String,
    library: PathBuf,
    schema: Schema,
}

/// Compiles a crate, and beside a component the one that tells the schema of its configuration.
fn package(request: &BuildRequest) -> Result<Compiled, BuildError> {
    let package = cargo::package(&request.dir)?;
    if !is_id(&package.name) {
        return Err(BuildError::Name(package.name));
    }
    let target_dir = request
        .target_dir
        .clone()
        .unwrap_or_else(|| package.target_directory.join("plugins"));
    let compile = |artefact| cargo::compile(artefact, &request.dir, &package, &target_dir);
    let library = compile(Artefact::Plugin(request.door))?;
    let schema = match request.door {
        BuildDoor::Dylib => Schema::OfItself,
        BuildDoor::Wasm => Schema::Component(read(&compile(Artefact::Description)?)?),
    };
    let id = package.name;
    Ok(Compiled { id, library, schema })
}

/// Compiles a project; its plugin.toml tells the schema.
fn project(request: &BuildRequest) -> Result<Compiled, BuildError> {
    let project = Project::open(request)?;
    let library = project.compile(request.door)?;
    Ok(Compiled {
        id: project.manifest.id,
        library,
        schema: Schema::Known(project.config),
    })
}

fn read(path: &Path) -> Result<Vec<u8>, BuildError> {
    std::fs::read(path).map_err(BuildError::write(path))
}

/// The library's bytes with a section in which stands what it says of itself.
fn with_description(library: &PluginFile, description: &Description) -> Result<Vec<u8>, BuildError> {
    let description = serde_json::to_vec(description).map_err(|error| BuildError::Answer {
        tool: library.path.display().to_string(),
        message: error.to_string(),
    })?;
    let bytes = library.bytes.clone();
    match library.door {
        Door::Wasm => Ok(section::with_custom_section(
            bytes,
            WASM_DESCRIPTION,
            &description,
        )),
        Door::Dylib | Door::Builtin => section::with_elf_section(bytes, DYLIB_DESCRIPTION, &description)
            .ok_or_else(|| BuildError::NoSection(library.path.clone())),
    }
}

/// Writes the plugin to its place; one that was there is replaced as a whole.
fn install(bytes: &[u8], out: &Path, name: &str) -> Result<PathBuf, BuildError> {
    let failed = BuildError::write;
    std::fs::create_dir_all(out).map_err(failed(out))?;
    let out = out.canonicalize().map_err(failed(out))?;
    let mut file = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(&out)
        .map_err(failed(&out))?;
    file.write_all(bytes).map_err(failed(&out))?;
    let path = out.join(name);
    file.persist(&path).map_err(|error| BuildError::Write {
        path: path.clone(),
        error: error.error,
    })?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_in(folder: &Path, door: BuildDoor) -> BuildError {
        let request = BuildRequest {
            dir: folder.to_owned(),
            door,
            out: folder.join("out"),
            target_dir: None,
            program: None,
        };
        build(&request).expect_err("refused")
    }

    #[test]
    fn a_folder_without_a_crate_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert!(
            matches!(build_in(folder.path(), BuildDoor::Wasm), BuildError::NoCrate(path) if path == folder.path())
        );
    }

    #[test]
    fn a_crate_whose_name_is_no_id_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let manifest =
            "[package]\nname = \"my_collector\"\nversion = \"1.0.0\"\nedition = \"2024\"\n[workspace]\n";
        std::fs::write(folder.path().join("Cargo.toml"), manifest).expect("a written file");
        std::fs::create_dir(folder.path().join("src")).expect("a folder");
        std::fs::write(folder.path().join("src/lib.rs"), "").expect("a written file");
        assert!(
            matches!(build_in(folder.path(), BuildDoor::Dylib), BuildError::Name(name) if name == "my_collector")
        );
    }

    #[test]
    fn a_manifest_that_cargo_refuses_is_told_in_its_words() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("Cargo.toml"), "[package]\nname = 3\n").expect("a written file");
        let error = build_in(folder.path(), BuildDoor::Dylib).to_string();
        assert!(
            error.starts_with("cargo failed: ") && error.contains("name"),
            "{error}"
        );
        assert_eq!(error.lines().count(), 1);
    }
}
