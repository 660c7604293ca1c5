//! The compiler and runtime that all WASM plugins of a run share, its cache, and the thread that ends overlong calls.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Config, Engine, EngineWeak};

use super::binary::ComponentError;
use super::bindings::{MetricCollector, MetricCollectorPre};
use super::cache::{self, CacheState};
use super::session::State;
use crate::plugin::limits::Limits;

/// Time between two epochs, the grain of time limits.
pub(super) const TICK: Duration = Duration::from_millis(10);

/// What ends a call that goes on for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WasmMode {
    /// Time.
    Time,
    /// Fuel: the same call ends at the same instruction on every machine, and computes the same bits. Time remains as a
    /// safety net.
    Fuel,
}

/// Compiles and links components.
pub(crate) struct WasmEngine {
    engine: Engine,
    linker: Linker<State>,
    cache: CacheState,
    ticker: Arc<Ticker>,
    mode: WasmMode,
}

impl WasmEngine {
    /// Prepares for WASM plugins; compiled code goes to `cache` when there is such a folder. The cache tells the modes
    /// apart by itself: their code is different.
    ///
    /// # Errors
    /// When this machine cannot run WebAssembly or no thread can be started.
    pub(crate) fn new(
        limits: &Limits,
        mode: WasmMode,
        cache: Result<PathBuf, String>,
    ) -> Result<Self, String> {
        let mut config = Config::new();
        config
            .wasm_component_model(true)
            .epoch_interruption(true)
            .consume_fuel(mode == WasmMode::Fuel)
            .cranelift_nan_canonicalization(mode == WasmMode::Fuel)
            .max_wasm_stack(limits.wasm_stack_bytes)
            .wasm_memory64(false)
            // Languages with a runtime come as several components in one, each with its memory, and what copies between
            // them knows both.
            .wasm_multi_memory(true)
            .relaxed_simd_deterministic(true)
            // A guest's panic tells its place itself; without these tables compiled code is a seventh smaller.
            .wasm_backtrace_max_frames(None)
            .generate_address_map(false)
            .native_unwind_info(false);
        let (store, cache) = match cache.and_then(|folder| cache::open(&folder)) {
            Ok((store, folder)) => (Some(store), CacheState::Folder(folder)),
            Err(reason) => (None, CacheState::Off(reason)),
        };
        config.cache(store);
        let engine =
            Engine::new(&config).map_err(|error| format!("WebAssembly cannot be run here: {error:#}"))?;
        let mut linker = Linker::new(&engine);
        MetricCollector::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut State| state)
            .map_err(|error| format!("{error:#}"))?;
        let ticker =
            Ticker::start(engine.weak()).map_err(|error| format!("no thread for time limits: {error}"))?;
        Ok(Self {
            engine,
            linker,
            cache,
            ticker: Arc::new(ticker),
            mode,
        })
    }

    /// Whether compiled components are kept between runs.
    pub(crate) fn cache(&self) -> &CacheState {
        &self.cache
    }

    /// Compiles a component, or takes it from the cache, and links it. Executes nothing of it.
    ///
    /// # Errors
    /// When the compiler refuses it, or it is not of the world of collectors.
    pub(super) fn prepare(&self, bytes: &[u8]) -> Result<MetricCollectorPre<State>, ComponentError> {
        let component = self.compile(bytes)?;
        let linked = self.linker.instantiate_pre(&component);
        linked.and_then(MetricCollectorPre::new).map_err(|error| {
            ComponentError::Compile(format!("it does not fit the world of collectors: {error:#}"))
        })
    }

    /// Compiles a component, or takes it from the cache.
    ///
    /// # Errors
    /// When the compiler refuses it.
    pub(super) fn compile(&self, bytes: &[u8]) -> Result<Component, ComponentError> {
        // The compiler has panicked on hostile input in earlier versions.
        catch_unwind(AssertUnwindSafe(|| Component::from_binary(&self.engine, bytes)))
            .map_err(|_| ComponentError::Compile("the compiler failed on it".to_owned()))?
            .map_err(|error| ComponentError::Compile(format!("{error:#}")))
    }

    /// What guests may import.
    pub(super) fn linker(&self) -> &Linker<State> {
        &self.linker
    }

    /// What makes time limits work; each session keeps it for as long as it may call its guest.
    pub(super) fn ticker(&self) -> Arc<Ticker> {
        Arc::clone(&self.ticker)
    }

    /// What ends calls.
    pub(super) fn mode(&self) -> WasmMode {
        self.mode
    }

    /// The engine itself, for stores.
    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }
}

impl std::fmt::Debug for WasmEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WasmEngine")
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

/// Advances the engine's epoch until it is dropped.
pub(super) struct Ticker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    fn start(engine: EngineWeak) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let tick = move || {
            while !stopped.load(Ordering::Relaxed) {
                std::thread::park_timeout(TICK);
                if let Some(engine) = engine.upgrade() {
                    engine.increment_epoch();
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("wasm-epochs".to_owned())
            .spawn(tick)?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread only sleeps and counts; it cannot have panicked.
            let _ = thread.join();
        }
    }
}
