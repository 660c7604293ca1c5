//! Why a plugin is not found or refused: each place that is searched and what is there, then the verdict of the code that
//! decides in a run. Executes nothing of what it finds.

mod advice;

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::admission::Admission;
use super::error::PluginError;
use super::identity::is_id;
use super::limits::Policy;
use super::registry::{Found, Surveyed, beside, is_path};
use super::session::Door;

/// What was found out about a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// What was asked for.
    pub target: String,
    /// The places that were searched, in order; none where a file was named.
    pub places: Vec<SearchedPlace>,
    /// What would be taken, as far as it could be identified.
    pub plugin: Option<Identity>,
    /// Why it would not run; `None` when it would.
    pub problem: Option<String>,
    /// What to do about the problem.
    pub advice: Option<String>,
}

/// A place of the search and what is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SearchedPlace {
    /// Why it is searched.
    pub origin: String,
    /// The folder; none for built-in collectors.
    pub path: Option<PathBuf>,
    /// What is there.
    pub state: String,
    /// Files that have to do with the plugin.
    pub files: Vec<SearchedFile>,
}

/// A file in a place of the search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SearchedFile {
    /// The file.
    pub path: PathBuf,
    /// Whether it is taken, and why not.
    pub state: String,
}

/// What a plugin's file says that it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// Id.
    pub id: String,
    /// Version.
    pub version: String,
    /// Door.
    pub door: Door,
    /// Its file; none for built-in ones.
    pub path: Option<PathBuf>,
    /// Digest of the file.
    pub sha256: Option<String>,
    /// Interfaces that it needs.
    pub requires: Vec<String>,
}

/// Finds out whether a plugin would run, and why not. Everything that is wrong is part of the answer.
pub fn diagnose(target: &str, policy: &Policy) -> Diagnosis {
    let mut diagnosis = Diagnosis {
        target: target.to_owned(),
        places: Vec::new(),
        plugin: None,
        problem: None,
        advice: None,
    };
    if let Err(error) = examine(&mut diagnosis, policy) {
        diagnosis.advice = Some(advice::for_error(&error, &diagnosis));
        diagnosis.problem = Some(error.to_string());
    }
    diagnosis
}

fn examine(diagnosis: &mut Diagnosis, policy: &Policy) -> Result<(), PluginError> {
    let admission = Admission::new(policy)?;
    let target = diagnosis.target.clone();
    if !is_path(&target) && is_id(&target) {
        let builtin = admission.registry.builtin_ids().any(|id| id == target);
        let survey = admission.registry.survey(&target, admission.pinned(&target));
        diagnosis.places = places(&target, builtin, &survey);
    }
    let found = admission.find(&target)?;
    diagnosis.plugin = Some(identity(&found));
    admission.permit(&found)
}

fn identity(found: &Found) -> Identity {
    Identity {
        id: found.manifest.id.clone(),
        version: found.manifest.version.clone(),
        door: found.door(),
        path: found.file().map(|file| file.path.clone()),
        sha256: found.file().map(|file| file.sha256.clone()),
        requires: found.manifest.requires.clone(),
    }
}

/// The places in order. `taken` is what the first hit shadows later files with.
fn places(id: &str, builtin: bool, survey: &[Surveyed]) -> Vec<SearchedPlace> {
    let mut taken = builtin.then(|| "the built-in collector".to_owned());
    let state = if builtin { "taken" } else { "none of this id" };
    let mut places = vec![SearchedPlace {
        origin: "built in".to_owned(),
        path: None,
        state: state.to_owned(),
        files: Vec::new(),
    }];
    for place in survey {
        let files = place
            .files
            .iter()
            .map(|(path, found)| searched_file(path, found, &mut taken));
        let mut files: Vec<SearchedFile> = files.collect();
        files.extend(place.passed_over.iter().map(|(path, reason)| SearchedFile {
            path: path.clone(),
            state: format!("passed over: {reason}"),
        }));
        places.push(SearchedPlace {
            origin: place.origin.to_owned(),
            path: Some(place.path.clone()),
            state: place_state(place),
            files,
        });
    }
    let beside = beside(id);
    if !beside.is_empty() {
        let state = "passed over: give its path to use it".to_owned();
        places.push(SearchedPlace {
            origin: "working directory".to_owned(),
            path: Some(PathBuf::from(".")),
            state: "never searched".to_owned(),
            files: beside
                .into_iter()
                .map(|path| SearchedFile {
                    path,
                    state: state.clone(),
                })
                .collect(),
        });
    }
    places
}

fn place_state(place: &Surveyed) -> String {
    match &place.unreadable {
        Some(error) if error.kind() == std::io::ErrorKind::NotFound => "no such folder".to_owned(),
        Some(error) => format!("cannot be read: {error}"),
        None if place.files.is_empty() => "nothing of this id".to_owned(),
        None => "searched".to_owned(),
    }
}

fn searched_file(
    path: &Path,
    found: &Result<Found, PluginError>,
    taken: &mut Option<String>,
) -> SearchedFile {
    let what = match found {
        Ok(found) => format!(
            "{} {}, {}",
            found.manifest.id,
            found.manifest.version,
            found.door()
        ),
        Err(error) => error.to_string(),
    };
    let state = match taken {
        Some(first) => format!("shadowed by {first} ({what})"),
        None => {
            *taken = Some(path.display().to_string());
            format!("taken: {what}")
        }
    };
    SearchedFile {
        path: path.to_owned(),
        state,
    }
}
