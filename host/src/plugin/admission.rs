//! Whether a plugin may take part in a run: found, fit for this version, not against the lock file, and permitted where
//! it is native code. A run and the doctor ask here, so that they cannot differ. Executes nothing of what is found.

use super::error::PluginError;
use super::limits::Policy;
use super::pack::Lock;
use super::registry::{Code, Found, Registry};

/// What plugins are admitted by.
pub(super) struct Admission<'a> {
    /// All plugins within reach.
    pub(super) registry: Registry,
    /// What the lock file pins.
    lock: Lock,
    policy: &'a Policy,
}

impl<'a> Admission<'a> {
    /// Looks for the folders and the lock file that a policy names.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub(super) fn new(policy: &'a Policy) -> Result<Self, PluginError> {
        Ok(Self {
            registry: Registry::new(policy)?,
            lock: Lock::open(policy.lock.as_deref())?,
            policy,
        })
    }

    /// Finds a plugin by id or path, as far as telling what it is.
    ///
    /// # Errors
    /// When there is none, or its file is not a plugin.
    pub(super) fn find(&self, target: &str) -> Result<Found, PluginError> {
        self.registry.find_pinned(target, self.pinned(target))
    }

    /// The digest that the lock file holds a plugin to.
    pub(super) fn pinned(&self, target: &str) -> Option<&str> {
        self.lock.pinned(target).map(|entry| entry.sha256.as_str())
    }

    /// Whether a plugin that was found may be loaded.
    ///
    /// # Errors
    /// When it does not fit this version, is not the pinned one, or is native code without permission or
    /// in a deterministic run.
    pub(super) fn permit(&self, found: &Found) -> Result<(), PluginError> {
        found.check()?;
        if let (Code::Dylib(file, _), true) = (&found.code, self.policy.deterministic) {
            return Err(PluginError::NotDeterministic(file.path.clone()));
        }
        // Whoever pinned a native library knew which one it is.
        let allowed = self.check_lock(found)? || self.policy.allow_native;
        match &found.code {
            Code::Dylib(file, _) if !allowed => Err(PluginError::NativeCode(file.path.clone())),
            _ => Ok(()),
        }
    }

    /// Compares a plugin with the lock file; tells whether it is pinned.
    ///
    /// # Errors
    /// When the lock file pins something else.
    pub(super) fn check_lock(&self, found: &Found) -> Result<bool, PluginError> {
        let sha256 = found.file().map(|file| file.sha256.as_str());
        Ok(self.lock.check(&found.manifest.id, found.door(), sha256)?)
    }
}
