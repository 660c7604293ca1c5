//! The checks, in the order in which they are made and listed.

mod configuration;
mod costs;
mod identity;
mod reports;
mod streams;
mod wants;

use super::stream::{Shape, Stream};
use super::subject::{Subject, known_run};
use super::verdict::{Trouble, Verdict};

/// A check of the contract.
type Checking = fn(&Subject<'_>) -> Result<Verdict, Trouble>;

/// All checks but that of golden streams. What calls took is judged last, over all of them.
pub(super) const CHECKS: &[(&str, Checking)] = &[
    ("manifest", identity::manifest),
    ("config-schema", configuration::schema),
    ("config-default", configuration::default),
    ("config-unknown-key", configuration::unknown_key),
    ("config-wrong-type", configuration::wrong_type),
    ("subscription", wants::subscription),
    ("optional-columns", wants::optional_columns),
    ("unknown-run", wants::unknown_run),
    ("call-order", streams::call_order),
    ("empty-run", streams::empty_run),
    ("one-row", streams::one_row),
    ("full-batch", streams::full_batch),
    ("lost-rows", streams::lost_rows),
    ("weights", streams::weights),
    ("unknown-codes", streams::unknown_codes),
    ("non-finite", streams::non_finite),
    ("huge-values", streams::huge_values),
    ("unknown-symbols", streams::unknown_symbols),
    ("list-widths", streams::list_widths),
    ("metrics", reports::metrics),
    ("checkpoint-repeats", reports::checkpoint_repeats),
    ("checkpoint-harmless", reports::checkpoint_harmless),
    ("finish", reports::finish),
    ("determinism", reports::determinism),
    ("batch-cuts", reports::batch_cuts),
    ("instances", reports::instances),
    ("log", costs::log),
    ("time", costs::time),
    ("memory", costs::memory),
];

/// What a plugin that takes no kind of this program cannot be checked for.
const NO_KIND: &str = "it takes no kind of events that this program knows";

impl Subject<'_> {
    /// Indices of the kinds that the plugin takes and the program has.
    fn taken(&self) -> Result<Vec<usize>, Trouble> {
        let subscription = self.subscription(&self.config_text(), &known_run())?;
        let wants = subscription.wants.iter();
        Ok(wants.filter_map(|want| self.kinds.index(&want.kind)).collect())
    }

    /// A stream of the kinds that it takes; `None` when there are none.
    fn stream(&self, shape: &Shape) -> Result<Option<Stream>, Trouble> {
        let kinds = self.taken()?;
        Ok((!kinds.is_empty()).then(|| Stream::new(&self.kinds, &kinds, shape)))
    }
}

/// The stream with which results are compared: several deliveries of some rows.
fn usual() -> Shape {
    Shape::of(4, 64)
}
