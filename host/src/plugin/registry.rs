//! Finds plugins by id or path and tells what they are. Executes nothing of what it finds.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lm_bench_plugin::builtin::Builtin;
use lm_bench_plugin::manifest::{Description, Manifest};
use serde::Serialize;

use super::dylib::{self, LibraryFacts};
use super::error::PluginError;
use super::file::{self, PluginFile};
use super::limits::{Limits, Policy};
use super::pack::{Candidate, InstalledPacks};
use super::search::{self, Folder};
use super::session::Door;
use super::wasm::ComponentFacts;
use super::{builtin, identity, pack, wasm};

mod places;
mod survey;

use places::Place;
pub(crate) use survey::{Surveyed, beside};

/// A plugin that was found and identified.
#[derive(Debug)]
pub(crate) struct Found {
    /// Its manifest.
    pub(crate) manifest: Manifest,
    /// Its code.
    pub(crate) code: Code,
    /// Files of the same id that are passed over because this one comes first.
    pub(crate) shadows: Vec<PathBuf>,
    /// The pack that it is in.
    pub(crate) pack: Option<Candidate>,
}

/// Where a plugin's code is.
#[derive(Debug)]
pub(crate) enum Code {
    /// In this program.
    Builtin(&'static Builtin),
    /// In a native library.
    Dylib(PluginFile, LibraryFacts),
    /// In a component.
    Wasm(PluginFile, ComponentFacts),
}

impl Found {
    /// How it is connected.
    pub(crate) fn door(&self) -> Door {
        match self.code {
            Code::Builtin(_) => Door::Builtin,
            Code::Dylib(..) => Door::Dylib,
            Code::Wasm(..) => Door::Wasm,
        }
    }

    /// Its file.
    pub(crate) fn file(&self) -> Option<&PluginFile> {
        match &self.code {
            Code::Builtin(_) => None,
            Code::Dylib(file, _) | Code::Wasm(file, _) => Some(file),
        }
    }

    /// Where it came from, for messages.
    pub(crate) fn place(&self) -> String {
        self.file()
            .map_or_else(|| "built in".to_owned(), |file| file.path.display().to_string())
    }

    /// Checks that this version can run it.
    ///
    /// # Errors
    /// Naming what it needs.
    pub(crate) fn check(&self) -> Result<(), PluginError> {
        match &self.code {
            Code::Wasm(file, facts) => {
                wasm::check(&file.bytes, &facts.imports, &self.manifest).map_err(|error| {
                    PluginError::Component {
                        path: file.path.clone(),
                        error,
                    }
                })
            }
            Code::Builtin(_) | Code::Dylib(..) => {
                identity::check_interfaces(&self.manifest).map_err(|error| PluginError::Manifest {
                    place: self.place(),
                    error,
                })
            }
        }
    }
}

/// All plugins within reach.
#[derive(Debug)]
pub struct Registry {
    builtin: Vec<(Manifest, &'static Builtin)>,
    /// In the order of the search; packs come before the last, the system's.
    folders: Vec<Folder>,
    packs: Option<InstalledPacks>,
    limits: Limits,
}

impl Registry {
    /// Looks at the built-in collectors and the environment.
    ///
    /// # Errors
    /// When a built-in collector carries a manifest that is not valid, or a folder that the policy names cannot be read.
    pub fn new(policy: &Policy) -> Result<Self, PluginError> {
        Self::with_variables(policy, |name| std::env::var_os(name))
    }

    fn with_variables(
        policy: &Policy,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, PluginError> {
        let builtin = builtin::all().map_err(PluginError::builtin)?;
        for path in &policy.plugin_dirs {
            std::fs::read_dir(path).map_err(|source| PluginError::Folder {
                path: path.clone(),
                source,
            })?;
        }
        let folders = search::folders(policy, &variable);
        let packs = pack::packs_folder(&variable)
            .map(|folder| InstalledPacks::new(folder, pack::trust_file(&variable)));
        Ok(Self {
            builtin,
            folders,
            packs,
            limits: policy.limits.clone(),
        })
    }

    /// Ids of the built-in collectors in order.
    pub(crate) fn builtin_ids(&self) -> impl Iterator<Item = &str> {
        self.builtin.iter().map(|(manifest, _)| manifest.id.as_str())
    }

    /// Finds a plugin by id or path. Built-in collectors come before files of the same id: a file is asked for by
    /// its path.
    ///
    /// # Errors
    /// When there is none, or its file is not a plugin.
    pub(crate) fn find(&self, target: &str) -> Result<Found, PluginError> {
        self.find_pinned(target, None)
    }

    /// As [`Registry::find`]; of several in packs, the one with the digest `pinned` comes first.
    ///
    /// # Errors
    /// As [`Registry::find`], and when the pack of the plugin is not accepted.
    pub(crate) fn find_pinned(&self, target: &str, pinned: Option<&str>) -> Result<Found, PluginError> {
        if is_path(target) {
            return self.open(Path::new(target));
        }
        if !identity::is_id(target) {
            return Err(PluginError::NoTarget(target.to_owned()));
        }
        let mut places = self.places(target, pinned).into_iter();
        if let Some((manifest, builtin)) = self.builtin.iter().find(|(manifest, _)| manifest.id == target) {
            let code = Code::Builtin(builtin);
            return Ok(Found {
                manifest: manifest.clone(),
                code,
                shadows: places.map(|place| place.path()).collect(),
                pack: None,
            });
        }
        let Some(first) = places.next() else {
            let searched = self.searched();
            let builtin = self.builtin_ids().map(str::to_owned).collect();
            return Err(PluginError::Unknown {
                id: target.to_owned(),
                builtin,
                searched,
            });
        };
        let path = first.path();
        let mut found = match &first {
            Place::File(path) => self.open(path)?,
            Place::Pack(candidate) => self.open_packed(candidate)?,
        };
        if found.manifest.id != target {
            return Err(PluginError::OtherId {
                path,
                id: target.to_owned(),
                found: found.manifest.id,
            });
        }
        found.shadows = places.map(|place| place.path()).collect();
        Ok(found)
    }

    /// Reads and identifies a plugin file.
    fn open(&self, path: &Path) -> Result<Found, PluginError> {
        self.identify(file::read(path, &self.limits)?)
    }

    /// Reads and identifies a plugin in a pack.
    fn open_packed(&self, candidate: &Candidate) -> Result<Found, PluginError> {
        let mut found = self.identify(candidate.read(&self.limits)?)?;
        found.pack = Some(candidate.clone());
        Ok(found)
    }

    /// Identifies a plugin by its bytes.
    fn identify(&self, file: PluginFile) -> Result<Found, PluginError> {
        let path = file.path.clone();
        let (manifest, code) = match file.door {
            Door::Wasm => {
                let facts = wasm::inspect(&file.bytes, &self.limits)
                    .map_err(|error| PluginError::Component { path, error })?;
                (facts.manifest.clone(), Code::Wasm(file, facts))
            }
            Door::Dylib | Door::Builtin => {
                let facts = dylib::inspect(&file.bytes, &self.limits)
                    .map_err(|error| PluginError::Elf { path, error })?;
                (facts.manifest.clone(), Code::Dylib(file, facts))
            }
        };
        Ok(Found {
            manifest,
            code,
            shadows: Vec::new(),
            pack: None,
        })
    }

    /// All plugins within reach: built-in ones, then files in the order of the search.
    pub fn list(&self) -> Vec<Listed> {
        let mut listed: Vec<Listed> = Vec::new();
        for (manifest, builtin) in &self.builtin {
            let found = Found {
                manifest: manifest.clone(),
                code: Code::Builtin(builtin),
                shadows: Vec::new(),
                pack: None,
            };
            listed.push(Listed::new(None, Ok(found)));
        }
        for place in self.all_places() {
            let found = match &place {
                Place::File(path) => self.open(path),
                Place::Pack(candidate) => self.open_packed(candidate),
            };
            let mut entry = Listed::new(Some(place.path()), found);
            let first = listed
                .iter()
                .find(|other| other.id.is_some() && other.id == entry.id);
            entry.shadowed_by = first.map(|first| match &first.path {
                Some(path) => path.display().to_string(),
                None => "built in".to_owned(),
            });
            listed.push(entry);
        }
        listed
    }

    /// Tells all that is known of a plugin without executing it; a built-in collector, part of this program, is asked.
    ///
    /// # Errors
    /// When there is no such plugin, or its file cannot be read as one.
    pub fn inspect(&self, target: &str) -> Result<Inspection, PluginError> {
        let found = self.find(target)?;
        let problem = found.check().err().map(|error| error.to_string());
        let (size, sha256) = match found.file() {
            Some(file) => (Some(file.bytes.len() as u64), Some(file.sha256.clone())),
            None => (None, None),
        };
        let (imports, description) = match &found.code {
            Code::Wasm(_, facts) => (Some(facts.imports.clone()), facts.description.clone()),
            Code::Dylib(_, facts) => (None, facts.description.clone()),
            Code::Builtin(builtin) => (None, builtin::describe(builtin)),
        };
        Ok(Inspection {
            door: found.door(),
            path: found.file().map(|file| file.path.clone()),
            size,
            sha256,
            imports,
            description,
            problem,
            shadows: found.shadows,
            manifest: found.manifest,
        })
    }
}

/// Whether a target names a file, not an id.
pub(super) fn is_path(target: &str) -> bool {
    let extension = Path::new(target).extension();
    target.contains('/') || extension.is_some_and(|extension| extension == "so" || extension == "wasm")
}

/// One line of a list of plugins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Id, where the file is a plugin.
    pub id: Option<String>,
    /// Version.
    pub version: Option<String>,
    /// What it measures.
    pub about: Option<String>,
    /// Door.
    pub door: Option<Door>,
    /// Its file; none for built-in ones.
    pub path: Option<PathBuf>,
    /// What is taken instead of it when its id is asked for.
    pub shadowed_by: Option<String>,
    /// Why it cannot be used.
    pub problem: Option<String>,
}

impl Listed {
    fn new(path: Option<PathBuf>, found: Result<Found, PluginError>) -> Self {
        let listed = Self {
            id: None,
            version: None,
            about: None,
            door: None,
            path,
            shadowed_by: None,
            problem: None,
        };
        match found {
            Err(error) => Self {
                problem: Some(error.to_string()),
                ..listed
            },
            Ok(found) => Self {
                door: Some(found.door()),
                problem: found.check().err().map(|error| error.to_string()),
                id: Some(found.manifest.id),
                version: Some(found.manifest.version),
                about: Some(found.manifest.about),
                ..listed
            },
        }
    }
}

/// What is known of a plugin without executing it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inspection {
    /// Its manifest.
    pub manifest: Manifest,
    /// Its door.
    pub door: Door,
    /// Its file; none for built-in ones.
    pub path: Option<PathBuf>,
    /// Size of the file in bytes.
    pub size: Option<u64>,
    /// Digest of the file.
    pub sha256: Option<String>,
    /// What a component imports.
    pub imports: Option<Vec<String>>,
    /// What its build recorded of it: what it wants, and the schema of its configuration.
    pub description: Option<Description>,
    /// Why this version cannot run it.
    pub problem: Option<String>,
    /// Files of the same id that it stands before.
    pub shadows: Vec<PathBuf>,
}
