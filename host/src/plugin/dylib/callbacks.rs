//! What a native plugin calls during one of its own calls. Everything that it passes is copied at once, and checked
//! for size before it is copied.
#![allow(unsafe_code, reason = "this module is the dylib edge")]

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lm_bench_abi as abi;
use lm_bench_plugin::{FaultCode, Host as _, LogLevel, Metric, Value};

use crate::plugin::failure::Failure;
use crate::plugin::gather::Report;
use crate::plugin::limits::Limits;
use crate::plugin::math::for_each_function;
use crate::plugin::session::HostSide;

/// Largest answer of `describe` and `subscribe` in bytes.
pub(super) const REPLY_BYTES: usize = 1 << 20;

macro_rules! table {
    ($($name:ident($($argument:ident),+);)+) => {{
        $(extern "C" fn $name($($argument: f64),+) -> f64 {
            lm_bench_plugin::math::$name($($argument),+)
        })+
        abi::MathV1 {
            size: size_of::<abi::MathV1>() as u32,
            flags: 0,
            $($name),+
        }
    }};
}

/// The functions that the SDK has for plugins in Rust.
static MATH: abi::MathV1 = for_each_function!(table);

/// One call's end of the callbacks.
pub(super) struct Callbacks<'a> {
    host: &'a mut HostSide,
    limits: &'a Limits,
    /// What the call reported.
    pub(super) report: Report,
    /// What the call answered.
    pub(super) reply: Option<String>,
    /// Why the call failed.
    pub(super) fault: Option<(FaultCode, String)>,
}

impl<'a> Callbacks<'a> {
    pub(super) fn new(host: &'a mut HostSide, limits: &'a Limits) -> Self {
        Self {
            host,
            limits,
            report: Report::new(limits),
            reply: None,
            fault: None,
        }
    }

    /// Lends the callbacks to a call.
    pub(super) fn lend<T>(&mut self, call: impl FnOnce(*const abi::HostV1) -> T) -> T {
        let table = abi::HostV1 {
            size: size_of::<abi::HostV1>() as u32,
            flags: 0,
            context: std::ptr::from_mut(self).cast(),
            log,
            symbol,
            metric,
            reply,
            fault,
            math: &raw const MATH,
        };
        call(&raw const table)
    }
}

/// Runs a callback on its context. A panic must not unwind into the plugin.
///
/// # Safety
/// `context` must be the one that [`Callbacks::lend`] gave, and the call that it was given to must not have ended.
unsafe fn with<T>(context: *mut c_void, fallback: T, call: impl FnOnce(&mut Callbacks<'_>) -> T) -> T {
    // SAFETY: the caller's promise; callbacks come one at a time, on the thread of the call.
    let Some(callbacks) = (unsafe { context.cast::<Callbacks<'_>>().as_mut() }) else {
        return fallback;
    };
    catch_unwind(AssertUnwindSafe(|| call(callbacks))).unwrap_or(fallback)
}

/// Copies text of at most `max` bytes; longer text is cut, bad UTF-8 is replaced.
///
/// # Safety
/// As [`abi::Bytes::as_slice`].
pub(super) unsafe fn text(bytes: abi::Bytes, max: usize) -> String {
    let bytes = abi::Bytes {
        ptr: bytes.ptr,
        len: bytes.len.min(max),
    };
    // SAFETY: the caller's promise, for a prefix.
    String::from_utf8_lossy(unsafe { bytes.as_slice() }).into_owned()
}

/// Whether a call that returned `status`, and gave `fault` through its callback, succeeded.
///
/// # Errors
/// The fault, or that the status says one and no reason was given.
pub(super) fn succeeded(
    status: i32,
    fault: Option<(FaultCode, String)>,
    limits: &Limits,
) -> Result<(), Failure> {
    match (status, fault) {
        (abi::STATUS_OK, None) => Ok(()),
        (abi::STATUS_OK, Some((_, message))) => Err(Failure::contract(message)),
        (_, Some((code, message))) => Err(Failure::reported(code, &message, limits.text_bytes)),
        (status, None) => Err(Failure::contract(format!(
            "a call returned status {status} without a reason"
        ))),
    }
}

/// A severity by its number.
pub(super) fn level(number: u32) -> LogLevel {
    match number {
        0 => LogLevel::Debug,
        1 => LogLevel::Info,
        2 => LogLevel::Warn,
        _ => LogLevel::Error,
    }
}

unsafe extern "C" fn log(context: *mut c_void, level: u32, line: abi::Bytes) {
    let level = self::level(level);
    // SAFETY: the plugin passes its context back and lends the text for the callback.
    unsafe {
        with(context, (), |callbacks| {
            let line = text(line, callbacks.limits.text_bytes);
            callbacks.host.log(level, &line);
        });
    }
}

unsafe extern "C" fn symbol(context: *mut c_void, id: u32) -> abi::Bytes {
    const NONE: abi::Bytes = abi::Bytes {
        ptr: std::ptr::null(),
        len: 0,
    };
    // SAFETY: the plugin passes its context back.
    unsafe {
        with(context, NONE, |callbacks| {
            let Some(found) = callbacks.host.symbol_text(id) else {
                return NONE;
            };
            abi::Bytes::of(found.as_bytes())
        })
    }
}

unsafe extern "C" fn reply(context: *mut c_void, json: abi::Bytes) {
    // SAFETY: the plugin passes its context back and lends the text for the callback.
    unsafe {
        with(context, (), |callbacks| {
            if json.len > REPLY_BYTES {
                let message = format!("answered with {} bytes, {REPLY_BYTES} are allowed", json.len);
                callbacks.fault = Some((FaultCode::Contract, message));
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
            callbacks.fault = Some((FaultCode::from_number(code), message));
        });
    }
}

unsafe extern "C" fn metric(context: *mut c_void, metric: *const abi::MetricV1) {
    // SAFETY: the plugin passes its context back and lends the metric and all it points to for the callback.
    unsafe { with(context, (), |callbacks| take_metric(callbacks, metric)) }
}

/// Copies a reported metric.
///
/// # Safety
/// `metric` must be null or point to a metric whose pointers and lengths are valid.
unsafe fn take_metric(callbacks: &mut Callbacks<'_>, metric: *const abi::MetricV1) {
    let report = &mut callbacks.report;
    let size = if metric.is_null() {
        0
    } else {
        // SAFETY: the caller's promise; a metric starts with its size.
        unsafe { (&raw const (*metric).size).read() }
    };
    if (size as usize) < size_of::<abi::MetricV1>() {
        report.refuse("reported a metric that is smaller than version 1 has it");
        return;
    }
    // SAFETY: the caller's promise, and the size was checked.
    let metric = unsafe { &*metric };
    let limits = callbacks.limits;
    if metric.labels_len > limits.labels || metric.buckets_len > limits.distribution_values {
        report.refuse("reported a metric with more labels or values than are allowed");
        return;
    }
    let room = size_of::<Metric>()
        + metric.name.len.min(limits.text_bytes)
        + metric.labels_len * 2 * limits.label_bytes
        + metric.buckets_len * size_of::<abi::BucketV1>();
    if !report.admit(room) {
        return;
    }
    // SAFETY: the caller's promise; the lengths were checked.
    unsafe {
        let name = text(metric.name, limits.text_bytes);
        let labels = slice(metric.labels, metric.labels_len)
            .iter()
            .map(|label| {
                (
                    text(label.key, limits.text_bytes),
                    text(label.value, limits.text_bytes),
                )
            })
            .collect();
        let value = match metric.shape {
            abi::shape::COUNTER => Value::Counter(metric.count),
            abi::shape::GAUGE => Value::Gauge(metric.number),
            abi::shape::DISTRIBUTION => {
                let buckets = slice(metric.buckets, metric.buckets_len);
                Value::Distribution(
                    buckets
                        .iter()
                        .map(|bucket| (bucket.value, bucket.count))
                        .collect(),
                )
            }
            abi::shape::UNAVAILABLE => Value::Unavailable(text(metric.reason, limits.text_bytes)),
            other => {
                report.refuse(&format!("reported a metric of unknown shape {other}"));
                return;
            }
        };
        report.push(Metric {
            name,
            labels,
            value,
            samples: metric.samples,
        });
    }
}

/// # Safety
/// `pointer` must point to `len` values, or `len` must be 0.
unsafe fn slice<'a, T>(pointer: *const T, len: usize) -> &'a [T] {
    if len == 0 || pointer.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(pointer, len) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::plugin::log::LogBook;

    fn view(name: &[u8], shape: u32) -> abi::MetricV1 {
        abi::MetricV1 {
            size: size_of::<abi::MetricV1>() as u32,
            shape,
            name: abi::Bytes::of(name),
            labels: std::ptr::null(),
            labels_len: 0,
            count: 3,
            number: 0.0,
            buckets: std::ptr::null(),
            buckets_len: 0,
            reason: abi::Bytes::of(&[]),
            samples: 1,
        }
    }

    /// What comes of a call that does something with the callbacks.
    fn after(limits: &Limits, call: impl FnOnce(&abi::HostV1)) -> (Result<Vec<Metric>, String>, HostSide) {
        let mut host = HostSide::new(LogBook::new(limits, Clock::fake()));
        let mut callbacks = Callbacks::new(&mut host, limits);
        // SAFETY: the table is valid for the closure.
        callbacks.lend(|table| call(unsafe { &*table }));
        let report = callbacks
            .report
            .into_metrics()
            .map_err(|failure| failure.to_string());
        (report, host)
    }

    fn report(change: impl FnOnce(&mut abi::MetricV1)) -> Result<Vec<Metric>, String> {
        let mut metric = view(b"rows", abi::shape::COUNTER);
        change(&mut metric);
        // SAFETY: context and metric are valid for the call, or what the test is about.
        let (report, _) = after(&Limits::default(), |table| unsafe {
            (table.metric)(table.context, &raw const metric);
        });
        report
    }

    #[test]
    fn a_metric_is_copied() {
        let metrics = report(|_| ()).expect("kept");
        assert_eq!(
            (metrics[0].name.as_str(), &metrics[0].value),
            ("rows", &Value::Counter(3))
        );
    }

    #[test]
    fn text_that_is_not_utf8_is_replaced() {
        let metrics = report(|metric| metric.name = abi::Bytes::of(b"ro\xffws")).expect("kept");
        assert_eq!(metrics[0].name, "ro\u{fffd}ws");
    }

    #[test]
    fn metrics_that_lie_about_their_size_are_not_read() {
        assert!(
            report(|metric| metric.size = 8)
                .expect_err("small")
                .contains("smaller than version 1")
        );
        assert!(
            report(|metric| metric.shape = 9)
                .expect_err("unknown")
                .contains("unknown shape 9")
        );
        // The pointers are null: reading them would end the test.
        assert!(
            report(|metric| metric.labels_len = usize::MAX)
                .expect_err("many")
                .contains("more labels")
        );
        assert!(
            report(|metric| metric.buckets_len = 1 << 40)
                .expect_err("many")
                .contains("more labels or values")
        );
        // SAFETY: the context is valid; a null metric is what the test is about.
        let (nothing, _) = after(&Limits::default(), |table| unsafe {
            (table.metric)(table.context, std::ptr::null());
        });
        assert!(nothing.expect_err("null").contains("smaller than version 1"));
    }

    #[test]
    fn logs_are_cut_and_symbols_that_nobody_knows_are_null() {
        let limits = Limits {
            text_bytes: 4,
            ..Limits::default()
        };
        // SAFETY: the context is valid for the call; the length is cut before the text is read.
        let (_, host) = after(&limits, |table| unsafe {
            (table.log)(table.context, 77, abi::Bytes::of(b"abcdefgh"));
            assert!((table.symbol)(table.context, 5).ptr.is_null());
        });
        let line = &host.log.lines()[0];
        assert_eq!((line.level, line.text.as_str()), (LogLevel::Error, "abcd"));
    }

    #[test]
    fn a_null_context_is_ignored() {
        // SAFETY: a null context is what the test is about.
        let (report, _) = after(&Limits::default(), |table| unsafe {
            (table.fault)(std::ptr::null_mut(), 1, abi::Bytes::of(b"x"));
        });
        assert_eq!(report, Ok(Vec::new()));
    }
}
