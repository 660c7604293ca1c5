//! A loaded library as a probe.
#![allow(unsafe_code, reason = "this module is the dylib edge")]

use std::ffi::c_void;

use lm_bench_abi as abi;

use super::callbacks::succeeded;
use super::elf::LibraryFacts;
use super::library::{self, LibraryError, ProbeTable, Sealed};
use super::probe_callbacks::{OwnSymbols, ProbeCallbacks};
use crate::plugin::failure::Failure;
use crate::plugin::limits::Limits;
use crate::plugin::log::LogBook;
use crate::plugin::probes::{ProbeSession, Sample};
use crate::plugin::session::HostSide;

/// A loaded probe. Its library is never unloaded.
#[derive(Debug)]
pub(crate) struct DylibProbe {
    table: ProbeTable,
    instance: Instance,
    host: HostSide,
    limits: Limits,
    symbols: OwnSymbols,
    process: u64,
}

/// The handle of an open probe, null before `open`.
#[derive(Debug)]
struct Instance(*mut c_void);

// SAFETY: the contract lets a probe move between threads as long as calls do not overlap, and a session is called
// through `&mut`.
unsafe impl Send for Instance {}

/// What a call gave.
struct Given {
    reply: Option<String>,
    sample: Sample,
}

impl DylibProbe {
    /// Loads a library whose bytes were inspected. `process` is the one that is measured.
    ///
    /// # Errors
    /// When it cannot be loaded, or is not what its file said.
    pub(crate) fn load(
        sealed: Sealed,
        facts: &LibraryFacts,
        (limits, process): (&Limits, u64),
        host: HostSide,
    ) -> Result<Self, LibraryError> {
        Ok(Self {
            table: library::load_probe(sealed, facts)?,
            instance: Instance(std::ptr::null_mut()),
            host,
            limits: limits.clone(),
            symbols: OwnSymbols::default(),
            process,
        })
    }

    /// The host as the probe sees it.
    pub(crate) fn host(&mut self) -> &mut HostSide {
        &mut self.host
    }

    /// Runs one call and takes what it told through its callbacks.
    fn call(
        &mut self,
        sampling: bool,
        call: impl FnOnce(&abi::ProbeV1, &mut Instance, *const abi::ProbeHostV1) -> i32,
    ) -> Result<Given, Failure> {
        let mut callbacks = ProbeCallbacks {
            host: &mut self.host,
            limits: &self.limits,
            symbols: &mut self.symbols,
            sampling,
            sample: Sample::default(),
            bytes: 0,
            reply: None,
            fault: None,
        };
        let instance = &mut self.instance;
        let table = self.table.functions();
        let status = callbacks.lend(self.process, |host| call(table, instance, host));
        succeeded(status, callbacks.fault, &self.limits)?;
        Ok(Given {
            reply: callbacks.reply,
            sample: callbacks.sample,
        })
    }
}

impl ProbeSession for DylibProbe {
    fn describe(&mut self) -> Result<String, Failure> {
        // SAFETY: the contract of the table; the callbacks are valid for the call.
        let given = self.call(false, |table, _, host| unsafe { (table.describe)(host) })?;
        given
            .reply
            .ok_or_else(|| Failure::contract("describe succeeded without an answer"))
    }

    fn open(&mut self, config: &str, run: &str) -> Result<(), Failure> {
        let [config, run] = [config, run].map(|text| abi::Bytes::of(text.as_bytes()));
        self.call(false, |table, instance, host| {
            // SAFETY: the contract of the table; texts, callbacks and the handle's place are valid for the call.
            unsafe { (table.open)(host, config, run, &raw mut instance.0) }
        })?;
        if self.instance.0.is_null() {
            return Err(Failure::contract("open succeeded without an instance"));
        }
        Ok(())
    }

    fn start(&mut self) -> Result<(), Failure> {
        // SAFETY: the handle is open; the callbacks are valid for the call.
        self.call(false, |table, instance, host| unsafe {
            (table.start)(instance.0, host)
        })?;
        Ok(())
    }

    fn sample(&mut self) -> Result<Sample, Failure> {
        // SAFETY: the handle is open; the callbacks are valid for the call.
        let given = self.call(true, |table, instance, host| unsafe {
            (table.sample)(instance.0, host)
        })?;
        Ok(Sample {
            symbols: std::mem::take(&mut self.symbols.new),
            ..given.sample
        })
    }

    fn stop(&mut self) -> Result<(), Failure> {
        // SAFETY: the handle is open; the callbacks are valid for the call.
        self.call(false, |table, instance, host| unsafe {
            (table.stop)(instance.0, host)
        })?;
        let instance = std::mem::replace(&mut self.instance.0, std::ptr::null_mut());
        // SAFETY: the handle came from `open` and is not used again.
        unsafe { (self.table.functions().destroy)(instance) };
        Ok(())
    }

    fn log(&self) -> &LogBook {
        &self.host.log
    }

    fn peak_memory(&self) -> Option<u64> {
        None
    }

    fn interrupts(&self) -> bool {
        false
    }

    fn end(&mut self) {}
}
