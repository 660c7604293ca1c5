//! The thread of one probe.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::outcome::ProbeOutcome;
use super::rows::Intake;
use super::session::ProbeSession;
use crate::clock::Clock;
use crate::plugin::failure::Failure;

/// A probe and its account.
pub(super) struct Member {
    pub(super) session: Box<dyn ProbeSession>,
    pub(super) clock: Clock,
    pub(super) account: ProbeOutcome,
}

impl Member {
    /// Starts the probe, takes a sample each period until it is told to stop, and gives its account. The first failure
    /// ends it.
    pub(super) fn run(mut self, mut intake: Intake, stop: &Receiver<()>) -> ProbeOutcome {
        if let Err(failure) = self.sample_until(&mut intake, stop) {
            self.account.faults.push(failure.to_string());
        }
        drop(intake);
        self.retire()
    }

    fn sample_until(&mut self, intake: &mut Intake, stop: &Receiver<()>) -> Result<(), Failure> {
        let call = intake.limits.call_time();
        self.timed(call, |session| session.start())?;
        let period = (self.account.period.as_nanos() as u64).max(1);
        let begun = self.clock.now_ns();
        let mut number = 0_u64;
        loop {
            let due = begun.saturating_add(number.saturating_mul(period));
            let wait = Duration::from_nanos(due.saturating_sub(self.clock.now_ns()));
            match stop.recv_timeout(wait) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            }
            self.sample(intake, due)?;
            let passed = (self.clock.now_ns() - begun) / period;
            // What is due now is still taken; what was due before it is gone.
            self.account.missed += passed.saturating_sub(number + 1);
            number = passed.max(number + 1);
        }
        self.timed(call, |session| session.stop()).map(|_| ())
    }

    fn sample(&mut self, intake: &mut Intake, due: u64) -> Result<(), Failure> {
        let t_ns = intake.recorder.now_ns();
        let begun = self.clock.now_ns();
        let late = begun.saturating_sub(due) > self.account.period.as_nanos() as u64 / 2;
        let result = self.timed(intake.limits.batch_time(), |session| session.sample());
        let took = self.clock.now_ns() - begun;
        self.account.busy_ns += took;
        self.account.longest_ns = self.account.longest_ns.max(took);
        self.account.rows += intake.take(t_ns, result?)?;
        self.account.samples += 1;
        self.account.late += u64::from(late);
        Ok(())
    }

    /// Runs one call, and holds one that cannot be interrupted against its limit afterwards.
    pub(super) fn timed<T>(
        &mut self,
        limit: Duration,
        call: impl FnOnce(&mut dyn ProbeSession) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let start = self.clock.now_ns();
        let result = call(self.session.as_mut());
        let took = Duration::from_nanos(self.clock.now_ns() - start);
        if !self.session.interrupts() && took > limit {
            return result.and(Err(Failure::Late { took, limit }));
        }
        result
    }

    /// Lets go of the code and keeps its log.
    pub(super) fn retire(mut self) -> ProbeOutcome {
        self.account.peak_memory = self.session.peak_memory();
        self.session.end();
        let log = self.session.log();
        self.account.log = log.lines().to_vec();
        self.account.log_refused = log.refused();
        self.account
    }
}
