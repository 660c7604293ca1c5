//! The native door, plugin side: C functions around a [`Collector`] or a probe.
#![allow(unsafe_code, reason = "this module is the dylib edge")]

mod probe;

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use abi_stable::library::CheckTypeLayout;
pub use abi_stable::library::{LibHeader, RootModuleResult};
use abi_stable::prefix_type::PrefixTypeTrait;
pub use abi_stable::std_types::RStr;
use lm_bench_abi as abi;
pub use probe::probe_table;

use crate::batch::Batch;
use crate::collector::{Collector, Host, LogLevel};
use crate::column::{ColumnData, Data};
use crate::erased::{self, Instance};
use crate::fault::{Fault, FaultCode};
use crate::metric::{Metric, MetricSink, Value};

/// The table of a collector's functions.
pub const fn table<C: Collector>() -> abi::CollectorV1 {
    abi::CollectorV1 {
        size: size_of::<abi::CollectorV1>() as u32,
        flags: 0,
        describe: describe::<C>,
        subscribe: subscribe::<C>,
        open: open::<C>,
        on_batch,
        lost_after,
        checkpoint,
        finish,
        destroy,
    }
}

/// Looks an interface up: the one that is `offered`, or none.
pub fn interface<T>(id: abi::Bytes, offered: &str, table: &'static T) -> *const c_void {
    // SAFETY: the host lends the id for the call.
    let id = unsafe { id.as_slice() };
    if id == offered.as_bytes() {
        std::ptr::from_ref(table).cast()
    } else {
        std::ptr::null()
    }
}

/// The manifest as text.
pub fn text(manifest: &'static [u8]) -> RStr<'static> {
    RStr::from_str(std::str::from_utf8(manifest).unwrap_or(""))
}

/// Runs the loader of a root and turns its result or panic into what `abi_stable` expects.
pub fn load_root(loader: fn() -> abi::RustEntryRef) -> RootModuleResult {
    abi_stable::library::__call_root_module_loader(loader)
}

/// Leaks the root, as `abi_stable` expects of a library that is never unloaded.
pub fn leak(entry: abi::RustEntry) -> abi::RustEntryRef {
    entry.leak_into_prefix()
}

/// The header that `abi_stable` looks for.
pub const fn root_header(constructor: extern "C" fn() -> RootModuleResult) -> LibHeader {
    // SAFETY: `load_root` returns an erased `RustEntryRef`.
    unsafe { LibHeader::from_constructor::<abi::RustEntryRef>(constructor, CheckTypeLayout::Yes) }
}

/// The host's callbacks during one call.
struct Callbacks<'a>(&'a abi::HostV1);

impl Callbacks<'_> {
    fn reply(&self, json: &str) {
        // SAFETY: the table and its context are valid for this call.
        unsafe { (self.0.reply)(self.0.context, abi::Bytes::of(json.as_bytes())) }
    }

    fn fault(&self, fault: &Fault) -> i32 {
        let message = abi::Bytes::of(fault.message.as_bytes());
        // SAFETY: the table and its context are valid for this call.
        unsafe { (self.0.fault)(self.0.context, fault.code as u32, message) }
        abi::STATUS_FAULT
    }
}

impl Host for Callbacks<'_> {
    fn log(&mut self, level: LogLevel, text: &str) {
        // SAFETY: the table and its context are valid for this call.
        unsafe { (self.0.log)(self.0.context, level as u32, abi::Bytes::of(text.as_bytes())) }
    }

    fn symbol(&mut self, id: u32) -> Option<String> {
        // SAFETY: as above; the returned view is copied before the host is called again.
        let bytes = unsafe {
            let bytes = (self.0.symbol)(self.0.context, id);
            if bytes.ptr.is_null() {
                return None;
            }
            bytes.as_slice()
        };
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

impl MetricSink for Callbacks<'_> {
    fn metric(&mut self, metric: Metric) {
        let labels: Vec<abi::LabelV1> = metric
            .labels
            .iter()
            .map(|(key, value)| abi::LabelV1 {
                key: abi::Bytes::of(key.as_bytes()),
                value: abi::Bytes::of(value.as_bytes()),
            })
            .collect();
        let mut view = abi::MetricV1 {
            size: size_of::<abi::MetricV1>() as u32,
            shape: abi::shape::UNAVAILABLE,
            name: abi::Bytes::of(metric.name.as_bytes()),
            labels: labels.as_ptr(),
            labels_len: labels.len(),
            count: 0,
            number: 0.0,
            buckets: std::ptr::null(),
            buckets_len: 0,
            reason: abi::Bytes::of(&[]),
            samples: metric.samples,
        };
        let mut buckets = Vec::new();
        match &metric.value {
            Value::Counter(count) => (view.shape, view.count) = (abi::shape::COUNTER, *count),
            Value::Gauge(number) => (view.shape, view.number) = (abi::shape::GAUGE, *number),
            Value::Distribution(values) => {
                buckets.extend(
                    values
                        .iter()
                        .map(|&(value, count)| abi::BucketV1 { value, count }),
                );
                view.shape = abi::shape::DISTRIBUTION;
                (view.buckets, view.buckets_len) = (buckets.as_ptr(), buckets.len());
            }
            Value::Unavailable(reason) => view.reason = abi::Bytes::of(reason.as_bytes()),
        }
        // SAFETY: the table is valid for this call and the view for the callback.
        unsafe { (self.0.metric)(self.0.context, &raw const view) }
    }
}

/// Runs one call: a fault or a panic is told to the host and nothing unwinds across the edge.
fn guarded(host: *const abi::HostV1, call: impl FnOnce(&mut Callbacks<'_>) -> Result<(), Fault>) -> i32 {
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

fn utf8<'a>(bytes: abi::Bytes) -> Result<&'a str, Fault> {
    // SAFETY: the host lends the bytes for the call, and the result is not kept longer.
    std::str::from_utf8(unsafe { bytes.as_slice() })
        .map_err(|_| Fault::contract("the host passed text that is not UTF-8"))
}

unsafe extern "C" fn describe<C: Collector>(host: *const abi::HostV1) -> i32 {
    guarded(host, |callbacks| {
        callbacks.reply(&erased::config_schema::<C>());
        Ok(())
    })
}

unsafe extern "C" fn subscribe<C: Collector>(
    host: *const abi::HostV1,
    config: abi::Bytes,
    run: abi::Bytes,
) -> i32 {
    guarded(host, |callbacks| {
        let subscription = erased::subscribe::<C>(utf8(config)?, utf8(run)?)?;
        let json =
            serde_json::to_string(&subscription).map_err(|error| Fault::contract(error.to_string()))?;
        callbacks.reply(&json);
        Ok(())
    })
}

unsafe extern "C" fn open<C: Collector>(
    host: *const abi::HostV1,
    config: abi::Bytes,
    run: abi::Bytes,
    resolved: abi::Bytes,
    instance: *mut *mut c_void,
) -> i32 {
    guarded(host, |_| {
        let resolved = serde_json::from_str(utf8(resolved)?)
            .map_err(|error| Fault::contract(format!("resolved columns: {error}")))?;
        let opened = erased::open::<C>(utf8(config)?, utf8(run)?, &resolved)?;
        let slot = Box::into_raw(Box::new(Some(opened)));
        // SAFETY: the host passes a writable place for the handle.
        unsafe { instance.write(slot.cast()) };
        Ok(())
    })
}

/// An open collector behind a handle; empty once it has finished.
type Slot = Option<Box<dyn Instance>>;

/// Borrows the collector behind a handle.
fn slot<'a>(instance: *mut c_void) -> Result<&'a mut Slot, Fault> {
    // SAFETY: the handle came from `open`, calls never overlap, and it is not used after `destroy`.
    unsafe { instance.cast::<Slot>().as_mut() }
        .ok_or_else(|| Fault::contract("the host passed a null instance"))
}

fn finished() -> Fault {
    Fault::contract("the collector has already finished")
}

unsafe extern "C" fn on_batch(
    instance: *mut c_void,
    host: *const abi::HostV1,
    batch: *const abi::BatchV1,
) -> i32 {
    guarded(host, |callbacks| {
        // SAFETY: the host lends the batch and its columns for the call.
        let batch =
            unsafe { batch.as_ref() }.ok_or_else(|| Fault::contract("the host passed a null batch"))?;
        let columns = columns(batch)?;
        let view = Batch {
            kind: batch.kind as u16,
            seq: batch.seq,
            rows: batch.rows,
            weight: batch.weight,
            lost_before: batch.lost_before,
            columns: &columns,
        };
        slot(instance)?
            .as_mut()
            .ok_or_else(finished)?
            .on_batch(&view, callbacks)
    })
}

unsafe extern "C" fn lost_after(
    instance: *mut c_void,
    host: *const abi::HostV1,
    kind: u32,
    rows: u64,
) -> i32 {
    guarded(host, |_| {
        let collector = slot(instance)?.as_mut().ok_or_else(finished)?;
        collector.lost_after(kind as u16, rows);
        Ok(())
    })
}

fn columns(batch: &abi::BatchV1) -> Result<Vec<ColumnData<'_>>, Fault> {
    if batch.columns_len == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the host lends `columns_len` columns for the call.
    let columns = unsafe { std::slice::from_raw_parts(batch.columns, batch.columns_len as usize) };
    columns.iter().map(column).collect()
}

fn column(column: &abi::ColumnV1) -> Result<ColumnData<'_>, Fault> {
    /// # Safety
    /// The column must hold `len` elements of type `T`.
    unsafe fn elements<T>(column: &abi::ColumnV1) -> &[T] {
        if column.len == 0 {
            return &[];
        }
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(column.data.cast(), column.len as usize) }
    }
    // SAFETY: the host states the element type of the memory that it lends.
    let data = unsafe {
        match column.element {
            abi::element::U8 => Data::U8(elements(column)),
            abi::element::U16 => Data::U16(elements(column)),
            abi::element::U32 | abi::element::SYM => Data::U32(elements(column)),
            abi::element::U64 => Data::U64(elements(column)),
            abi::element::I64 => Data::I64(elements(column)),
            abi::element::F32 => Data::F32(elements(column)),
            abi::element::F64 => Data::F64(elements(column)),
            other => return Err(Fault::contract(format!("unknown element type {other}"))),
        }
    };
    Ok(ColumnData {
        width: column.width,
        data,
    })
}

/// A column as the contract has it.
fn view(column: &ColumnData<'_>) -> abi::ColumnV1 {
    fn parts<T>(values: &[T]) -> *const c_void {
        values.as_ptr().cast()
    }
    let (element, data) = match column.data {
        Data::U8(values) => (abi::element::U8, parts(values)),
        Data::U16(values) => (abi::element::U16, parts(values)),
        Data::U32(values) => (abi::element::U32, parts(values)),
        Data::U64(values) => (abi::element::U64, parts(values)),
        Data::I64(values) => (abi::element::I64, parts(values)),
        Data::F32(values) => (abi::element::F32, parts(values)),
        Data::F64(values) => (abi::element::F64, parts(values)),
    };
    abi::ColumnV1 {
        data,
        len: column.data.len() as u64,
        width: column.width,
        element,
    }
}

unsafe extern "C" fn checkpoint(instance: *mut c_void, host: *const abi::HostV1) -> i32 {
    guarded(host, |callbacks| {
        slot(instance)?
            .as_mut()
            .ok_or_else(finished)?
            .checkpoint(callbacks)
    })
}

unsafe extern "C" fn finish(instance: *mut c_void, host: *const abi::HostV1) -> i32 {
    guarded(host, |callbacks| {
        slot(instance)?.take().ok_or_else(finished)?.finish(callbacks)
    })
}

unsafe extern "C" fn destroy(instance: *mut c_void) {
    if !instance.is_null() {
        // SAFETY: the handle came from `open` and is destroyed once. A panicking destructor leaks the rest.
        let _ = catch_unwind(|| drop(unsafe { Box::from_raw(instance.cast::<Slot>()) }));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_exported_name_of_the_root_is_the_one_abi_stable_looks_for() {
        assert_eq!(
            abi_stable::library::ROOT_MODULE_LOADER_NAME,
            "_1as_0lib_1header_0root_bmodule_bloader"
        );
    }
}
