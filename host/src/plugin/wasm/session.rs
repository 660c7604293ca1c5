//! A component as a session.

use std::sync::Arc;
use std::time::Duration;

use lm_bench_plugin::{Batch, Host, LogLevel, Resolved, Subscription};
use wasmtime::{Store, Trap};

use super::ComponentError;
use super::bindings::lm_bench::collector::{host, math, types};
use super::bindings::{MetricCollector, MetricCollectorPre};
use super::convert;
use super::engine::{TICK, Ticker, WasmEngine, WasmMode};
use super::limiter::MemoryLimiter;
use crate::clock::Clock;
use crate::plugin::failure::{Failure, one_line};
use crate::plugin::gather::Report;
use crate::plugin::limits::Limits;
use crate::plugin::log::LogBook;
use crate::plugin::math::for_each_function;
use crate::plugin::session::{HostSide, Session};

/// Time after which a call is ended though it has fuel left: this many times its limit, and at least [`NET_AT_LEAST`].
const NET_TIMES: u32 = 20;
const NET_AT_LEAST: Duration = Duration::from_secs(60);

/// What a store carries for its guest.
pub(super) struct State {
    host: HostSide,
    memory: MemoryLimiter,
    /// The last error that the guest logged during the current call: a panic announces itself so.
    last_error: Option<String>,
    mode: WasmMode,
}

impl State {
    /// A number that the guest gets from the host. The bits of a NaN depend on the processor, where that matters it
    /// is the one that the guest's own instructions make.
    fn number(&self, value: f64) -> f64 {
        const CANONICAL_NAN: u64 = 0x7ff8_0000_0000_0000;
        if value.is_nan() && self.mode == WasmMode::Fuel {
            return f64::from_bits(CANONICAL_NAN);
        }
        value
    }
}

impl host::Host for State {
    fn log(&mut self, level: host::Level, text: String) {
        let level = match level {
            host::Level::Debug => LogLevel::Debug,
            host::Level::Info => LogLevel::Info,
            host::Level::Warn => LogLevel::Warn,
            host::Level::Error => LogLevel::Error,
        };
        self.host.log(level, &text);
        if level == LogLevel::Error {
            self.last_error = Some(text);
        }
    }

    fn symbol(&mut self, id: u32) -> Option<String> {
        self.host.symbol(id)
    }
}

impl types::Host for State {}

macro_rules! functions {
    ($($name:ident($($argument:ident),+);)+) => {
        impl math::Host for State {
            $(fn $name(&mut self, $($argument: f64),+) -> f64 {
                self.number(lm_bench_plugin::math::$name($($argument),+))
            })+
        }
    };
}

for_each_function!(functions);

/// A loaded component. After a failure its store is never entered again.
pub(crate) struct WasmSession {
    store: Store<State>,
    prepared: MetricCollectorPre<State>,
    /// Empty until the first call, so that start functions run under its limits and can only quarantine.
    guest: Option<MetricCollector>,
    limits: Limits,
    scratch: convert::Scratch,
    /// Fuel of all calls so far.
    fuel: u64,
    _ticker: Arc<Ticker>,
}

type Called<T> = wasmtime::Result<Result<T, types::Fault>>;

impl WasmSession {
    /// Compiles and links a component that was [checked](super::check). Executes nothing of it.
    ///
    /// # Errors
    /// When it is not of the world of collectors.
    pub(crate) fn load(
        engine: &WasmEngine,
        bytes: &[u8],
        limits: &Limits,
        host: HostSide,
    ) -> Result<Self, ComponentError> {
        let prepared = engine.prepare(bytes)?;
        Ok(Self {
            store: store(engine, limits, host),
            prepared,
            guest: None,
            limits: limits.clone(),
            scratch: convert::Scratch::default(),
            fuel: 0,
            _ticker: engine.ticker(),
        })
    }

    /// Runs one call under a time limit, or with the fuel that stands for it.
    fn call<T>(
        &mut self,
        limit: Duration,
        call: impl FnOnce(&MetricCollector, &mut Store<State>) -> wasmtime::Result<T>,
    ) -> Result<T, Failure> {
        let fuel = self.prepare_call(limit)?;
        self.store.data_mut().last_error = None;
        let started = match self.guest.take() {
            Some(guest) => Ok(guest),
            None => self.prepared.instantiate(&mut self.store),
        };
        let called = started.and_then(|guest| call(self.guest.insert(guest), &mut self.store));
        // No fuel is left where none was given.
        self.fuel += fuel - self.store.get_fuel().unwrap_or(0).min(fuel);
        called.map_err(|error| failure(&error, self.store.data(), &self.limits, limit))
    }

    /// Sets what ends the next call; gives its fuel.
    fn prepare_call(&mut self, limit: Duration) -> Result<u64, Failure> {
        if self.store.data().mode == WasmMode::Time {
            self.store.set_epoch_deadline(ticks(limit));
            return Ok(0);
        }
        self.store.set_epoch_deadline(ticks(safety_net(limit)));
        let fuel = self.limits.fuel(limit);
        match self.store.set_fuel(fuel) {
            Ok(()) => Ok(fuel),
            Err(error) => Err(Failure::contract(format!("it cannot be given fuel: {error:#}"))),
        }
    }

    fn call_fallible<T>(
        &mut self,
        limit: Duration,
        call: impl FnOnce(&MetricCollector, &mut Store<State>) -> Called<T>,
    ) -> Result<T, Failure> {
        let text_bytes = self.limits.text_bytes;
        self.call(limit, call)?
            .map_err(|fault| Failure::reported(convert::fault_code(fault.code), &fault.message, text_bytes))
    }

    fn report(&self, metrics: Vec<types::Metric>) -> Report {
        let mut report = Report::new(&self.limits);
        for metric in metrics {
            lm_bench_plugin::MetricSink::metric(&mut report, convert::metric(metric));
        }
        report
    }
}

impl Session for WasmSession {
    fn describe(&mut self) -> Result<String, Failure> {
        Err(Failure::contract(
            "a component's configuration is described by another one",
        ))
    }

    fn subscribe(&mut self, config: &str, run: &str) -> Result<Subscription, Failure> {
        let wanted = self.call_fallible(self.limits.call_time(), |guest, store| {
            guest
                .lm_bench_collector_collector()
                .call_subscribe(store, config, run)
        })?;
        Ok(convert::subscription(wanted))
    }

    fn open(&mut self, config: &str, run: &str, resolved: &Resolved) -> Result<(), Failure> {
        let columns = convert::columns_of(resolved);
        let resolved = convert::resolved(resolved, &columns);
        self.call_fallible(self.limits.call_time(), |guest, store| {
            guest
                .lm_bench_collector_collector()
                .call_open(store, config, run, &resolved)
        })
    }

    fn on_batch(&mut self, batch: &Batch<'_>) -> Result<(), Failure> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let columns = scratch.columns(batch);
        let view = types::Batch {
            kind: batch.kind,
            seq: batch.seq,
            rows: batch.rows,
            weight: batch.weight,
            lost_before: batch.lost_before,
            columns: &columns,
        };
        let called = self.call_fallible(self.limits.batch_time(), |guest, store| {
            guest.lm_bench_collector_collector().call_on_batch(store, view)
        });
        scratch.recycle(columns);
        self.scratch = scratch;
        called
    }

    fn lost_after(&mut self, kind: u16, rows: u64) -> Result<(), Failure> {
        self.call_fallible(self.limits.call_time(), |guest, store| {
            guest
                .lm_bench_collector_collector()
                .call_lost_after(store, kind, rows)
        })
    }

    fn checkpoint(&mut self) -> Result<Report, Failure> {
        let metrics = self.call_fallible(self.limits.call_time(), |guest, store| {
            guest.lm_bench_collector_collector().call_checkpoint(store)
        })?;
        Ok(self.report(metrics))
    }

    fn finish(&mut self) -> Result<Report, Failure> {
        let metrics = self.call_fallible(self.limits.call_time(), |guest, store| {
            guest.lm_bench_collector_collector().call_finish(store)
        })?;
        Ok(self.report(metrics))
    }

    fn host(&mut self) -> &mut HostSide {
        &mut self.store.data_mut().host
    }

    fn peak_memory(&self) -> Option<u64> {
        Some(self.store.data().memory.peak() as u64)
    }

    fn fuel(&self) -> Option<u64> {
        (self.store.data().mode == WasmMode::Fuel).then_some(self.fuel)
    }
}

fn store(engine: &WasmEngine, limits: &Limits, host: HostSide) -> Store<State> {
    let state = State {
        host,
        memory: MemoryLimiter::new(limits.memory_bytes),
        last_error: None,
        mode: engine.mode(),
    };
    let mut store = Store::new(engine.engine(), state);
    store.limiter(|state| &mut state.memory);
    store.set_hostcall_fuel(limits.report_bytes);
    store.epoch_deadline_trap();
    store
}

/// Asks the component that `plugin build` makes for it for the schema of a configuration.
///
/// # Errors
/// When it is no such component, or does not answer within the limits.
pub(crate) fn config_schema(bytes: &[u8], limits: &Limits) -> Result<String, String> {
    let engine = WasmEngine::new(limits, WasmMode::Time, Err("it runs once".to_owned()))?;
    let host = HostSide::new(LogBook::new(limits, Clock::start()));
    let mut store = store(&engine, limits, host);
    store.set_epoch_deadline(ticks(limits.call_time()));
    let component = engine.compile(bytes).map_err(|error| error.to_string())?;
    let asked = engine
        .linker()
        .instantiate(&mut store, &component)
        .and_then(|instance| instance.get_typed_func::<(), (String,)>(&mut store, "describe"))
        .and_then(|describe| describe.call(&mut store, ()));
    let answer =
        asked.map_err(|error| failure(&error, store.data(), limits, limits.call_time()).to_string())?;
    Ok(answer.0)
}

/// Time after which a call with fuel left is ended.
fn safety_net(limit: Duration) -> Duration {
    limit.saturating_mul(NET_TIMES).max(NET_AT_LEAST)
}

/// Epochs in a time limit: one more than it holds, because the first one is already under way.
fn ticks(limit: Duration) -> u64 {
    (limit.as_nanos().div_ceil(TICK.as_nanos()) as u64).saturating_add(1)
}

/// Tells what ended a call.
fn failure(error: &wasmtime::Error, state: &State, limits: &Limits, time: Duration) -> Failure {
    if let Some(wanted) = state.memory.refused() {
        return Failure::MemoryLimit {
            wanted,
            limit: limits.memory_bytes,
        };
    }
    let text = |text: &str| one_line(text, limits.text_bytes);
    match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) if state.mode == WasmMode::Fuel => Failure::SafetyNet(safety_net(time)),
        Some(Trap::Interrupt) => Failure::TimeLimit(time),
        Some(Trap::OutOfFuel) => Failure::Fuel {
            fuel: limits.fuel(time),
            limit: time,
        },
        Some(Trap::StackOverflow) => Failure::Stack,
        // Compiled Rust and C keep part of their stack at the bottom of linear memory.
        Some(Trap::MemoryOutOfBounds) => Failure::Trap(
            "out of bounds memory access; in compiled languages this is also what too deep a recursion looks like"
                .to_owned(),
        ),
        Some(Trap::UnreachableCodeReached) => match &state.last_error {
            Some(panic) => Failure::Panic(text(panic)),
            None => Failure::Trap("it reached code that it holds for unreachable, without a message".to_owned()),
        },
        Some(trap) => Failure::Trap(text(&trap.to_string())),
        None => Failure::Contract(text(&error.root_cause().to_string())),
    }
}
