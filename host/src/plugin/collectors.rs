//! All collectors of a run, as one sink of the event stream.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lm_bench_plugin::RunInfo;

use super::admission::Admission;
use super::builtin::BuiltinSession;
use super::dylib::{DylibSession, LibraryError, LibraryFacts, Sealed};
use super::error::PluginError;
use super::failure::Failure;
use super::file::PluginFile;
use super::isolated::IsolatedSession;
use super::limits::Policy;
use super::log::LogBook;
use super::member::{Member, Setup};
use super::outcome::CollectorOutcome;
use super::registry::{Code, Found};
use super::resolve::{Unresolved, resolve};
use super::search::user_folder;
use super::session::{Door, HostSide, Session};
use super::wasm::{CacheState, WasmEngine, WasmMode, WasmSession};
use crate::clock::Clock;
use crate::events::{Delivery, EventSink, KindTable, SinkError, SymbolTable};

/// Which plugins a run wants.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// Ids and paths.
    pub plugins: Vec<String>,
    /// Whether all built-in collectors run too. A requested plugin takes the place of the built-in one of its id.
    pub defaults: bool,
    /// Configuration by id.
    pub config: BTreeMap<String, serde_json::Map<String, serde_json::Value>>,
    /// Time between two samples of each probe, above zero.
    pub probe_period: Duration,
    /// Whether nothing is measured, so that probes are refused.
    pub replay: bool,
}

/// What the collectors of a run need to be recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demands {
    /// Indices of the kinds that at least one collector takes.
    pub kinds: BTreeSet<usize>,
}

/// The collectors of a run.
pub struct Collectors {
    members: Vec<Member>,
    cache: Option<CacheState>,
}

impl Collectors {
    /// Finds the plugins of a run without starting them, and gives the files of those that are native code.
    ///
    /// # Errors
    /// When one cannot be found, does not fit this version, or may not be loaded.
    pub fn check(requests: &Requests, policy: &Policy) -> Result<Vec<PathBuf>, PluginError> {
        let found = find(requests, policy)?;
        let native = found.iter().filter(|found| found.door() == Door::Dylib);
        Ok(native
            .filter_map(Found::file)
            .map(|file| file.path.clone())
            .collect())
    }

    /// Finds, loads and starts the collectors of a run.
    ///
    /// A plugin that traps, panics or breaks the contract while it starts is quarantined and part of the outcome.
    ///
    /// # Errors
    /// When a plugin cannot be found, does not fit this version, or does not accept its configuration.
    pub fn load(
        requests: &Requests,
        run: &RunInfo,
        kinds: &KindTable,
        policy: &Policy,
    ) -> Result<Self, PluginError> {
        let found = find(requests, policy)?;
        let loader = Loader::new(&found, policy)?;
        let run = serde_json::to_string(run).map_err(|error| PluginError::Runtime(error.to_string()))?;
        let mut members = Vec::new();
        for found in found.into_iter().filter(|found| !found.manifest.is_probe()) {
            let member = loader.load(found, requests)?;
            members.push(start(member, &run, kinds, policy)?);
        }
        let cache = loader.engine.as_ref().map(|engine| engine.cache().clone());
        Ok(Self { members, cache })
    }

    /// Starts a session of the host's own in the place of a plugin.
    ///
    /// # Errors
    /// When it wants events that there are not.
    pub(super) fn of_session(
        (found, session): (Found, Box<dyn Session>),
        run: &RunInfo,
        kinds: &KindTable,
        policy: &Policy,
    ) -> Result<Self, PluginError> {
        let run = serde_json::to_string(run).map_err(|error| PluginError::Runtime(error.to_string()))?;
        let setup = Setup {
            isolated: false,
            found,
            session,
            config: serde_json::Map::new().into(),
            limits: policy.limits.clone(),
            deterministic: policy.deterministic,
        };
        let member = start(Member::new(setup, Clock::start()), &run, kinds, policy)?;
        Ok(Self {
            members: vec![member],
            cache: None,
        })
    }

    /// Takes a checkpoint of each collector now.
    pub(super) fn checkpoint(&mut self) {
        self.members.iter_mut().for_each(Member::checkpoint);
    }

    /// What has to be recorded for them.
    pub fn demands(&self) -> Demands {
        Demands {
            kinds: self.members.iter().flat_map(Member::kinds).collect(),
        }
    }

    /// Ids of the collectors, in the order in which they are called.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.members
            .iter()
            .map(|member| member.found().manifest.id.as_str())
    }

    /// Ids of collectors with the files of the same id that were passed over for them.
    pub fn shadows(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.members.iter().map(Member::found).flat_map(|found| {
            let id = found.manifest.id.as_str();
            found.shadows.iter().map(move |path| (id, path.as_path()))
        })
    }

    /// Whether compiled components are kept; `None` without WASM plugins.
    pub fn cache(&self) -> Option<&CacheState> {
        self.cache.as_ref()
    }

    /// Ends the collectors and takes their metrics.
    pub fn finish(self) -> Vec<CollectorOutcome> {
        self.members.into_iter().map(Member::finish).collect()
    }
}

impl EventSink for Collectors {
    fn accept(&mut self, delivery: &Delivery, symbols: &SymbolTable) -> Result<(), SinkError> {
        for member in &mut self.members {
            member.accept(delivery, symbols);
        }
        Ok(())
    }

    fn lost(&mut self, kind: usize, rows: u64) -> Result<(), SinkError> {
        for member in &mut self.members {
            member.lost(kind, rows);
        }
        Ok(())
    }

    fn tick(&mut self) {
        self.members.iter_mut().for_each(Member::tick);
    }
}

/// Finds the plugins of a run: requested ones in their order, then the built-in ones.
pub(super) fn find(requests: &Requests, policy: &Policy) -> Result<Vec<Found>, PluginError> {
    let admission = Admission::new(policy)?;
    let mut all: Vec<Found> = Vec::new();
    for target in &requests.plugins {
        let found = admission.find(target)?;
        if let Some(first) = all.iter().find(|other| other.manifest.id == found.manifest.id) {
            let (id, first, second) = (found.manifest.id.clone(), first.place(), found.place());
            return Err(PluginError::Twice { id, first, second });
        }
        admission.permit(&found)?;
        if found.manifest.is_probe() && requests.replay {
            return Err(PluginError::ProbeInReplay(found.manifest.id));
        }
        if found.manifest.is_probe() && found.door() != Door::Dylib {
            return Err(PluginError::ProbeDoor(found.manifest.id));
        }
        all.push(found);
    }
    if requests.defaults {
        for id in admission.registry.builtin_ids() {
            if all.iter().all(|other| other.manifest.id != id) {
                let found = admission.registry.find(id)?;
                admission.check_lock(&found)?;
                all.push(found);
            }
        }
    }
    let running = || all.iter().map(|found| found.manifest.id.clone());
    match requests
        .config
        .keys()
        .find(|id| running().all(|other| other != **id))
    {
        Some(id) => Err(PluginError::StrayConfig {
            id: id.clone(),
            running: running().collect(),
        }),
        None => Ok(all),
    }
}

/// The configuration of a plugin: the user's own over that of its pack.
pub(super) fn configuration(found: &Found, requests: &Requests) -> serde_json::Value {
    let mut config = match &found.pack {
        Some(pack) => pack.config.clone(),
        None => serde_json::Map::new(),
    };
    config.extend(
        requests
            .config
            .get(&found.manifest.id)
            .cloned()
            .unwrap_or_default(),
    );
    config.into()
}

/// Loads code through the doors.
pub(super) struct Loader<'a> {
    policy: &'a Policy,
    clock: Clock,
    engine: Option<WasmEngine>,
}

impl<'a> Loader<'a> {
    /// Prepares for what was found. The WASM engine comes before all native code, because it installs signal
    /// handlers.
    pub(super) fn new(found: &[Found], policy: &'a Policy) -> Result<Self, PluginError> {
        let any = found.iter().any(|found| matches!(found.code, Code::Wasm(..)));
        let engine = any
            .then(|| WasmEngine::new(&policy.limits, mode(policy), cache_folder(policy)))
            .transpose();
        let engine = engine.map_err(PluginError::Runtime)?;
        Ok(Self {
            policy,
            clock: Clock::start(),
            engine,
        })
    }

    fn load(&self, found: Found, requests: &Requests) -> Result<Member, PluginError> {
        let config = configuration(&found, requests);
        let limits = &self.policy.limits;
        let session = self.session(&found)?;
        if config.to_string().len() > limits.config_bytes {
            let message = format!("its configuration has more than {} bytes", limits.config_bytes);
            return Err(config_error(&found, message));
        }
        let isolated = matches!(found.code, Code::Dylib(..)) && !self.policy.in_process;
        let setup = Setup {
            isolated,
            found,
            session,
            config,
            limits: limits.clone(),
            deterministic: self.policy.deterministic,
        };
        Ok(Member::new(setup, self.clock.clone()))
    }

    pub(super) fn session(&self, found: &Found) -> Result<Box<dyn Session>, PluginError> {
        let limits = &self.policy.limits;
        let log = match self.policy.deterministic {
            true => LogBook::timeless(limits),
            false => LogBook::new(limits, self.clock.clone()),
        };
        let host = HostSide::new(log);
        Ok(match (&found.code, &self.engine) {
            (Code::Builtin(builtin), _) => Box::new(BuiltinSession::new(builtin, limits, host)),
            (Code::Dylib(file, facts), _) => {
                self.native(file, facts, host)
                    .map_err(|error| PluginError::Library {
                        path: file.path.clone(),
                        error,
                    })?
            }
            (Code::Wasm(file, _), Some(engine)) => {
                let loaded = WasmSession::load(engine, &file.bytes, limits, host);
                Box::new(loaded.map_err(|error| PluginError::Component {
                    path: file.path.clone(),
                    error,
                })?)
            }
            (Code::Wasm(..), None) => {
                return Err(PluginError::Runtime(
                    "no engine for WebAssembly was prepared".to_owned(),
                ));
            }
        })
    }
}

impl Loader<'_> {
    fn native(
        &self,
        file: &PluginFile,
        facts: &LibraryFacts,
        host: HostSide,
    ) -> Result<Box<dyn Session>, LibraryError> {
        let Policy { limits, program, .. } = self.policy;
        if self.policy.in_process {
            let sealed = Sealed::of(&file.bytes, &file.sha256)?;
            let session = DylibSession::load(sealed, facts, limits, host)?;
            return Ok(Box::new(session));
        }
        let session = IsolatedSession::load(file, program.as_deref(), host, (limits, &self.clock))?;
        Ok(Box::new(session))
    }
}

/// What ends the calls of WASM plugins.
fn mode(policy: &Policy) -> WasmMode {
    match policy.deterministic {
        true => WasmMode::Fuel,
        false => WasmMode::Time,
    }
}

fn cache_folder(policy: &Policy) -> Result<PathBuf, String> {
    let own = || {
        user_folder("XDG_CACHE_HOME", ".cache", |name| std::env::var_os(name)).map(|base| base.join("wasm"))
    };
    policy
        .component_cache
        .clone()
        .or_else(own)
        .ok_or_else(|| "there is no home folder to keep it in".to_owned())
}

pub(super) fn config_error(found: &Found, message: String) -> PluginError {
    let (id, version) = (found.manifest.id.clone(), found.manifest.version.clone());
    PluginError::Config { id, version, message }
}

/// Takes a collector from loaded to open.
fn start(mut member: Member, run: &str, kinds: &KindTable, policy: &Policy) -> Result<Member, PluginError> {
    let refused = |member: &Member, failure: Failure| config_error(member.found(), failure.to_string());
    let subscription = member
        .subscribe(run)
        .map_err(|failure| refused(&member, failure))?;
    let Some(subscription) = subscription else {
        return Ok(member);
    };
    match resolve(&subscription, kinds, &policy.limits) {
        Ok(agreement) => member
            .open(run, agreement)
            .map_err(|failure| refused(&member, failure))?,
        Err(error @ Unresolved::Invalid(_)) => member.refuse(error.to_string()),
        Err(error) => {
            let (id, version) = (
                member.found().manifest.id.clone(),
                member.found().manifest.version.clone(),
            );
            return Err(PluginError::Unresolved { id, version, error });
        }
    }
    Ok(member)
}
