//! Lays flags over the file over the defaults.

use std::fmt::Display;
use std::path::PathBuf;

use super::RunPlan;
use crate::plugin::LimitError;

/// Why a plan cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The plan file cannot be read.
    #[error("cannot read the plan {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The plan file is not TOML.
    #[error("the plan {} is not valid TOML: {what}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and why.
        what: String,
    },
    /// The plan file is too long to be one.
    #[error("the plan {} has more than 1 MiB", path.display())]
    Long {
        /// The file.
        path: PathBuf,
    },
    /// A key is unknown or its value has the wrong type.
    #[error("in the plan: {0}")]
    Key(String),
    /// A limit of plugins is out of range.
    #[error("plugin_limits.{0}")]
    Limit(#[from] LimitError),
    /// A value is out of range.
    #[error("{key} is {value}, but must be {allowed}")]
    Value {
        /// The key.
        key: String,
        /// What was given.
        value: String,
        /// What may be given.
        allowed: &'static str,
    },
}

impl PlanError {
    pub(super) fn value(key: &str, value: impl Display, allowed: &'static str) -> Self {
        Self::Value {
            key: key.to_owned(),
            value: value.to_string(),
            allowed,
        }
    }
}

/// Makes a plan of a file's table and the flags that were given, and checks it.
///
/// # Errors
/// An unknown key, a wrong type or a value out of range; each names the key.
pub fn resolve(file: toml::Table, flags: toml::Table) -> Result<RunPlan, PlanError> {
    let plan: RunPlan = lay_over(file, flags)
        .try_into()
        .map_err(|error: toml::de::Error| PlanError::Key(error.to_string().trim().replace('\n', " ")))?;
    plan.validate()?;
    Ok(plan)
}

/// Keys of `top` replace those of `bottom`; tables are merged, lists are not.
fn lay_over(mut bottom: toml::Table, top: toml::Table) -> toml::Table {
    for (key, value) in top {
        let merged = match (bottom.remove(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => {
                toml::Value::Table(lay_over(below, above))
            }
            (_, value) => value,
        };
        bottom.insert(key, merged);
    }
    bottom
}
