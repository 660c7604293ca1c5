//! The doors through which a plugin can be measured.

use std::path::{Path, PathBuf};

use super::{BenchDoor, BenchError, LeftOut};
use crate::plugin::admission::Admission;
use crate::plugin::error::PluginError;
use crate::plugin::limits::Policy;
use crate::plugin::registry::{Found, is_path};
use crate::plugin::session::Door;

/// A way to a plugin.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) door: BenchDoor,
    /// Its id or path.
    pub(super) target: String,
}

/// The ways to a plugin, one per door, and those that cannot be gone.
///
/// # Errors
/// When there is none.
pub(super) fn ways(
    target: &str,
    doors: &[BenchDoor],
    policy: &Policy,
) -> Result<(Vec<Way>, Vec<LeftOut>), BenchError> {
    let admission = Admission::new(policy)?;
    let (mut ways, mut left_out, mut reason): (Vec<Way>, Vec<LeftOut>, Option<PluginError>) =
        Default::default();
    let mut id = None;
    for target in targets(target, &admission)? {
        let found = match admission.find(&target) {
            Ok(found) => found,
            Err(error) => {
                reason.get_or_insert(error);
                continue;
            }
        };
        let own = id.get_or_insert_with(|| found.manifest.id.clone());
        if *own != found.manifest.id {
            return Err(BenchError::SeveralPlugins {
                first: own.clone(),
                other: found.manifest.id,
            });
        }
        for door in through(&found, doors) {
            if ways.iter().any(|way| way.door == door) {
                continue;
            }
            match admission.permit(&found) {
                Ok(()) => ways.push(Way {
                    door,
                    target: target.clone(),
                }),
                Err(error) => {
                    left_out.push(LeftOut {
                        door,
                        reason: error.to_string(),
                    });
                    reason.get_or_insert(error);
                }
            }
        }
    }
    ways.sort_by_key(|way| way.door);
    match (ways.is_empty(), reason) {
        (false, _) => Ok((ways, left_out)),
        (true, Some(reason)) => Err(reason.into()),
        (true, None) => Err(BenchError::NoDoor(target.to_owned())),
    }
}

/// Ids and paths that mean the plugin: of a file itself, of a folder its files, of an id the built-in collector and the first
/// file of each door.
fn targets(target: &str, admission: &Admission<'_>) -> Result<Vec<String>, BenchError> {
    if Path::new(target).is_dir() {
        let files = files(Path::new(target))?;
        return match files.is_empty() {
            true => Err(BenchError::EmptyFolder(target.into())),
            false => Ok(files),
        };
    }
    let mut targets = vec![target.to_owned()];
    if !is_path(target) {
        let survey = admission.registry.survey(target, admission.pinned(target));
        let found = survey.iter().flat_map(|place| &place.files);
        let usable = found.filter(|(_, found)| found.is_ok());
        targets.extend(usable.map(|(path, _)| as_path(path)));
    }
    Ok(targets)
}

fn files(folder: &Path) -> Result<Vec<String>, BenchError> {
    let failed = |error| BenchError::Folder {
        path: folder.to_owned(),
        error,
    };
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "so" || extension == "wasm")
    });
    paths.sort();
    Ok(paths.iter().map(|path| as_path(path)).collect())
}

/// A path that is not mistaken for an id.
fn as_path(path: &Path) -> String {
    path.display().to_string()
}

fn through(found: &Found, doors: &[BenchDoor]) -> Vec<BenchDoor> {
    let all: &[BenchDoor] = match found.door() {
        Door::Builtin => &[BenchDoor::Builtin],
        Door::Dylib => &[BenchDoor::Dylib, BenchDoor::DylibInProcess],
        Door::Wasm => &[BenchDoor::Wasm],
    };
    all.iter()
        .copied()
        .filter(|door| doors.is_empty() || doors.contains(door))
        .collect()
}
