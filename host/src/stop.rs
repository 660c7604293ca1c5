//! The user's wish that a run ends early, as everything that takes long asks for it.

use std::sync::Arc;
#[cfg(test)]
use std::sync::atomic::AtomicU32;
use std::sync::atomic::{AtomicBool, Ordering};

use thiserror::Error;

/// Tells a run to end early; what was measured until then is still reported. Clones are one and the same.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Wish>);

#[derive(Debug, Default)]
struct Wish {
    requested: AtomicBool,
    /// Looks after which it is requested by itself; 0 for never.
    #[cfg(test)]
    looks: AtomicU32,
}

/// Work was left unfinished because the user wants the run to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("interrupted")]
pub struct Stopped;

impl Stop {
    /// Asks the run to end.
    pub fn request(&self) {
        self.0.requested.store(true, Ordering::Relaxed);
    }

    /// A wish that comes up in the middle of the work: at the `look`th time, counted from 1, that the work asks for it.
    #[cfg(test)]
    pub(crate) fn at_look(look: u32) -> Self {
        let stop = Self::default();
        stop.0.looks.store(look, Ordering::Relaxed);
        stop
    }

    /// Whether the run should end.
    #[inline]
    pub fn requested(&self) -> bool {
        #[cfg(test)]
        if self.0.looks.load(Ordering::Relaxed) > 0 && self.0.looks.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.request();
        }
        self.0.requested.load(Ordering::Relaxed)
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
