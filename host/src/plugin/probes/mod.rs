//! Probes: plugins that produce rows of kinds `vendor.NAME.KIND`, each on a thread of its own beside the engine.
//!
//! ```text
//! Found -> ProbeSession (in this process | in one of its own) -> Member (period, limits, account) -> RowRecorder
//! ```

mod outcome;
mod rows;
mod runner;
mod session;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use lm_bench_plugin::{KindDef, RunInfo};

pub use outcome::ProbeOutcome;
use rows::Intake;
use runner::Member;
pub(crate) use session::{ProbeRows, ProbeSession, Sample};

use super::collectors::{Requests, config_error, configuration, find};
use super::dylib::{DylibProbe, LibraryError, Sealed};
use super::error::PluginError;
use super::isolated::{IsolatedProbe, IsolatedSession};
use super::limits::{Limits, Policy};
use super::log::LogBook;
use super::registry::{Code, Found};
use super::session::HostSide;
use crate::clock::Clock;
use crate::events::{KindTable, RowRecorder};

/// The probes of a run that are open and have not started.
pub struct Probes {
    members: Vec<Member>,
    /// Accounts of those that failed while they were opened.
    failed: Vec<ProbeOutcome>,
    limits: Limits,
}

impl Probes {
    /// Finds, loads and opens the probes among the requested plugins.
    ///
    /// A probe that traps, panics or breaks the contract while it is opened is ended and part of the outcome: the run has
    /// none of its kinds.
    ///
    /// # Errors
    /// When one cannot be found or does not accept its configuration.
    pub fn load(requests: &Requests, run: &RunInfo, policy: &Policy) -> Result<Self, PluginError> {
        let clock = Clock::start();
        let run = serde_json::to_string(run).map_err(|error| PluginError::Runtime(error.to_string()))?;
        let mut probes = Self {
            members: Vec::new(),
            failed: Vec::new(),
            limits: policy.limits.clone(),
        };
        let found = find(requests, policy)?;
        for found in found.iter().filter(|found| found.manifest.is_probe()) {
            let config = configuration(found, requests);
            let text = config.to_string();
            let mut member = Member {
                session: session(found, policy, &clock)?,
                clock: clock.clone(),
                account: account(found, config, (requests.probe_period, policy.in_process)),
            };
            match member.timed(policy.limits.call_time(), |session| session.open(&text, &run)) {
                Ok(()) => probes.members.push(member),
                Err(failure) if failure.is_configuration() => {
                    return Err(config_error(found, failure.to_string()));
                }
                Err(failure) => {
                    member.account.faults.push(failure.to_string());
                    probes.failed.push(member.retire());
                }
            }
        }
        Ok(probes)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.failed.is_empty()
    }

    /// The kinds of a run with these probes.
    ///
    /// # Errors
    /// When two probes have a kind of the same name.
    pub fn kinds(&self) -> Result<KindTable, PluginError> {
        let kinds = self.members.iter().flat_map(|member| {
            let manifest = &member.account.manifest;
            manifest
                .kinds
                .iter()
                .map(|decl| rows::kind(decl, &manifest.version))
        });
        KindTable::with(kinds.collect::<Vec<KindDef>>()).map_err(PluginError::Kinds)
    }

    /// Starts to sample; each probe gets a recorder. A probe that gets no thread is ended.
    pub fn start(self, kinds: &KindTable, recorder: impl Fn() -> RowRecorder) -> RunningProbes {
        let limits = self.limits;
        let wait = limits.call_time() * 2 + limits.batch_time();
        let mut running = RunningProbes {
            threads: Vec::new(),
            ended: self.failed,
            wait,
        };
        for member in self.members {
            let declared = &member.account.manifest.kinds;
            let places = declared
                .iter()
                .filter_map(|decl| Some((decl.clone(), kinds.index(&decl.name)?)))
                .collect();
            let intake = Intake::new(places, recorder(), limits.clone());
            running.spawn(member, intake);
        }
        running
    }
}

/// Probes that sample.
pub struct RunningProbes {
    threads: Vec<Running>,
    ended: Vec<ProbeOutcome>,
    wait: Duration,
}

struct Running {
    /// The account as it was in the beginning.
    account: ProbeOutcome,
    stop: Sender<()>,
    outcome: Receiver<ProbeOutcome>,
}

impl RunningProbes {
    fn spawn(&mut self, member: Member, intake: Intake) {
        let (stop, stopped) = channel();
        let (tell, outcome) = channel();
        let mut account = member.account.clone();
        let run = move || {
            // Nobody waits any more when the probe came back too late.
            let _ = tell.send(member.run(intake, &stopped));
        };
        let thread = std::thread::Builder::new()
            .name("lm-bench-probe".to_owned())
            .spawn(run);
        match thread {
            // Not joined: one in this process that never comes back must not hold the run.
            Ok(_) => self.threads.push(Running {
                account,
                stop,
                outcome,
            }),
            Err(error) => {
                account
                    .faults
                    .push(format!("no thread can be started for it: {error}"));
                self.ended.push(account);
            }
        }
    }

    /// Ends sampling and gives the accounts, by id. All rows are recorded then, except those of a probe in this process
    /// that does not come back.
    pub fn stop(self) -> Vec<ProbeOutcome> {
        for running in &self.threads {
            // A probe that has failed has ended its thread.
            let _ = running.stop.send(());
        }
        let mut ended = self.ended;
        for running in self.threads {
            ended.push(running.outcome.recv_timeout(self.wait).unwrap_or_else(|_| {
                let mut account = running.account;
                let text = "did not come back from a call; its thread was left behind";
                account.faults.push(text.to_owned());
                account
            }));
        }
        ended.sort_by(|a, b| a.manifest.id.cmp(&b.manifest.id));
        ended
    }
}

fn account(found: &Found, config: serde_json::Value, (period, in_process): (Duration, bool)) -> ProbeOutcome {
    let file = found.file();
    ProbeOutcome {
        manifest: found.manifest.clone(),
        isolated: !in_process,
        path: file.map(|file| file.path.clone()),
        sha256: file.map(|file| file.sha256.clone()),
        config,
        period,
        samples: 0,
        late: 0,
        missed: 0,
        rows: 0,
        busy_ns: 0,
        longest_ns: 0,
        peak_memory: None,
        faults: Vec::new(),
        log: Vec::new(),
        log_refused: 0,
    }
}

/// Loads a probe's code.
///
/// # Errors
/// When it is no library, or cannot be loaded.
pub(super) fn session(
    found: &Found,
    policy: &Policy,
    clock: &Clock,
) -> Result<Box<dyn ProbeSession>, PluginError> {
    let Code::Dylib(file, facts) = &found.code else {
        return Err(PluginError::ProbeDoor(found.manifest.id.clone()));
    };
    let limits = &policy.limits;
    let host = HostSide::new(LogBook::new(limits, clock.clone()));
    let load = || -> Result<Box<dyn ProbeSession>, LibraryError> {
        if policy.in_process {
            let sealed = Sealed::of(&file.bytes, &file.sha256)?;
            let process = u64::from(std::process::id());
            return Ok(Box::new(DylibProbe::load(
                sealed,
                facts,
                (limits, process),
                host,
            )?));
        }
        let session = IsolatedSession::load(file, policy.program.as_deref(), host, (limits, clock))?;
        Ok(Box::new(IsolatedProbe::new(session)))
    };
    load().map_err(|error| PluginError::Library {
        path: file.path.clone(),
        error,
    })
}
