//! What a component's bytes tell without compiling or running it.

use lm_bench_plugin::manifest::{Description, Manifest, WASM_DESCRIPTION, WASM_SECTION};
use wasmparser::{Encoding, Parser, Payload, Validator};

use crate::plugin::identity::{self, ManifestError};
use crate::plugin::limits::Limits;

/// The package whose interfaces components may import and export.
const PACKAGE: &str = "lm-bench:collector/";
/// Version of the package's interfaces that this host offers.
const PACKAGE_VERSION: &str = "1.0.0";
/// Interfaces of the package that a component may import.
const OFFERED: &[&str] = &["host", "math", "types"];
/// Components nest; nothing that a toolchain makes goes deeper than this.
const DEPTH: usize = 8;

/// Why bytes are not a component that this version runs.
#[derive(Debug, thiserror::Error)]
pub enum ComponentError {
    /// The bytes are damaged or use what no toolchain for plugins makes.
    #[error("it is not a valid WebAssembly component: {0}")]
    Invalid(String),
    /// No manifest, or not one of this version.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// It wants to import something that the sandbox does not have.
    #[error(
        "it imports {import}, and the sandbox has only {}: build it for wasm32-unknown-unknown, without WASI",
        offered()
    )]
    Import {
        /// The import.
        import: String,
    },
    /// It was built for a later version of the contract.
    #[error(
        "it needs {needs}, this lm-bench ({}) has version {PACKAGE_VERSION}: update lm-bench, or use an older build of the plugin",
        crate::plugin::HOST_VERSION
    )]
    Version {
        /// The interface with its version.
        needs: String,
    },
    /// It does not export what a collector exports.
    #[error(
        "it does not export {PACKAGE}collector@{PACKAGE_VERSION}: it is a component, but no lm-bench plugin"
    )]
    World,
    /// The compiler refused it.
    #[error("it cannot be compiled: {0}")]
    Compile(String),
}

/// What is known of a component before it runs.
#[derive(Clone, Debug)]
pub(crate) struct ComponentFacts {
    /// The manifest.
    pub(crate) manifest: Manifest,
    /// What its build recorded of it.
    pub(crate) description: Option<Description>,
    /// Names of the imports.
    pub(crate) imports: Vec<String>,
}

fn offered() -> String {
    OFFERED
        .iter()
        .map(|name| format!("{PACKAGE}{name}@{PACKAGE_VERSION}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Validates a component and reads manifest and imports. Executes nothing. The bodies of functions are left to the
/// compiler, which validates them before it translates them: they are most of the bytes.
///
/// # Errors
/// When it is not a component with a manifest. A component that this version cannot run is no error.
pub(crate) fn inspect(bytes: &[u8], limits: &Limits) -> Result<ComponentFacts, ComponentError> {
    let invalid = |error: wasmparser::BinaryReaderError| ComponentError::Invalid(error.to_string());
    let mut validator = Validator::new();
    let mut found = Found::default();
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(invalid)?;
        validator.payload(&payload).map_err(invalid)?;
        found.take(payload)?;
    }
    match found.manifests.as_slice() {
        [] if !found.exports_collector => Err(ComponentError::World),
        [] => Err(ManifestError::Missing.into()),
        [json] => {
            let manifest = identity::read(json, limits)?;
            Ok(ComponentFacts {
                manifest,
                description: found.description.and_then(identity::read_description),
                imports: found.imports,
            })
        }
        several => Err(ManifestError::Several(several.len()).into()),
    }
}

/// Checks that this version can run a component.
///
/// # Errors
/// Naming the first import that there is not, or the missing export.
pub(crate) fn check(bytes: &[u8], imports: &[String], manifest: &Manifest) -> Result<(), ComponentError> {
    identity::check_interfaces(manifest)?;
    imports.iter().try_for_each(|import| check_import(import))?;
    let mut found = Found::default();
    for payload in Parser::new(0).parse_all(bytes) {
        found.take(payload.map_err(|error| ComponentError::Invalid(error.to_string()))?)?;
    }
    if found.exports_collector {
        Ok(())
    } else {
        Err(ComponentError::World)
    }
}

fn check_import(import: &str) -> Result<(), ComponentError> {
    let foreign = || ComponentError::Import {
        import: import.to_owned(),
    };
    let (name, version) = import
        .strip_prefix(PACKAGE)
        .and_then(|rest| rest.split_once('@'))
        .ok_or_else(foreign)?;
    if version != PACKAGE_VERSION {
        return Err(ComponentError::Version {
            needs: import.to_owned(),
        });
    }
    if OFFERED.contains(&name) {
        Ok(())
    } else {
        Err(foreign())
    }
}

#[derive(Default)]
struct Found<'a> {
    depth: usize,
    manifests: Vec<&'a [u8]>,
    description: Option<&'a [u8]>,
    imports: Vec<String>,
    exports_collector: bool,
}

impl<'a> Found<'a> {
    fn take(&mut self, payload: Payload<'a>) -> Result<(), ComponentError> {
        let invalid = |error: wasmparser::BinaryReaderError| ComponentError::Invalid(error.to_string());
        match payload {
            Payload::Version {
                encoding: Encoding::Module,
                ..
            } if self.depth == 0 => {
                return Err(ComponentError::Invalid("it is a core module".to_owned()));
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => {
                self.depth += 1;
                if self.depth > DEPTH {
                    return Err(ComponentError::Invalid(format!(
                        "modules nest deeper than {DEPTH}"
                    )));
                }
            }
            Payload::End(_) => self.depth = self.depth.saturating_sub(1),
            Payload::CustomSection(section) if section.name() == WASM_SECTION => {
                self.manifests.push(section.data());
            }
            Payload::CustomSection(section) if section.name() == WASM_DESCRIPTION => {
                self.description = Some(section.data());
            }
            Payload::ComponentImportSection(section) if self.depth == 0 => {
                for import in section {
                    self.imports.push(import.map_err(invalid)?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if self.depth == 0 => {
                for export in section {
                    let name = export.map_err(invalid)?.name.name.to_owned();
                    self.exports_collector |= name == format!("{PACKAGE}collector@{PACKAGE_VERSION}");
                }
            }
            _ => {}
        }
        Ok(())
    }
}
