//! A plugin that is not a cargo crate: a folder with a `plugin.toml`, which says what a crate says in its source.

use std::path::PathBuf;

use lm_bench_plugin::manifest::{COLLECTOR_INTERFACE, Manifest, MetricDecl, SCHEMA, SDK_VERSION};
use lm_bench_plugin::{Direction, MetricKind};
use serde::{Deserialize, Serialize};

use super::{BuildDoor, BuildError, BuildRequest, c, c_component, component};
use crate::plugin::identity;
use crate::plugin::limits::Limits;

/// Name of the file.
pub(super) const FILE: &str = "plugin.toml";

/// Languages other than Rust that a plugin can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Language {
    /// C or C++, told by the source's extension.
    C,
    /// JavaScript.
    Js,
    /// Python.
    Python,
}

/// A folder with a `plugin.toml`.
#[derive(Debug)]
pub(super) struct Project {
    /// The folder.
    pub(super) dir: PathBuf,
    /// The source, below the folder.
    pub(super) source: PathBuf,
    /// Further arguments for the compiler of C.
    pub(super) flags: Vec<String>,
    /// Where intermediate results go.
    pub(super) work: PathBuf,
    /// Folder of what may be shared between plugins.
    pub(super) target_dir: PathBuf,
    /// What the plugin says of itself.
    pub(super) manifest: Manifest,
    /// JSON schema of its configuration.
    pub(super) config: serde_json::Value,
    language: Language,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    language: Language,
    source: PathBuf,
    #[serde(default)]
    flags: Vec<String>,
    id: String,
    version: String,
    about: String,
    license: String,
    #[serde(default = "no_config")]
    config: serde_json::Map<String, serde_json::Value>,
    #[serde(default)]
    metrics: Vec<Metric>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Metric {
    name: String,
    #[serde(default = "no_unit")]
    unit: String,
    kind: MetricKind,
    #[serde(default = "no_direction")]
    direction: Direction,
    formula: String,
    about: String,
    #[serde(default)]
    labels: Vec<String>,
}

/// Nothing to configure.
fn no_config() -> serde_json::Map<String, serde_json::Value> {
    let schema = [("type", "object".into()), ("additionalProperties", false.into())];
    schema
        .map(|(key, value)| (key.to_owned(), value))
        .into_iter()
        .collect()
}

fn no_unit() -> String {
    "1".to_owned()
}

fn no_direction() -> Direction {
    Direction::Neither
}

impl Project {
    /// Reads a folder's `plugin.toml`.
    ///
    /// # Errors
    /// Naming what is not as it must be.
    pub(super) fn open(request: &BuildRequest) -> Result<Self, BuildError> {
        let path = request.dir.join(FILE);
        let wrong = |message: String| BuildError::Project {
            path: path.clone(),
            message,
        };
        let text = std::fs::read_to_string(&path).map_err(|_| BuildError::NoCrate(request.dir.clone()))?;
        let file: File = toml::from_str(&text).map_err(|error| wrong(place(&error, &text)))?;
        if !file.flags.is_empty() && file.language != Language::C {
            return Err(wrong(
                "flags are for the compiler of C; leave them out".to_owned(),
            ));
        }
        let dir = request
            .dir
            .canonicalize()
            .map_err(|error| wrong(error.to_string()))?;
        if !dir.join(&file.source).is_file() {
            return Err(wrong(format!(
                "there is no source file {}",
                file.source.display()
            )));
        }
        let manifest = manifest(&file);
        // The reader of built files is the judge of what it will read.
        let json = serde_json::to_vec(&manifest).map_err(|error| wrong(error.to_string()))?;
        identity::read(&json, &Limits::default()).map_err(|error| wrong(error.to_string()))?;
        let target_dir = request
            .target_dir
            .clone()
            .unwrap_or_else(|| dir.join("target/plugins"));
        std::fs::create_dir_all(&target_dir).map_err(BuildError::write(&target_dir))?;
        let target_dir = target_dir
            .canonicalize()
            .map_err(BuildError::write(&target_dir))?;
        Ok(Self {
            dir,
            source: file.source,
            flags: file.flags,
            work: target_dir.join(&manifest.id),
            target_dir,
            manifest,
            config: file.config.into(),
            language: file.language,
        })
    }

    /// The doors that its language has.
    pub(super) fn doors(&self) -> &'static [BuildDoor] {
        match self.language {
            Language::C => &[BuildDoor::Dylib],
            Language::Js | Language::Python => &[BuildDoor::Wasm],
        }
    }

    /// Compiles the plugin, its manifest inside, and returns its path.
    ///
    /// # Errors
    /// When a tool is missing or refuses the source.
    pub(super) fn compile(&self, door: BuildDoor) -> Result<PathBuf, BuildError> {
        std::fs::create_dir_all(&self.work).map_err(BuildError::write(&self.work))?;
        match (self.language, door) {
            (Language::C, BuildDoor::Dylib) => c::library(self),
            (Language::C, BuildDoor::Wasm) => c_component::component(self),
            (Language::Js, BuildDoor::Wasm) => component::javascript(self),
            (Language::Python, BuildDoor::Wasm) => component::python(self),
            (Language::Js, BuildDoor::Dylib) => Err(BuildError::Door {
                language: "JavaScript",
                door: "wasm",
            }),
            (Language::Python, BuildDoor::Dylib) => Err(BuildError::Door {
                language: "Python",
                door: "wasm",
            }),
        }
    }

    /// The manifest as it stands in the built file.
    pub(super) fn manifest_json(&self) -> Result<Vec<u8>, BuildError> {
        serde_json::to_vec(&self.manifest).map_err(|error| BuildError::Project {
            path: self.dir.join(FILE),
            message: error.to_string(),
        })
    }

    /// Writes a file into the folder of intermediate results.
    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<PathBuf, BuildError> {
        let path = self.work.join(name);
        let folder = path.parent().unwrap_or(&self.work);
        std::fs::create_dir_all(folder).map_err(BuildError::write(folder))?;
        std::fs::write(&path, content).map_err(BuildError::write(&path))?;
        Ok(path)
    }
}

/// Line and reason of what is wrong in a file, on one line.
fn place(error: &toml::de::Error, text: &str) -> String {
    let message = error.message().trim().replace('\n', " ");
    match error.span() {
        Some(span) => {
            let before = text.get(..span.start).unwrap_or(text);
            format!("line {}: {message}", 1 + before.matches('\n').count())
        }
        None => message,
    }
}

fn manifest(file: &File) -> Manifest {
    let metric = |metric: &Metric| MetricDecl {
        name: metric.name.clone(),
        unit: metric.unit.clone(),
        kind: metric.kind,
        direction: metric.direction,
        formula: metric.formula.clone(),
        about: metric.about.clone(),
        labels: metric.labels.clone(),
    };
    Manifest {
        schema: SCHEMA,
        id: file.id.clone(),
        version: file.version.clone(),
        about: file.about.clone(),
        license: file.license.clone(),
        sdk: SDK_VERSION.to_owned(),
        requires: vec![COLLECTOR_INTERFACE.to_owned()],
        metrics: file.metrics.iter().map(metric).collect(),
        kinds: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "id = \"my-steps\"\nversion = \"1.0.0\"\nabout = \"a\"\nlicense = \"MIT\"\n";

    /// Opens a project with a source file for C and this text, and tells what it is.
    fn open(text: &str) -> Result<Project, String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join(FILE), text).expect("a written file");
        std::fs::write(folder.path().join("a.c"), "").expect("a written file");
        let request = BuildRequest {
            dir: folder.path().to_owned(),
            door: BuildDoor::Dylib,
            out: folder.path().join("out"),
            target_dir: None,
            program: None,
        };
        Project::open(&request).map_err(|error| {
            let text = error.to_string();
            let prefix = format!("{}: ", folder.path().join(FILE).display());
            text.strip_prefix(&prefix).unwrap_or(&text).to_owned()
        })
    }

    #[test]
    fn a_project_is_read_with_its_defaults() {
        let metric = "[[metrics]]\nname = \"slow\"\nkind = \"counter\"\nformula = \"f\"\nabout = \"b\"\n";
        let project = open(&format!("language = \"c\"\nsource = \"a.c\"\n{HEAD}{metric}")).expect("valid");
        assert_eq!(project.manifest.id, "my-steps");
        assert_eq!(project.manifest.requires, [COLLECTOR_INTERFACE]);
        let metric = &project.manifest.metrics[0];
        assert_eq!(
            (metric.unit.as_str(), metric.direction),
            ("1", Direction::Neither)
        );
        assert_eq!(
            project.config,
            serde_json::json!({"type": "object", "additionalProperties": false})
        );
        assert!(project.work.ends_with("target/plugins/my-steps"));
    }

    #[test]
    fn what_is_wrong_is_told_on_one_line() {
        let c = "language = \"c\"\nsource = \"a.c\"\n";
        let cases = [
            (format!("{c}{HEAD}colour = 1\n"), "line 7: unknown field `colour`"),
            (format!("{HEAD}source = \"a.c\"\n"), "missing field `language`"),
            (
                format!("language = \"cobol\"\nsource = \"a.c\"\n{HEAD}"),
                "line 1: unknown variant `cobol`",
            ),
            (
                format!("language = \"c\"\nsource = \"b.c\"\n{HEAD}"),
                "there is no source file b.c",
            ),
            (
                format!("language = \"js\"\nsource = \"a.c\"\nflags = [\"-g\"]\n{HEAD}"),
                "flags are for the compiler of C",
            ),
            (
                format!("{c}{}", HEAD.replace("my-steps", "My_Steps")),
                "\"My_Steps\" is no id",
            ),
            (format!("{c}{HEAD}id ="), "line 7: "),
        ];
        for (text, expected) in cases {
            let error = open(&text).expect_err(expected);
            assert!(error.contains(expected), "{error:?} lacks {expected:?}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn a_language_is_built_for_the_doors_that_it_has() {
        let project = open(&format!("language = \"js\"\nsource = \"a.c\"\n{HEAD}")).expect("valid");
        let error = project
            .compile(BuildDoor::Dylib)
            .expect_err("no such door")
            .to_string();
        assert!(error.contains("--door wasm"), "{error}");
    }
}
