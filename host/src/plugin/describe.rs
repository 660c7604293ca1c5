//! Asks a plugin that was just built what it has to say about itself. This executes it: a component in its sandbox, a
//! library in a process of its own where the policy says so.

use std::fmt::Display;

use lm_bench_plugin::RunInfo;
use lm_bench_plugin::manifest::Description;

use super::collectors::Loader;
use super::error::PluginError;
use super::failure::Failure;
use super::limits::Policy;
use super::registry::Found;
use super::{probes, wasm};
use crate::clock::Clock;

/// Who tells the schema of a plugin's configuration.
pub(super) enum Schema {
    /// The plugin itself, which is a library.
    OfItself,
    /// A component that was made for it.
    Component(Vec<u8>),
    /// Its project.
    Known(serde_json::Value),
}

/// Asks a plugin.
///
/// # Errors
/// When it cannot be loaded or does not answer.
pub(super) fn describe(found: &Found, schema: &Schema, policy: &Policy) -> Result<Description, PluginError> {
    let silent = |reason: &dyn Display| PluginError::Silent {
        place: found.place(),
        reason: reason.to_string(),
    };
    if found.manifest.is_probe() {
        let mut probe = probes::session(found, policy, &Clock::start())?;
        let json = probe.describe().map_err(|failure| silent(&failure))?;
        return Ok(Description {
            config: serde_json::from_str(&json).map_err(|error| silent(&error))?,
            subscription: None,
        });
    }
    let loader = Loader::new(std::slice::from_ref(found), policy)?;
    let mut session = loader.session(found)?;
    let read = |json: String| serde_json::from_str(&json).map_err(|error| silent(&error));
    let config = match schema {
        Schema::OfItself => read(session.describe().map_err(|failure| silent(&failure))?)?,
        Schema::Component(bytes) => {
            read(wasm::config_schema(bytes, &policy.limits).map_err(|why| silent(&why))?)?
        }
        Schema::Known(schema) => schema.clone(),
    };
    let run = serde_json::to_string(&RunInfo::default()).map_err(|error| silent(&error))?;
    let subscription = match session.subscribe("{}", &run) {
        Ok(subscription) => Some(subscription),
        // It may need a configuration, or a run to look at.
        Err(Failure::Fault(_)) => None,
        Err(failure) => return Err(silent(&failure)),
    };
    Ok(Description { config, subscription })
}
