//! What a native probe calls during one of its own calls. All of it is checked for size and copied at once.
#![allow(unsafe_code, reason = "this module is the dylib edge")]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lm_bench_abi as abi;
use lm_bench_plugin::{ColumnBuf, FaultCode, Host as _, LogLevel};

use super::callbacks::{REPLY_BYTES, level, text};
use crate::plugin::limits::Limits;
use crate::plugin::probes::{ProbeRows, Sample};
use crate::plugin::session::HostSide;

/// Most symbols of one probe.
const MAX_SYMBOLS: usize = 65_536;

/// The symbols of a probe: its own numbers, which the run's replace when rows are recorded.
#[derive(Debug, Default)]
pub(super) struct OwnSymbols {
    known: BTreeMap<String, u32>,
    /// Texts that no sample has told yet.
    pub(super) new: Vec<String>,
}

/// One call's end of the callbacks.
pub(super) struct ProbeCallbacks<'a> {
    pub(super) host: &'a mut HostSide,
    pub(super) limits: &'a Limits,
    pub(super) symbols: &'a mut OwnSymbols,
    /// Whether rows are taken during this call.
    pub(super) sampling: bool,
    /// What the call handed over.
    pub(super) sample: Sample,
    pub(super) bytes: usize,
    /// What the call answered.
    pub(super) reply: Option<String>,
    /// Why the call failed.
    pub(super) fault: Option<(FaultCode, String)>,
}

impl ProbeCallbacks<'_> {
    /// Lends the callbacks to a call. `process` is the one that is measured.
    pub(super) fn lend<T>(&mut self, process: u64, call: impl FnOnce(*const abi::ProbeHostV1) -> T) -> T {
        let table = abi::ProbeHostV1 {
            size: size_of::<abi::ProbeHostV1>() as u32,
            flags: 0,
            context: std::ptr::from_mut(self).cast(),
            process,
            log,
            symbol,
            rows,
            reply,
            fault,
        };
        call(&raw const table)
    }

    fn refuse(&mut self, message: impl Into<String>) {
        // The first one is the cause.
        self.fault.get_or_insert((FaultCode::Contract, message.into()));
    }

    fn symbol(&mut self, text: String) -> u32 {
        if let Some(&id) = self.symbols.known.get(&text) {
            return id;
        }
        let id = self.symbols.known.len();
        if id >= MAX_SYMBOLS {
            self.refuse(format!("asked for more than {MAX_SYMBOLS} symbols"));
            return 0;
        }
        self.symbols.new.push(text.clone());
        self.symbols.known.insert(text, id as u32);
        id as u32
    }
}

/// Runs a callback on its context. A panic must not unwind into the plugin.
///
/// # Safety
/// `context` must be the one that [`ProbeCallbacks::lend`] gave, and the call that it was given to must not have ended.
unsafe fn with<T>(context: *mut c_void, fallback: T, call: impl FnOnce(&mut ProbeCallbacks<'_>) -> T) -> T {
    // SAFETY: the caller's promise; callbacks come one at a time, on the thread of the call.
    let Some(callbacks) = (unsafe { context.cast::<ProbeCallbacks<'_>>().as_mut() }) else {
        return fallback;
    };
    catch_unwind(AssertUnwindSafe(|| call(callbacks))).unwrap_or(fallback)
}

unsafe extern "C" fn log(context: *mut c_void, number: u32, line: abi::Bytes) {
    // SAFETY: the plugin passes its context back and lends the text for the callback.
    unsafe {
        with(context, (), |callbacks| {
            let line = text(line, callbacks.limits.text_bytes);
            let level: LogLevel = level(number);
            callbacks.host.log(level, &line);
        });
    }
}

unsafe extern "C" fn symbol(context: *mut c_void, name: abi::Bytes) -> u32 {
    // SAFETY: the plugin passes its context back and lends the text for the callback.
    unsafe {
        with(context, 0, |callbacks| {
            let name = text(name, callbacks.limits.text_bytes);
            callbacks.symbol(name)
        })
    }
}

unsafe extern "C" fn reply(context: *mut c_void, json: abi::Bytes) {
    // SAFETY: the plugin passes its context back and lends the text for the callback.
    unsafe {
        with(context, (), |callbacks| {
            if json.len > REPLY_BYTES {
                callbacks.refuse(format!(
                    "answered with {} bytes, {REPLY_BYTES} are allowed",
                    json.len
                ));
            } else {
                callbacks.reply = Some(text(json, REPLY_BYTES));
            }
        });
    }
}

unsafe extern "C" fn fault(context: *mut c_void, code: u32, message: abi::Bytes) {
    // SAFETY: the plugin passes its context back and lends the text for the callback.
    unsafe {
        with(context, (), |callbacks| {
            let message = text(message, callbacks.limits.text_bytes);
            callbacks
                .fault
                .get_or_insert((FaultCode::from_number(code), message));
        });
    }
}

unsafe extern "C" fn rows(context: *mut c_void, rows: *const abi::RowsV1) {
    // SAFETY: the plugin passes its context back and lends the rows and all they point to for the callback.
    unsafe {
        with(context, (), |callbacks| {
            if let Err(message) = take_rows(callbacks, rows) {
                callbacks.refuse(message);
            }
        });
    }
}

/// Copies rows.
///
/// # Safety
/// `rows` must be null or point to rows whose pointers and lengths are valid.
unsafe fn take_rows(callbacks: &mut ProbeCallbacks<'_>, rows: *const abi::RowsV1) -> Result<(), String> {
    /// No kind has more columns.
    const MAX_COLUMNS: u32 = 256;
    if !callbacks.sampling {
        return Err("handed rows over outside of a sample".to_owned());
    }
    let size = if rows.is_null() || !rows.is_aligned() {
        0
    } else {
        // SAFETY: the caller's promise; rows start with their size.
        unsafe { (&raw const (*rows).size).read() }
    };
    if (size as usize) < size_of::<abi::RowsV1>() {
        return Err("handed over rows that are smaller than version 1 has them".to_owned());
    }
    // SAFETY: the caller's promise, and the size was checked.
    let rows = unsafe { &*rows };
    if rows.columns_len > MAX_COLUMNS {
        return Err(format!("handed over rows of {} columns", rows.columns_len));
    }
    if rows.columns_len > 0 && (rows.columns.is_null() || !rows.columns.is_aligned()) {
        return Err("handed over columns without an address".to_owned());
    }
    let mut columns = Vec::new();
    for at in 0..rows.columns_len as usize {
        // SAFETY: the caller's promise: there are `columns_len` columns.
        let column = unsafe { &*rows.columns.add(at) };
        // SAFETY: the caller's promise for the column's elements.
        columns.push((column.width, unsafe { copy(callbacks, column)? }));
    }
    callbacks.sample.rows.push(ProbeRows {
        kind: rows.kind,
        rows: rows.rows,
        columns,
    });
    Ok(())
}

/// Copies a column, within the limit of bytes per sample.
///
/// # Safety
/// `column` must have as many elements of its type as it says.
unsafe fn copy(callbacks: &mut ProbeCallbacks<'_>, column: &abi::ColumnV1) -> Result<ColumnBuf, String> {
    /// # Safety
    /// As [`copy`], for elements of type `T`.
    unsafe fn elements<T: Copy>(
        callbacks: &mut ProbeCallbacks<'_>,
        column: &abi::ColumnV1,
    ) -> Result<Vec<T>, String> {
        let limit = callbacks.limits.batch_bytes;
        let bytes = usize::try_from(column.len)
            .ok()
            .and_then(|len| len.checked_mul(size_of::<T>()));
        callbacks.bytes = bytes
            .and_then(|bytes| callbacks.bytes.checked_add(bytes))
            .filter(|bytes| *bytes <= limit)
            .ok_or_else(|| format!("handed over more than {limit} bytes in one sample"))?;
        if column.len == 0 {
            return Ok(Vec::new());
        }
        let data = column.data.cast::<T>();
        if data.is_null() || !data.is_aligned() {
            return Err("handed over a column without an aligned address".to_owned());
        }
        // SAFETY: the caller's promise; address and length were checked as far as they can be.
        Ok(unsafe { std::slice::from_raw_parts(data, column.len as usize) }.to_vec())
    }
    // SAFETY: the caller's promise: the element type says what the memory holds.
    unsafe {
        Ok(match column.element {
            abi::element::U8 => ColumnBuf::U8(elements(callbacks, column)?),
            abi::element::U16 => ColumnBuf::U16(elements(callbacks, column)?),
            abi::element::U32 | abi::element::SYM => ColumnBuf::U32(elements(callbacks, column)?),
            abi::element::U64 => ColumnBuf::U64(elements(callbacks, column)?),
            abi::element::I64 => ColumnBuf::I64(elements(callbacks, column)?),
            abi::element::F32 => ColumnBuf::F32(elements(callbacks, column)?),
            abi::element::F64 => ColumnBuf::F64(elements(callbacks, column)?),
            other => return Err(format!("handed over a column of unknown element type {other}")),
        })
    }
}
