//! The user's wish that a run ends early, as everything that takes long asks for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use thiserror::Error;

/// Tells a run to end early; what was measured until then is still reported. Clones are one and the same.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

/// Work was left unfinished because the user wants the run to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("interrupted")]
pub struct Stopped;

impl Stop {
    /// Asks the run to end.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the run should end.
    #[inline]
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails once the run should end: for `?` between two pieces of long work. Costs one load.
    ///
    /// # Errors
    /// [`Stopped`] after [`Stop::request`].
    #[inline]
    pub fn check(&self) -> Result<(), Stopped> {
        if self.requested() { Err(Stopped) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_the_wish() {
        let stop = Stop::default();
        let seen = stop.clone();
        assert_eq!(seen.check(), Ok(()));
        stop.request();
        assert_eq!((seen.requested(), seen.check()), (true, Err(Stopped)));
    }
}
