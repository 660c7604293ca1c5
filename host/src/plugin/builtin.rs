//! The built-in door: collectors that are linked into this program.

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lm_bench_plugin::builtin::{Builtin, registered};
use lm_bench_plugin::erased::{Instance, panic_text};
use lm_bench_plugin::manifest::{Description, Manifest};
use lm_bench_plugin::{Batch, Fault, Resolved, RunInfo, Subscription};

use super::failure::{Failure, one_line};
use super::gather::Report;
use super::identity::{self, ManifestError};
use super::limits::Limits;
use super::session::{HostSide, Session};

/// The collectors of this program by id.
///
/// # Errors
/// When one of them carries a manifest that is not valid, which is a fault of its crate.
pub(crate) fn all() -> Result<Vec<(Manifest, &'static Builtin)>, ManifestError> {
    let mut found = Vec::new();
    for builtin in registered() {
        found.push((identity::read(builtin.manifest, &Limits::default())?, builtin));
    }
    found.sort_by(|a: &(Manifest, _), b| a.0.id.cmp(&b.0.id));
    Ok(found)
}

/// What a collector says of itself; `None` when it panics.
pub(crate) fn describe(builtin: &Builtin) -> Option<Description> {
    let limits = Limits::default();
    let config = guarded(&limits, || Ok((builtin.config_schema)())).ok()?;
    let run = serde_json::to_string(&RunInfo::default()).ok()?;
    Some(Description {
        config: serde_json::from_str(&config).ok()?,
        subscription: guarded(&limits, || (builtin.subscribe)("{}", &run)).ok(),
    })
}

/// A collector of this program.
pub(crate) struct BuiltinSession {
    builtin: &'static Builtin,
    instance: Option<Box<dyn Instance>>,
    host: HostSide,
    limits: Limits,
}

impl BuiltinSession {
    /// Prepares a collector.
    pub(crate) fn new(builtin: &'static Builtin, limits: &Limits, host: HostSide) -> Self {
        Self {
            builtin,
            instance: None,
            host,
            limits: limits.clone(),
        }
    }

    /// Runs one call; a panic becomes a failure.
    fn guarded<T>(&self, call: impl FnOnce() -> Result<T, Fault>) -> Result<T, Failure> {
        guarded(&self.limits, call)
    }

    fn with_instance<T>(
        &mut self,
        call: impl FnOnce(&mut Box<dyn Instance>, &mut HostSide) -> Result<T, Fault>,
    ) -> Result<T, Failure> {
        let Some(instance) = self.instance.take() else {
            return Err(Failure::contract("the collector is not open"));
        };
        // After a failure the instance may be half changed: even its destructor is not run.
        let mut instance = ManuallyDrop::new(instance);
        let result = guarded(&self.limits, || call(&mut instance, &mut self.host))?;
        self.instance = Some(ManuallyDrop::into_inner(instance));
        Ok(result)
    }
}

fn guarded<T>(limits: &Limits, call: impl FnOnce() -> Result<T, Fault>) -> Result<T, Failure> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(fault)) => Err(Failure::reported(fault.code, &fault.message, limits.text_bytes)),
        Err(panic) => {
            let text = format!("panicked: {}", panic_text(&*panic));
            Err(Failure::Panic(one_line(&text, limits.text_bytes)))
        }
    }
}

impl Session for BuiltinSession {
    fn describe(&mut self) -> Result<String, Failure> {
        self.guarded(|| Ok((self.builtin.config_schema)()))
    }

    fn subscribe(&mut self, config: &str, run: &str) -> Result<Subscription, Failure> {
        self.guarded(|| (self.builtin.subscribe)(config, run))
    }

    fn open(&mut self, config: &str, run: &str, resolved: &Resolved) -> Result<(), Failure> {
        let opened = self.guarded(|| (self.builtin.open)(config, run, resolved))?;
        self.instance = Some(opened);
        Ok(())
    }

    fn on_batch(&mut self, batch: &Batch<'_>) -> Result<(), Failure> {
        self.with_instance(|instance, host| instance.on_batch(batch, host))
    }

    fn lost_after(&mut self, kind: u16, rows: u64) -> Result<(), Failure> {
        self.with_instance(|instance, _| {
            instance.lost_after(kind, rows);
            Ok(())
        })
    }

    fn checkpoint(&mut self) -> Result<Report, Failure> {
        let mut report = Report::new(&self.limits);
        self.with_instance(|instance, _| instance.checkpoint(&mut report))?;
        Ok(report)
    }

    fn finish(&mut self) -> Result<Report, Failure> {
        let mut report = Report::new(&self.limits);
        let Some(instance) = self.instance.take() else {
            return Err(Failure::contract("the collector is not open"));
        };
        self.guarded(|| instance.finish(&mut report))?;
        Ok(report)
    }

    fn host(&mut self) -> &mut HostSide {
        &mut self.host
    }

    fn peak_memory(&self) -> Option<u64> {
        None
    }
}
