//! Loads a checked library and finds its table of functions.
#![allow(unsafe_code, reason = "this module is the dylib edge")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd as _;
use std::sync::{Mutex, PoisonError};

use abi_stable::library::{AbiHeaderRef, ROOT_MODULE_LOADER_NAME_WITH_NUL};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use lm_bench_abi as abi;
use lm_bench_plugin::manifest::{COLLECTOR_INTERFACE, PROBE_INTERFACE};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use super::elf::LibraryFacts;
use crate::plugin::HOST_VERSION;
use crate::plugin::failure::one_line;

/// Why a library that looked right could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// No sealed copy could be made.
    #[error("it cannot be copied into memory: {0}")]
    Memory(std::io::Error),
    /// It could not be loaded in a process of its own.
    #[error("{0}")]
    Process(String),
    /// The dynamic linker refused it.
    #[error("the dynamic linker refused it: {0}")]
    Link(String),
    /// It has no entry.
    #[error(
        "it does not export {}: it was not built with `lm-bench plugin build DIR --door dylib`",
        abi::ENTRY_SYMBOL
    )]
    NoEntry,
    /// Its entry is not one of this version.
    #[error("its entry is not valid: {0}")]
    Entry(String),
    /// The Rust part was built against another contract.
    #[error("its abi_stable root does not fit this lm-bench ({HOST_VERSION}): {0}")]
    Root(String),
}

/// `RTLD_NODELETE`: libraries are never unloaded, because thread-locals and callbacks of a Rust library outlive it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const RTLD_NODELETE: i32 = 0x1000;

/// The functions of a loaded plugin. They live as long as the process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table(&'static abi::CollectorV1);

impl Table {
    pub(super) fn functions(self) -> &'static abi::CollectorV1 {
        self.0
    }
}

/// The functions of a loaded probe. They live as long as the process.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeTable(&'static abi::ProbeV1);

impl ProbeTable {
    pub(super) fn functions(self) -> &'static abi::ProbeV1 {
        self.0
    }
}

/// A copy of a library's bytes that nobody can change any more, so that what was checked is what is loaded.
#[derive(Debug)]
pub(crate) struct Sealed {
    memory: File,
    sha256: String,
}

impl Sealed {
    /// Copies bytes with a known digest.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(crate) fn of(bytes: &[u8], sha256: &str) -> Result<Self, LibraryError> {
        Ok(Self {
            memory: sealed(bytes).map_err(LibraryError::Memory)?,
            sha256: sha256.to_owned(),
        })
    }
}

fn sealed(bytes: &[u8]) -> std::io::Result<File> {
    let memory = memfd_create("lm-bench-plugin", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = File::from(memory);
    file.write_all(bytes)?;
    fcntl_add_seals(
        &file,
        SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
    )?;
    Ok(file)
}

/// Loads a library from the bytes that were checked and finds the functions of its collector. From here on it can do
/// anything that this process can.
///
/// # Errors
/// When it cannot be loaded, or is not what its file said.
pub(super) fn load(sealed: Sealed, facts: &LibraryFacts) -> Result<Table, LibraryError> {
    let entry = entry_of(sealed, facts)?;
    Ok(Table(table(entry, COLLECTOR_INTERFACE)?))
}

/// As [`load`], for a probe.
///
/// # Errors
/// As [`load`].
pub(super) fn load_probe(sealed: Sealed, facts: &LibraryFacts) -> Result<ProbeTable, LibraryError> {
    let entry = entry_of(sealed, facts)?;
    Ok(ProbeTable(table(entry, PROBE_INTERFACE)?))
}

/// The same bytes are loaded once in a process, because they are never unloaded.
fn entry_of(sealed: Sealed, facts: &LibraryFacts) -> Result<&'static abi::EntryV1, LibraryError> {
    static LOADED: Mutex<BTreeMap<String, &'static abi::EntryV1>> = Mutex::new(BTreeMap::new());
    // A panic while the lock is held leaves the map whole: entries are only added.
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(entry) = loaded.get(&sealed.sha256) {
        return Ok(entry);
    }
    let entry = load_new(sealed.memory, facts)?;
    loaded.insert(sealed.sha256, entry);
    Ok(entry)
}

fn load_new(memory: File, facts: &LibraryFacts) -> Result<&'static abi::EntryV1, LibraryError> {
    // Never closed: the loader tells libraries apart by path, and the next plugin's descriptor would get the same
    // number and so this library.
    let memory = ManuallyDrop::new(memory);
    let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
    // SAFETY: loading runs the library's constructors; the user allowed native code, and the bytes were checked.
    let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) }
        .map_err(|error| LibraryError::Link(link_error(&error)))?;
    // Never closed; see RTLD_NODELETE.
    let library = ManuallyDrop::new(library);
    let entry = entry(&library, facts)?;
    check_root(&library, facts)?;
    Ok(entry)
}

fn link_error(error: &libloading::Error) -> String {
    const LONGEST: usize = 400;
    let source = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    let text = one_line(&source, LONGEST);
    if text.contains("static TLS block") {
        return format!("{text}; a plugin must not bring its own global allocator (jemalloc, mimalloc)");
    }
    text
}

fn entry(library: &Library, facts: &LibraryFacts) -> Result<&'static abi::EntryV1, LibraryError> {
    let invalid = |text: &str| LibraryError::Entry(text.to_owned());
    // SAFETY: the symbol is data of type `EntryV1`; nothing of it is read before magic and size are checked.
    let symbol = unsafe { library.get::<*const abi::EntryV1>(abi::ENTRY_SYMBOL.as_bytes()) }
        .map_err(|_| LibraryError::NoEntry)?;
    let entry: *const abi::EntryV1 = symbol.into_raw().cast();
    if entry.is_null() || !entry.is_aligned() {
        return Err(invalid("it has no address"));
    }
    // SAFETY: each native plugin's entry starts with eight magic bytes and its size; both are plain data.
    let (magic, size) = unsafe {
        (
            (&raw const (*entry).magic).read(),
            (&raw const (*entry).size).read(),
        )
    };
    if magic != abi::MAGIC {
        return Err(invalid("it does not start with the magic bytes"));
    }
    if (size as usize) < size_of::<abi::EntryV1>() {
        return Err(invalid("it is smaller than version 1 has it"));
    }
    // SAFETY: the size says that the field is there. It is read as a number because a function is never null in Rust.
    let interface = unsafe { (&raw const (*entry).interface).cast::<usize>().read() };
    if interface == 0 {
        return Err(invalid("it has no function that looks interfaces up"));
    }
    // SAFETY: magic and size say that it is an entry of version 1 or a larger one; it is never unloaded.
    let entry: &'static abi::EntryV1 = unsafe { &*entry };
    // SAFETY: the entry lends its manifest for ever. A length that is not the file's is never read.
    let same = entry.manifest.len == facts.manifest_bytes.len()
        && unsafe { entry.manifest.as_slice() } == facts.manifest_bytes.as_slice();
    if !same {
        return Err(invalid("its manifest differs from the one in the file"));
    }
    Ok(entry)
}

/// A table of functions whose first field is its size.
///
/// # Safety
/// The type must be plain data: a `u32` with the size of the whole, another one with flags, and then functions alone.
unsafe trait Sized32 {}
// SAFETY: both are `repr(C)` and laid out so.
unsafe impl Sized32 for abi::CollectorV1 {}
// SAFETY: as above.
unsafe impl Sized32 for abi::ProbeV1 {}

/// Asks an entry for the table of an interface.
fn table<T: Sized32>(entry: &abi::EntryV1, interface: &str) -> Result<&'static T, LibraryError> {
    let invalid = |text: &str| LibraryError::Entry(text.to_owned());
    // SAFETY: the contract of `EntryV1::interface`.
    let table = unsafe { (entry.interface)(abi::Bytes::of(interface.as_bytes())) }.cast::<T>();
    if table.is_null() {
        return Err(LibraryError::Entry(format!("it does not offer {interface}")));
    }
    if !table.is_aligned() {
        return Err(invalid("its table of functions has no address"));
    }
    // SAFETY: each table starts with its size.
    let size = unsafe { table.cast::<u32>().read() };
    if (size as usize) < size_of::<T>() {
        return Err(invalid("its table of functions is smaller than version 1 has it"));
    }
    // SAFETY: a table of the known size. After its size and flags it holds nothing but functions.
    let functions =
        unsafe { std::slice::from_raw_parts(table.cast::<usize>(), size_of::<T>() / size_of::<usize>()) };
    if functions[1..].contains(&0) {
        return Err(invalid("its table lacks a function"));
    }
    // SAFETY: a table of the asked interface and of at least the known size, never unloaded.
    Ok(unsafe { &*table })
}

/// Checks the layout of the `abi_stable` root of plugins in Rust; plugins in other languages have none.
fn check_root(library: &Library, facts: &LibraryFacts) -> Result<(), LibraryError> {
    // SAFETY: `abi_stable` gives each root this symbol, a static that starts with its own magic bytes.
    let symbol = unsafe { library.get::<AbiHeaderRef>(ROOT_MODULE_LOADER_NAME_WITH_NUL.as_bytes()) };
    let Ok(header) = symbol else {
        return Ok(());
    };
    let refused = |error: &dyn std::fmt::Display| LibraryError::Root(first_cause(&error.to_string()));
    let header = (*header).upgrade().map_err(|error| refused(&error))?;
    let root = header
        .init_root_module::<abi::RustEntryRef>()
        .map_err(|error| refused(&error))?;
    if root.manifest()().as_str().as_bytes() != facts.manifest_bytes.as_slice() {
        return Err(LibraryError::Root(
            "its manifest differs from the one in the file".to_owned(),
        ));
    }
    Ok(())
}

/// The one line of `abi_stable`'s report, hundreds of lines long, that names the difference.
fn first_cause(report: &str) -> String {
    const LONGEST: usize = 200;
    let mut lines = report.lines().map(str::trim).filter(|line| !line.is_empty());
    let cause = lines
        .clone()
        .find(|line| line.contains("Error:") || line.contains("error(s)"));
    one_line(
        cause.or_else(|| lines.next()).unwrap_or("no reason given"),
        LONGEST,
    )
}
