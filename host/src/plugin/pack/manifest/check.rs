//! Values that a `pack.toml` may have.

use std::collections::BTreeSet;

use semver::Version;

use super::super::name;
use super::{PackManifest, PackedDoor, PackedPlugin, json};
use crate::plugin::identity::is_id;

const TEXT_BYTES: usize = 1_024;
const CONFIG_BYTES: usize = 64 << 10;
const REQUIRES: usize = 16;

impl PackManifest {
    /// Says what is not allowed.
    pub(super) fn check(&self) -> Result<(), String> {
        if !is_id(&self.name) {
            let name = short(&self.name);
            return Err(format!(
                "name {name:?} is not 2 to 63 of a-z, 0-9 and -, a letter first"
            ));
        }
        check_version(&self.version)?;
        check_line("license", &self.license)?;
        check_line("about", &self.about)?;
        if self.plugins.is_empty() {
            return Err("it names no plugin".to_owned());
        }
        self.plugins.iter().try_for_each(PackedPlugin::check)?;
        for document in &self.documents {
            check_file(&document.file, &document.sha256)?;
            if !name::is_document(&document.file) {
                let text = "is no document (README, LICENSE, NOTICE, CHANGELOG, with an ending or not)";
                return Err(format!("{} {text}", document.file));
            }
        }
        self.check_unique()?;
        self.config
            .iter()
            .try_for_each(|(id, table)| self.check_config(id, table))
    }

    fn check_unique(&self) -> Result<(), String> {
        let mut files = BTreeSet::new();
        if let Some(again) = self.files().find(|file| !files.insert(file.file)) {
            return Err(format!("{} is named twice", again.file));
        }
        let mut forms = BTreeSet::new();
        let again = self
            .plugins
            .iter()
            .find(|plugin| !forms.insert((&plugin.id, plugin.door, &plugin.target)));
        match again {
            Some(again) => Err(format!(
                "plugin {} is there twice for one door and target",
                again.id
            )),
            None => Ok(()),
        }
    }

    fn check_config(&self, id: &str, table: &toml::Table) -> Result<(), String> {
        if self.plugins.iter().all(|plugin| plugin.id != id) {
            return Err(format!(
                "config is given for {:?}, which is no plugin of it",
                short(id)
            ));
        }
        let values: Option<Vec<_>> = table.values().map(json).collect();
        let Some(values) = values else {
            return Err(format!(
                "config of {id} has a date, inf or nan, which JSON does not have"
            ));
        };
        let bytes: usize = values.iter().map(|value| value.to_string().len()).sum();
        if bytes > CONFIG_BYTES {
            return Err(format!("config of {id} has more than {CONFIG_BYTES} bytes"));
        }
        Ok(())
    }
}

impl PackedPlugin {
    fn check(&self) -> Result<(), String> {
        let Self { id, file, target, .. } = self;
        if !is_id(id) {
            let id = short(id);
            return Err(format!(
                "plugin id {id:?} is not 2 to 63 of a-z, 0-9 and -, a letter first"
            ));
        }
        check_file(file, &self.sha256)?;
        let (ending, wants_target) = match self.door {
            PackedDoor::Wasm => (".wasm", false),
            PackedDoor::Dylib => (".so", true),
        };
        if !file.ends_with(ending) {
            return Err(format!("{file}: a file for this door is named NAME{ending}"));
        }
        match target {
            Some(_) if !wants_target => return Err(format!("{file}: a component has no target")),
            None if wants_target => {
                return Err(format!(
                    "{file}: a native library needs a target such as x86_64-unknown-linux-gnu"
                ));
            }
            Some(target) if !is_target(target) => {
                return Err(format!("{file}: {:?} is no target", short(target)));
            }
            _ => {}
        }
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
        let is_interface = |text: &String| (1..=128).contains(&text.len()) && text.bytes().all(fits);
        if self.requires.len() > REQUIRES || !self.requires.iter().all(is_interface) {
            return Err(format!(
                "{file}: requires has more than {REQUIRES} entries or one that is no interface"
            ));
        }
        Ok(())
    }
}

fn is_target(text: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.".contains(&byte))
    };
    text.len() <= 64 && (3..=4).contains(&text.split('-').count()) && text.split('-').all(part)
}

/// A version is a folder's name: it must be the same one on every system.
fn check_version(version: &Version) -> Result<(), String> {
    let text = version.to_string();
    if text.len() > 64 || !version.build.is_empty() || text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(format!(
            "version {:?} has build metadata (+), upper-case letters, or more than 64 characters",
            short(&text)
        ));
    }
    Ok(())
}

fn check_line(key: &str, text: &str) -> Result<(), String> {
    if text.is_empty() || text.len() > TEXT_BYTES || text.chars().any(char::is_control) {
        return Err(format!(
            "{key} is empty, not one line, or longer than {TEXT_BYTES} bytes"
        ));
    }
    Ok(())
}

fn check_file(file: &str, sha256: &str) -> Result<(), String> {
    name::check(file.as_bytes()).map_err(|error| format!("the file name {:?} {error}", short(file)))?;
    if !sha256.is_empty() && !is_sha256(sha256) {
        return Err(format!("{file}: sha256 is not 64 digits of 0-9 and a-f"));
    }
    Ok(())
}

/// Whether a text is a SHA-256 as files of ours give it: 64 digits of 0-9 and a-f.
pub(in crate::plugin::pack) fn is_sha256(text: &str) -> bool {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == 64 && text.bytes().all(digit)
}

/// A hostile text as far as a message needs it.
fn short(text: &str) -> String {
    text.chars().take(80).collect()
}
