//! A timer that wakes a task within microseconds: the runtime's own timers count in milliseconds.

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// A timer of the kernel, for one task of the current runtime.
#[derive(Debug)]
pub struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    /// A timer.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let fd = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        Ok(Self(AsyncFd::new(fd)?))
    }

    /// Waits for `ns` nanoseconds; not at all for 0.
    ///
    /// # Errors
    /// None in practice: the kernel refuses only values that are no time.
    pub async fn sleep(&self, ns: u64) -> io::Result<()> {
        if ns == 0 {
            return Ok(());
        }
        let time = |ns: u64| Timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as _,
        };
        let once = Itimerspec {
            it_interval: time(0),
            it_value: time(ns),
        };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        loop {
            let mut ready = self.0.readable().await?;
            let mut expirations = [0_u8; 8];
            if ready
                .try_io(|fd| Ok(rustix::io::read(fd, &mut expirations)?))
                .is_ok()
            {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn it_wakes_after_the_time_and_can_be_used_again() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let (clock, timer) = (Clock::start(), Timer::new().expect("a descriptor"));
            for _ in 0..3 {
                let start = clock.now_ns();
                timer.sleep(300_000).await.expect("a time");
                assert!(clock.now_ns() - start >= 300_000);
            }
            timer.sleep(0).await.expect("a time");
        });
    }
}
