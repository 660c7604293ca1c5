//! What is in each place that is searched for an id: what a run takes, and what it passes over.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::places::Place;
use super::{Found, Registry};
use crate::plugin::error::PluginError;
use crate::plugin::search::{Folder, Origin, file_name};
use crate::plugin::session::Door;

/// A place of the search.
#[derive(Debug)]
pub(crate) struct Surveyed {
    /// Why it is searched.
    pub(crate) origin: &'static str,
    /// The folder; of a pack, the one that holds all packs.
    pub(crate) path: PathBuf,
    /// Why it cannot be read.
    pub(crate) unreadable: Option<std::io::Error>,
    /// Files that a run takes for the id, and what they are, the first of all places before the others.
    pub(crate) files: Vec<(PathBuf, Result<Found, PluginError>)>,
    /// Files that look like the plugin and are not taken, with the reason.
    pub(crate) passed_over: Vec<(PathBuf, String)>,
}

impl Registry {
    /// Looks into each place that is searched for an id, in order, then into the working directory, which is none.
    pub(crate) fn survey(&self, id: &str, pinned: Option<&str>) -> Vec<Surveyed> {
        let mut places: Vec<Surveyed> = self
            .folders
            .iter()
            .map(|folder| self.folder(folder, id))
            .collect();
        if let Some(packs) = &self.packs {
            let files = packs.candidates(id, pinned).into_iter().map(Box::new);
            let files = files.map(Place::Pack).map(|place| self.look(&place)).collect();
            let packed = Surveyed {
                origin: "packs",
                path: packs.root().to_owned(),
                unreadable: readable(packs.root()).err(),
                files,
                passed_over: Vec::new(),
            };
            // The system's folder is the last.
            places.insert(places.len().saturating_sub(1), packed);
        }
        places
    }

    fn folder(&self, folder: &Folder, id: &str) -> Surveyed {
        let files = folder.candidates(id).into_iter().map(Place::File);
        Surveyed {
            origin: folder.origin.name(),
            path: folder.path.clone(),
            unreadable: readable(&folder.path).err(),
            files: files.map(|place| self.look(&place)).collect(),
            passed_over: passed_over(folder, id),
        }
    }

    fn look(&self, place: &Place) -> (PathBuf, Result<Found, PluginError>) {
        let found = match place {
            Place::File(path) => self.open(path),
            Place::Pack(candidate) => self.open_packed(candidate),
        };
        (place.path(), found)
    }
}

fn readable(folder: &Path) -> std::io::Result<()> {
    std::fs::read_dir(folder).map(drop)
}

/// Files in the working directory that would be the plugin in a folder that is searched.
pub(crate) fn beside(id: &str) -> Vec<PathBuf> {
    let here = Folder {
        origin: Origin::Project,
        path: PathBuf::from("."),
        wasm_only: false,
    };
    here.candidates(id)
}

/// Files whose names mean the plugin to people or to cargo, but not to the search.
fn passed_over(folder: &Folder, id: &str) -> Vec<(PathBuf, String)> {
    let taken = folder.candidates(id);
    let Ok(entries) = std::fs::read_dir(&folder.path) else {
        return Vec::new();
    };
    let mut found: Vec<(PathBuf, String)> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| !taken.contains(path) && means(path, id))
        .map(|path| {
            let reason = reason(&path, folder, id);
            (path, reason)
        })
        .collect();
    found.sort();
    found
}

fn door(path: &Path) -> Option<Door> {
    match path.extension().and_then(OsStr::to_str) {
        Some("wasm") => Some(Door::Wasm),
        Some("so") => Some(Door::Dylib),
        _ => None,
    }
}

fn means(path: &Path, id: &str) -> bool {
    let Some(stem) = path.file_stem().and_then(OsStr::to_str) else {
        return false;
    };
    let plain = |text: &str| text.to_ascii_lowercase().replace('-', "_");
    let (stem, id) = (plain(stem), plain(id));
    door(path).is_some() && (stem == id || stem.strip_prefix("lib") == Some(id.as_str()))
}

fn reason(path: &Path, folder: &Folder, id: &str) -> String {
    let door = door(path).unwrap_or(Door::Wasm);
    if folder.wasm_only && door == Door::Dylib {
        return "native code is not taken from a project's folder".to_owned();
    }
    format!("the search looks for {}", file_name(id, door))
}
