//! A probe in a process of its own.

use super::session::{IsolatedSession, unexpected};
use super::wire::{Call, Reply};
use crate::plugin::failure::Failure;
use crate::plugin::log::LogBook;
use crate::plugin::probes::{ProbeSession, Sample};
use crate::plugin::session::Session as _;

/// A native probe in a process of its own, which is loaded and spoken to as a collector's.
#[derive(Debug)]
pub(crate) struct IsolatedProbe(IsolatedSession);

impl IsolatedProbe {
    /// Speaks to a loaded library as to a probe.
    pub(crate) fn new(session: IsolatedSession) -> Self {
        Self(session)
    }
}

impl ProbeSession for IsolatedProbe {
    fn describe(&mut self) -> Result<String, Failure> {
        self.0.describe()
    }

    fn open(&mut self, config: &str, run: &str) -> Result<(), Failure> {
        let (config, run) = (config.to_owned(), run.to_owned());
        let limit = self.0.limits.call_time();
        self.0.done(&Call::ProbeOpen { config, run }, limit)
    }

    fn start(&mut self) -> Result<(), Failure> {
        let limit = self.0.limits.call_time();
        self.0.done(&Call::ProbeStart, limit)
    }

    fn sample(&mut self) -> Result<Sample, Failure> {
        let limit = self.0.limits.batch_time();
        match self.0.call(&Call::ProbeSample, limit)? {
            Reply::Sample(sample) => Ok(sample),
            _ => Err(unexpected()),
        }
    }

    fn stop(&mut self) -> Result<(), Failure> {
        let limit = self.0.limits.call_time();
        self.0.done(&Call::ProbeStop, limit)
    }

    fn log(&self) -> &LogBook {
        &self.0.host.log
    }

    fn peak_memory(&self) -> Option<u64> {
        self.0.peak_memory()
    }

    fn interrupts(&self) -> bool {
        true
    }

    fn end(&mut self) {
        self.0.end();
    }
}
