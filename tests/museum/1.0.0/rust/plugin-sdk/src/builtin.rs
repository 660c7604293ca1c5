//! The built-in door: collectors that are linked into the host.

use crate::erased::Instance;
use crate::fault::Fault;
use crate::subscription::{Resolved, Subscription};

/// Starts a collector from configuration and run facts as JSON, and the resolved columns.
pub type Open = fn(&str, &str, &Resolved) -> Result<Box<dyn Instance>, Fault>;

/// A collector that registered itself in this program.
#[derive(Debug)]
pub struct Builtin {
    /// The manifest as JSON.
    pub manifest: &'static [u8],
    /// JSON schema of the configuration.
    pub config_schema: fn() -> String,
    /// Asks for the subscription; arguments are configuration and run facts as JSON.
    pub subscribe: fn(&str, &str) -> Result<Subscription, Fault>,
    /// Starts the collector; arguments are configuration and run facts as JSON.
    pub open: Open,
}

inventory::collect!(Builtin);

/// The collectors that registered themselves, in no particular order.
///
/// A crate that nothing names is not linked and so not listed.
pub fn registered() -> impl Iterator<Item = &'static Builtin> {
    inventory::iter::<Builtin>.into_iter()
}
