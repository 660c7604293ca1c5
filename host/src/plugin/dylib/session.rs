//! A loaded library as a session.
#![allow(unsafe_code, reason = "this module is the dylib edge")]

use std::ffi::c_void;

use lm_bench_abi as abi;
use lm_bench_plugin::{Batch, Data, Resolved, Subscription};

use super::callbacks::{Callbacks, succeeded};
use super::elf::LibraryFacts;
use super::library::{self, LibraryError, Sealed, Table};
use crate::plugin::failure::Failure;
use crate::plugin::gather::Report;
use crate::plugin::limits::Limits;
use crate::plugin::session::{HostSide, Session};

/// A loaded library. It is never unloaded.
#[derive(Debug)]
pub(crate) struct DylibSession {
    table: Table,
    instance: Instance,
    host: HostSide,
    limits: Limits,
    columns: Columns,
}

/// The handle of an open collector, null before `open`.
#[derive(Debug)]
struct Instance(*mut c_void);

// SAFETY: the contract lets a collector move between threads as long as calls do not overlap, and a session is called
// through `&mut`.
unsafe impl Send for Instance {}

/// Views of a batch's columns, kept for their memory.
#[derive(Debug, Default)]
struct Columns(Vec<abi::ColumnV1>);

// SAFETY: the views are only read during the call that filled them.
unsafe impl Send for Columns {}

impl DylibSession {
    /// Loads a library whose bytes were inspected.
    ///
    /// # Errors
    /// When it cannot be loaded, or is not what its file said.
    pub(crate) fn load(
        sealed: Sealed,
        facts: &LibraryFacts,
        limits: &Limits,
        host: HostSide,
    ) -> Result<Self, LibraryError> {
        let table = library::load(sealed, facts)?;
        Ok(Self {
            table,
            instance: Instance(std::ptr::null_mut()),
            host,
            limits: limits.clone(),
            columns: Columns::default(),
        })
    }

    /// Runs one call and takes what it told through its callbacks.
    fn call(
        &mut self,
        call: impl FnOnce(&abi::CollectorV1, &mut Instance, *const abi::HostV1) -> i32,
    ) -> Result<(Option<String>, Report), Failure> {
        let mut callbacks = Callbacks::new(&mut self.host, &self.limits);
        let instance = &mut self.instance;
        let status = callbacks.lend(|host| call(self.table.functions(), instance, host));
        succeeded(status, callbacks.fault, &self.limits)?;
        Ok((callbacks.reply, callbacks.report))
    }

    fn reply(
        &mut self,
        call: impl FnOnce(&abi::CollectorV1, *const abi::HostV1) -> i32,
    ) -> Result<String, Failure> {
        let (reply, _) = self.call(|table, _, host| call(table, host))?;
        reply.ok_or_else(|| Failure::contract("a call succeeded without an answer"))
    }

    fn destroy(&mut self) {
        let instance = std::mem::replace(&mut self.instance.0, std::ptr::null_mut());
        if !instance.is_null() {
            // SAFETY: the handle came from `open` and is not used again.
            unsafe { (self.table.functions().destroy)(instance) };
        }
    }
}

impl Session for DylibSession {
    fn describe(&mut self) -> Result<String, Failure> {
        // SAFETY: the contract of the table; the callbacks are valid for the call.
        self.reply(|table, host| unsafe { (table.describe)(host) })
    }

    fn subscribe(&mut self, config: &str, run: &str) -> Result<Subscription, Failure> {
        let (config, run) = (abi::Bytes::of(config.as_bytes()), abi::Bytes::of(run.as_bytes()));
        // SAFETY: the contract of the table; texts and callbacks are valid for the call.
        let reply = self.reply(|table, host| unsafe { (table.subscribe)(host, config, run) })?;
        serde_json::from_str(&reply)
            .map_err(|error| Failure::contract(format!("its subscription cannot be read: {error}")))
    }

    fn open(&mut self, config: &str, run: &str, resolved: &Resolved) -> Result<(), Failure> {
        let resolved = serde_json::to_string(resolved)
            .map_err(|error| Failure::contract(format!("the columns cannot be written: {error}")))?;
        let [config, run, resolved] = [config, run, &resolved].map(|text| abi::Bytes::of(text.as_bytes()));
        self.call(|table, instance, host| {
            // SAFETY: the contract of the table; texts, callbacks and the handle's place are valid for the call.
            unsafe { (table.open)(host, config, run, resolved, &raw mut instance.0) }
        })?;
        if self.instance.0.is_null() {
            return Err(Failure::contract("open succeeded without an instance"));
        }
        Ok(())
    }

    fn on_batch(&mut self, batch: &Batch<'_>) -> Result<(), Failure> {
        let mut columns = std::mem::take(&mut self.columns);
        columns.0.clear();
        columns.0.extend(
            batch
                .columns
                .iter()
                .map(|column| view(column.width, &column.data)),
        );
        let view = abi::BatchV1 {
            size: size_of::<abi::BatchV1>() as u32,
            rows: batch.rows,
            kind: u32::from(batch.kind),
            columns_len: columns.0.len() as u32,
            seq: batch.seq,
            lost_before: batch.lost_before,
            weight: batch.weight,
            columns: columns.0.as_ptr(),
        };
        // SAFETY: the handle is open; the batch, its columns and the callbacks are valid for the call.
        let called =
            self.call(|table, instance, host| unsafe { (table.on_batch)(instance.0, host, &raw const view) });
        self.columns = columns;
        called.map(|_| ())
    }

    fn lost_after(&mut self, kind: u16, rows: u64) -> Result<(), Failure> {
        // SAFETY: the handle is open; the callbacks are valid for the call.
        let called = self.call(|table, instance, host| unsafe {
            (table.lost_after)(instance.0, host, u32::from(kind), rows)
        });
        called.map(|_| ())
    }

    fn checkpoint(&mut self) -> Result<Report, Failure> {
        // SAFETY: the handle is open; the callbacks are valid for the call.
        let (_, report) =
            self.call(|table, instance, host| unsafe { (table.checkpoint)(instance.0, host) })?;
        Ok(report)
    }

    fn finish(&mut self) -> Result<Report, Failure> {
        // SAFETY: the handle is open; the callbacks are valid for the call.
        let (_, report) = self.call(|table, instance, host| unsafe { (table.finish)(instance.0, host) })?;
        self.destroy();
        Ok(report)
    }

    fn host(&mut self) -> &mut HostSide {
        &mut self.host
    }

    fn peak_memory(&self) -> Option<u64> {
        None
    }
}

fn view(width: u32, data: &Data<'_>) -> abi::ColumnV1 {
    fn parts<T>(values: &[T]) -> *const c_void {
        values.as_ptr().cast()
    }
    let (element, data_pointer) = match data {
        Data::U8(values) => (abi::element::U8, parts(values)),
        Data::U16(values) => (abi::element::U16, parts(values)),
        Data::U32(values) => (abi::element::U32, parts(values)),
        Data::U64(values) => (abi::element::U64, parts(values)),
        Data::I64(values) => (abi::element::I64, parts(values)),
        Data::F32(values) => (abi::element::F32, parts(values)),
        Data::F64(values) => (abi::element::F64, parts(values)),
    };
    abi::ColumnV1 {
        data: data_pointer,
        len: data.len() as u64,
        width,
        element,
    }
}
