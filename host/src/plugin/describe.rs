//! Asks a plugin that was just built what it has to say about itself. This executes it: a component in its sandbox, a
//! library in a process of its own where the policy says so.

use std::fmt::Display;

use lm_bench_plugin::RunInfo;
use lm_bench_plugin::manifest::Description;

use super::collectors::Loader;
use super::error::PluginError;
use super::failure::Failure;
use super::limits::Policy;
use super::registry::{Code, Found};
use super::wasm;

/// Asks a plugin. `schema` is the component that tells the schema of a component's configuration; a library tells it
/// itself.
///
/// # Errors
/// When it cannot be loaded or does not answer.
pub(crate) fn describe(
    found: &Found,
    schema: Option<&[u8]>,
    policy: &Policy,
) -> Result<Description, PluginError> {
    let silent = |reason: &dyn Display| PluginError::Silent {
        place: found.place(),
        reason: reason.to_string(),
    };
    let loader = Loader::new(std::slice::from_ref(found), policy)?;
    let mut session = loader.session(found)?;
    let schema = match (&found.code, schema) {
        (Code::Wasm(..), Some(bytes)) => {
            wasm::config_schema(bytes, &policy.limits).map_err(|why| silent(&why))?
        }
        _ => session.describe().map_err(|failure| silent(&failure))?,
    };
    let config = serde_json::from_str(&schema).map_err(|error| silent(&error))?;
    let run = serde_json::to_string(&RunInfo::default()).map_err(|error| silent(&error))?;
    let subscription = match session.subscribe("{}", &run) {
        Ok(subscription) => Some(subscription),
        // It may need a configuration, or a run to look at.
        Err(Failure::Fault(_)) => None,
        Err(failure) => return Err(silent(&failure)),
    };
    Ok(Description { config, subscription })
}
