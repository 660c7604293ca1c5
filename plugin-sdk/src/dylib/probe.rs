//! The native door of probes: C functions around a [`Probe`].

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lm_bench_abi as abi;

use super::{utf8, view};
use crate::collector::LogLevel;
use crate::column::ColumnData;
use crate::erased;
use crate::fault::{Fault, FaultCode};
use crate::probe::{Probe, ProbeHost, ProbeSink};

/// The table of a probe's functions.
pub const fn probe_table<P: Probe>() -> abi::ProbeV1 {
    abi::ProbeV1 {
        size: size_of::<abi::ProbeV1>() as u32,
        flags: 0,
        describe: describe::<P>,
        open: open::<P>,
        start: start::<P>,
        sample: sample::<P>,
        stop: stop::<P>,
        destroy: destroy::<P>,
    }
}

/// The host's callbacks during one call.
struct Callbacks<'a>(&'a abi::ProbeHostV1);

impl Callbacks<'_> {
    fn fault(&self, fault: &Fault) -> i32 {
        let message = abi::Bytes::of(fault.message.as_bytes());
        // SAFETY: the table and its context are valid for this call.
        unsafe { (self.0.fault)(self.0.context, fault.code as u32, message) }
        abi::STATUS_FAULT
    }
}

impl ProbeHost for Callbacks<'_> {
    fn log(&mut self, level: LogLevel, text: &str) {
        // SAFETY: the table and its context are valid for this call.
        unsafe { (self.0.log)(self.0.context, level as u32, abi::Bytes::of(text.as_bytes())) }
    }

    fn symbol(&mut self, text: &str) -> u32 {
        // SAFETY: the table and its context are valid for this call.
        unsafe { (self.0.symbol)(self.0.context, abi::Bytes::of(text.as_bytes())) }
    }

    fn rows(&mut self, kind: u32, rows: u32, columns: &[ColumnData<'_>]) {
        let views: Vec<abi::ColumnV1> = columns.iter().map(view).collect();
        let view = abi::RowsV1 {
            size: size_of::<abi::RowsV1>() as u32,
            rows,
            kind,
            columns_len: views.len() as u32,
            columns: views.as_ptr(),
        };
        // SAFETY: the table is valid for this call and the views for the callback.
        unsafe { (self.0.rows)(self.0.context, &raw const view) }
    }
}

/// Runs one call: a fault or a panic is told to the host and nothing unwinds across the edge.
fn guarded(host: *const abi::ProbeHostV1, call: impl FnOnce(&mut Callbacks<'_>) -> Result<(), Fault>) -> i32 {
    // SAFETY: the host lends its table for the call.
    let Some(host) = (unsafe { host.as_ref() }) else {
        return abi::STATUS_FAULT;
    };
    let mut callbacks = Callbacks(host);
    match catch_unwind(AssertUnwindSafe(|| call(&mut callbacks))) {
        Ok(Ok(())) => abi::STATUS_OK,
        Ok(Err(fault)) => callbacks.fault(&fault),
        Err(panic) => callbacks.fault(&Fault {
            code: FaultCode::Panic,
            message: format!("panicked: {}", erased::panic_text(&*panic)),
        }),
    }
}

unsafe extern "C" fn describe<P: Probe>(host: *const abi::ProbeHostV1) -> i32 {
    guarded(host, |callbacks| {
        let json = erased::schema_of::<P::Config>();
        // SAFETY: the table and its context are valid for this call.
        unsafe { (callbacks.0.reply)(callbacks.0.context, abi::Bytes::of(json.as_bytes())) }
        Ok(())
    })
}

unsafe extern "C" fn open<P: Probe>(
    host: *const abi::ProbeHostV1,
    config: abi::Bytes,
    run: abi::Bytes,
    instance: *mut *mut c_void,
) -> i32 {
    guarded(host, |callbacks| {
        let config = erased::parse::<P::Config>(utf8(config)?)?;
        let probe = P::open(config, &erased::parse_run(utf8(run)?)?, callbacks.0.process)?;
        let slot = Box::into_raw(Box::new(probe));
        // SAFETY: the host passes a writable place for the handle.
        unsafe { instance.write(slot.cast()) };
        Ok(())
    })
}

/// Runs a call on the probe behind a handle.
fn on<P: Probe>(
    instance: *mut c_void,
    host: *const abi::ProbeHostV1,
    call: impl FnOnce(&mut P, &mut ProbeSink<'_>) -> Result<(), Fault>,
) -> i32 {
    guarded(host, |callbacks| {
        // SAFETY: the handle came from `open`, calls never overlap, and it is not used after `destroy`.
        let probe = unsafe { instance.cast::<P>().as_mut() }
            .ok_or_else(|| Fault::contract("the host passed a null instance"))?;
        call(probe, &mut ProbeSink::new(callbacks))
    })
}

unsafe extern "C" fn start<P: Probe>(instance: *mut c_void, host: *const abi::ProbeHostV1) -> i32 {
    on::<P>(instance, host, P::start)
}

unsafe extern "C" fn sample<P: Probe>(instance: *mut c_void, host: *const abi::ProbeHostV1) -> i32 {
    on::<P>(instance, host, P::sample)
}

unsafe extern "C" fn stop<P: Probe>(instance: *mut c_void, host: *const abi::ProbeHostV1) -> i32 {
    on::<P>(instance, host, P::stop)
}

unsafe extern "C" fn destroy<P: Probe>(instance: *mut c_void) {
    if !instance.is_null() {
        // SAFETY: the handle came from `open` and is destroyed once. A panicking destructor leaks the rest.
        let _ = catch_unwind(|| drop(unsafe { Box::from_raw(instance.cast::<P>()) }));
    }
}
