//! The only reader of time: monotonic nanoseconds since the run started, and wall time for records.

mod timer;

pub use timer::Timer;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Wall time at which a fake clock starts: 2026-01-01T00:00:00Z in Unix milliseconds.
const FAKE_START_UNIX_MS: u64 = 1_767_225_600_000;

/// The run's clock. Clones share the start, and a fake clock's time.
#[derive(Clone, Debug)]
pub struct Clock {
    source: Source,
    start_unix_ms: u64,
}

#[derive(Clone, Debug)]
enum Source {
    System(Instant),
    Fake(Arc<AtomicU64>),
}

impl Clock {
    /// Starts the run's clock now.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the system's clocks"
    )]
    pub fn start() -> Self {
        Self {
            source: Source::System(Instant::now()),
            start_unix_ms: system_unix_ms(),
        }
    }

    /// A clock for tests: it starts at 0 ns, 2026-01-01T00:00:00Z, and moves only by [`Clock::advance`].
    pub fn fake() -> Self {
        Self {
            source: Source::Fake(Arc::default()),
            start_unix_ms: FAKE_START_UNIX_MS,
        }
    }

    /// Moves a fake clock and all its clones; a system clock does not care.
    pub fn advance(&self, by: Duration) {
        if let Source::Fake(now) = &self.source {
            now.fetch_add(whole_ns(by), Ordering::SeqCst);
        }
    }

    /// Nanoseconds since the run started, monotonic.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        match &self.source {
            Source::System(start) => whole_ns(start.elapsed()),
            Source::Fake(now) => now.load(Ordering::SeqCst),
        }
    }

    /// Wall time now, in Unix milliseconds. It may jump when the machine's time is set; durations are
    /// differences of [`Clock::now_ns`].
    pub fn unix_ms(&self) -> u64 {
        match &self.source {
            Source::System(_) => system_unix_ms(),
            Source::Fake(now) => self.start_unix_ms + now.load(Ordering::SeqCst) / 1_000_000,
        }
    }

    /// Wall time at which the run started, in Unix milliseconds.
    pub fn start_unix_ms(&self) -> u64 {
        self.start_unix_ms
    }
}

/// Saturates after 584 years.
fn whole_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the system's clocks"
)]
fn system_unix_ms() -> u64 {
    // A machine whose time is set before 1970 reports 0.
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_of_a_fake_clock_share_its_time() {
        let clock = Clock::fake();
        let clone = clock.clone();
        clock.advance(Duration::from_micros(1_500));
        assert_eq!(clone.now_ns(), 1_500_000);
        assert_eq!(clone.unix_ms(), FAKE_START_UNIX_MS + 1);
        assert_eq!(clone.start_unix_ms(), FAKE_START_UNIX_MS);
    }

    #[test]
    fn the_system_clock_does_not_go_back_and_ignores_advance() {
        let clock = Clock::start();
        let first = clock.now_ns();
        clock.advance(Duration::from_secs(1_000_000));
        let second = clock.now_ns();
        assert!(first <= second && second < 1_000_000_000_000_000);
        // 2020-01-01, far below any machine that builds edition 2024.
        assert!(clock.start_unix_ms() > 1_577_836_800_000);
        assert!(clock.unix_ms() >= clock.start_unix_ms());
    }
}
