//! The binary contract between lm-bench and native plugins, version 1.0.0.
//!
//! A plugin exports one data symbol, [`lmb_entry_v1`](ENTRY_SYMBOL), of type [`EntryV1`]. It leads to tables of C functions that
//! are looked up by interface id; each table starts with its own size and is never changed once released. New
//! abilities come as new interface ids.
//!
//! Rules of the edge: only borrowed views cross it and they end with the call; no allocation changes
//! its owner; results go out through the host's callbacks; nothing unwinds across it. Plugins written in
//! Rust also carry an [`abi_stable`] root module ([`RustEntry`]), whose layout the host checks when it is present.
#![allow(
    unsafe_code,
    reason = "this crate is the dylib edge: raw views and the layout derive need it"
)]

use std::ffi::c_void;

use abi_stable::StableAbi;
use abi_stable::library::RootModule;
use abi_stable::package_version_strings;
use abi_stable::sabi_types::VersionStrings;
use abi_stable::std_types::RStr;

/// Name of the symbol that each native plugin exports.
pub const ENTRY_SYMBOL: &str = "lmb_entry_v1";
/// First bytes of [`EntryV1`].
pub const MAGIC: [u8; 8] = *b"LMBPLUG1";

/// The call succeeded.
pub const STATUS_OK: i32 = 0;
/// The call failed; the plugin said why through [`HostV1::fault`].
pub const STATUS_FAULT: i32 = 1;

/// Borrowed bytes; text is UTF-8. `ptr` may be null when `len` is 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    /// First byte.
    pub ptr: *const u8,
    /// Number of bytes.
    pub len: usize,
}

impl Bytes {
    /// Borrows a slice; the caller keeps it alive for the call.
    pub const fn of(bytes: &[u8]) -> Self {
        Self {
            ptr: bytes.as_ptr(),
            len: bytes.len(),
        }
    }

    /// Reads the view.
    ///
    /// # Safety
    /// `ptr` must point to `len` readable bytes that do not change during `'a`, or `len` must be 0.
    pub const unsafe fn as_slice<'a>(self) -> &'a [u8] {
        if self.len == 0 || self.ptr.is_null() {
            return &[];
        }
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }
}

/// What the exported symbol holds.
#[repr(C)]
#[derive(Debug)]
pub struct EntryV1 {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// Size of this struct in bytes.
    pub size: u32,
    /// 0; for later use.
    pub flags: u32,
    /// The manifest as JSON, the same bytes as the file's `.lmb.manifest` section.
    pub manifest: Bytes,
    /// Looks an interface up by id; null when the plugin does not offer it.
    pub interface: unsafe extern "C" fn(id: Bytes) -> *const c_void,
}

// SAFETY: an entry is an immutable static; its pointers refer to immutable statics.
unsafe impl Sync for EntryV1 {}

/// Element types of [`ColumnV1::element`].
pub mod element {
    /// 8-bit unsigned integer.
    pub const U8: u32 = 0;
    /// 16-bit unsigned integer.
    pub const U16: u32 = 1;
    /// 32-bit unsigned integer.
    pub const U32: u32 = 2;
    /// 64-bit unsigned integer.
    pub const U64: u32 = 3;
    /// 64-bit signed integer.
    pub const I64: u32 = 4;
    /// binary32.
    pub const F32: u32 = 5;
    /// binary64.
    pub const F64: u32 = 6;
    /// Symbol id, stored as a 32-bit unsigned integer.
    pub const SYM: u32 = 7;
}

/// One column of a batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ColumnV1 {
    /// First element, aligned for its type.
    pub data: *const c_void,
    /// Number of elements: rows times width.
    pub len: u64,
    /// Elements per row.
    pub width: u32,
    /// One of [`element`].
    pub element: u32,
}

/// A batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BatchV1 {
    /// Size of this struct in bytes.
    pub size: u32,
    /// Number of rows, at least 1.
    pub rows: u32,
    /// Position of the kind in the subscription.
    pub kind: u32,
    /// Number of columns.
    pub columns_len: u32,
    /// Number of the batch within its kind.
    pub seq: u64,
    /// Rows of the kind that were lost just before.
    pub lost_before: u64,
    /// Events per row.
    pub weight: f64,
    /// The columns.
    pub columns: *const ColumnV1,
}

/// A label.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LabelV1 {
    /// Key.
    pub key: Bytes,
    /// Value.
    pub value: Bytes,
}

/// A value of a distribution and its count.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BucketV1 {
    /// Value.
    pub value: f64,
    /// Count.
    pub count: u64,
}

/// Shapes of [`MetricV1::shape`].
pub mod shape {
    /// The value is `count`.
    pub const COUNTER: u32 = 0;
    /// The value is `number`.
    pub const GAUGE: u32 = 1;
    /// The value is `buckets`.
    pub const DISTRIBUTION: u32 = 2;
    /// There is no value; `reason` says why.
    pub const UNAVAILABLE: u32 = 3;
}

/// A reported metric.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MetricV1 {
    /// Size of this struct in bytes.
    pub size: u32,
    /// One of [`shape`].
    pub shape: u32,
    /// Name of the declared metric.
    pub name: Bytes,
    /// Labels.
    pub labels: *const LabelV1,
    /// Number of labels.
    pub labels_len: usize,
    /// Value of a counter.
    pub count: u64,
    /// Value of a gauge.
    pub number: f64,
    /// Value of a distribution, ascending.
    pub buckets: *const BucketV1,
    /// Number of buckets.
    pub buckets_len: usize,
    /// Why there is no value.
    pub reason: Bytes,
    /// Events behind the value.
    pub samples: u64,
}

/// Transcendental functions with the same bits for every plugin in every language. Plugins written in Rust take
/// them from the SDK; a plugin in C must not take those of its platform. Each may be called from anywhere.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MathV1 {
    /// Size of this struct in bytes.
    pub size: u32,
    /// 0; for later use.
    pub flags: u32,
    /// e to the power of x.
    pub exp: extern "C" fn(x: f64) -> f64,
    /// 2 to the power of x.
    pub exp2: extern "C" fn(x: f64) -> f64,
    /// Natural logarithm.
    pub log: extern "C" fn(x: f64) -> f64,
    /// Natural logarithm of 1 + x.
    pub log1p: extern "C" fn(x: f64) -> f64,
    /// Logarithm to base 2.
    pub log2: extern "C" fn(x: f64) -> f64,
    /// Logarithm to base 10.
    pub log10: extern "C" fn(x: f64) -> f64,
    /// x to the power of y.
    pub pow: extern "C" fn(x: f64, y: f64) -> f64,
    /// Cube root.
    pub cbrt: extern "C" fn(x: f64) -> f64,
    /// Sine of radians.
    pub sin: extern "C" fn(x: f64) -> f64,
    /// Cosine of radians.
    pub cos: extern "C" fn(x: f64) -> f64,
    /// Hyperbolic tangent.
    pub tanh: extern "C" fn(x: f64) -> f64,
}

/// The host's callbacks; valid during the call that receives them, on the calling thread only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostV1 {
    /// Size of this struct in bytes.
    pub size: u32,
    /// 0; for later use.
    pub flags: u32,
    /// Passed back to each callback.
    pub context: *mut c_void,
    /// Writes a log line; level 0 debug, 1 info, 2 warn, 3 error.
    pub log: unsafe extern "C" fn(context: *mut c_void, level: u32, text: Bytes),
    /// Looks a symbol up: returns its text, or a null `ptr`; valid until the current call returns.
    pub symbol: unsafe extern "C" fn(context: *mut c_void, id: u32) -> Bytes,
    /// Takes a reported metric.
    pub metric: unsafe extern "C" fn(context: *mut c_void, metric: *const MetricV1),
    /// Takes the answer of `describe` and `subscribe`.
    pub reply: unsafe extern "C" fn(context: *mut c_void, json: Bytes),
    /// Takes the reason before a call returns [`STATUS_FAULT`]; code 1 configuration, 2 data, 3 contract, 4 panic.
    pub fault: unsafe extern "C" fn(context: *mut c_void, code: u32, message: Bytes),
    /// Mathematics; valid as long as the plugin is loaded.
    pub math: *const MathV1,
}

/// Interface `lmb.collector/1`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CollectorV1 {
    /// Size of this struct in bytes.
    pub size: u32,
    /// 0; for later use.
    pub flags: u32,
    /// Replies with the JSON schema of the configuration.
    pub describe: unsafe extern "C" fn(host: *const HostV1) -> i32,
    /// Replies with the subscription as JSON. `config` and `run` are JSON objects.
    pub subscribe: unsafe extern "C" fn(host: *const HostV1, config: Bytes, run: Bytes) -> i32,
    /// Creates an instance. `resolved` is the JSON answer to the subscription.
    pub open: unsafe extern "C" fn(
        host: *const HostV1,
        config: Bytes,
        run: Bytes,
        resolved: Bytes,
        instance: *mut *mut c_void,
    ) -> i32,
    /// Takes a batch.
    pub on_batch:
        unsafe extern "C" fn(instance: *mut c_void, host: *const HostV1, batch: *const BatchV1) -> i32,
    /// Takes the number of rows of a kind that were lost after its last batch. Called at most once per kind, before
    /// `finish`, and only for a number above 0.
    pub lost_after:
        unsafe extern "C" fn(instance: *mut c_void, host: *const HostV1, kind: u32, rows: u64) -> i32,
    /// Reports all metrics so far through [`HostV1::metric`].
    pub checkpoint: unsafe extern "C" fn(instance: *mut c_void, host: *const HostV1) -> i32,
    /// Reports the final metrics; the instance is destroyed afterwards and only `destroy` may follow.
    pub finish: unsafe extern "C" fn(instance: *mut c_void, host: *const HostV1) -> i32,
    /// Frees the instance.
    pub destroy: unsafe extern "C" fn(instance: *mut c_void),
}

/// Rows that a probe hands over: whole columns, borrowed for the callback. The host checks lengths, widths and elements
/// against the kind's declaration and copies; memory of its own never leaves it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RowsV1 {
    /// Size of this struct in bytes.
    pub size: u32,
    /// Number of rows, at least 1.
    pub rows: u32,
    /// Position of the kind in the manifest.
    pub kind: u32,
    /// Number of columns: those of the manifest, in its order.
    pub columns_len: u32,
    /// The columns, without `t_ns`, which the host adds.
    pub columns: *const ColumnV1,
}

/// The host's callbacks for a probe; valid during the call that receives them, on the calling thread only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ProbeHostV1 {
    /// Size of this struct in bytes.
    pub size: u32,
    /// 0; for later use.
    pub flags: u32,
    /// Passed back to each callback.
    pub context: *mut c_void,
    /// Number of the process that is measured; the probe may run in another one.
    pub process: u64,
    /// Writes a log line; level 0 debug, 1 info, 2 warn, 3 error.
    pub log: unsafe extern "C" fn(context: *mut c_void, level: u32, text: Bytes),
    /// The symbol of a text, for columns of symbols; the same text has the same symbol for the life of the instance.
    pub symbol: unsafe extern "C" fn(context: *mut c_void, text: Bytes) -> u32,
    /// Takes rows during `sample`. What breaks the declaration ends the probe, whatever the call returns.
    pub rows: unsafe extern "C" fn(context: *mut c_void, rows: *const RowsV1),
    /// Takes the answer of `describe`.
    pub reply: unsafe extern "C" fn(context: *mut c_void, json: Bytes),
    /// Takes the reason before a call returns [`STATUS_FAULT`]; code 1 configuration, 2 data, 3 contract, 4 panic.
    pub fault: unsafe extern "C" fn(context: *mut c_void, code: u32, message: Bytes),
}

/// Interface `lmb.probe/1`: a source of rows of kinds `vendor.NAME.KIND`, which the manifest declares. Calls never
/// overlap, and none but `destroy` follows a fault.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ProbeV1 {
    /// Size of this struct in bytes.
    pub size: u32,
    /// 0; for later use.
    pub flags: u32,
    /// Replies with the JSON schema of the configuration.
    pub describe: unsafe extern "C" fn(host: *const ProbeHostV1) -> i32,
    /// Creates an instance. `config` and `run` are JSON objects.
    pub open: unsafe extern "C" fn(
        host: *const ProbeHostV1,
        config: Bytes,
        run: Bytes,
        instance: *mut *mut c_void,
    ) -> i32,
    /// The part of the run that is measured begins: what lies before does not count.
    pub start: unsafe extern "C" fn(instance: *mut c_void, host: *const ProbeHostV1) -> i32,
    /// Takes a sample: hands over what there is since the last one through [`ProbeHostV1::rows`]. The host stamps all
    /// rows of the call with the time at which it began.
    pub sample: unsafe extern "C" fn(instance: *mut c_void, host: *const ProbeHostV1) -> i32,
    /// The measured part is over: no sample follows.
    pub stop: unsafe extern "C" fn(instance: *mut c_void, host: *const ProbeHostV1) -> i32,
    /// Frees the instance.
    pub destroy: unsafe extern "C" fn(instance: *mut c_void),
}

/// The root module that plugins written in Rust carry beside [`EntryV1`]. Never edited: growth goes through interface ids.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = RustEntryRef)))]
pub struct RustEntry {
    /// The manifest, as in [`EntryV1::manifest`].
    pub manifest: extern "C" fn() -> RStr<'static>,
    /// As [`EntryV1::interface`].
    #[sabi(last_prefix_field)]
    pub interface: extern "C" fn(RStr<'_>) -> *const c_void,
}

impl RootModule for RustEntryRef {
    abi_stable::declare_root_module_statics! {RustEntryRef}
    const BASE_NAME: &'static str = "lm_bench_plugin";
    const NAME: &'static str = "lm-bench plugin";
    const VERSION_STRINGS: VersionStrings = package_version_strings!();
}
