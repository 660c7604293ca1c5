//! The process of a plugin: loads one library and answers calls until it is told no more.

use std::io;
use std::os::unix::net::UnixStream;

use lm_bench_plugin::{Batch, LogLevel};

use super::columns::MappedColumns;
use super::confine::{self, PeakMemory};
use super::wire::{Answer, BatchHead, Call, HELLO, Reply, receive, receive_bytes, send};
use crate::clock::Clock;
use crate::plugin::dylib::{self, DylibProbe, DylibSession, Sealed};
use crate::plugin::failure::Failure;
use crate::plugin::gather::Report;
use crate::plugin::limits::Limits;
use crate::plugin::log::LogBook;
use crate::plugin::probes::ProbeSession as _;
use crate::plugin::session::{HostSide, Session as _};

/// Serves one native plugin to the program that started this one, over standard input and output, until that ends.
///
/// # Errors
/// When standard input is not the socket that it should be, or the host sends what cannot be read.
pub fn serve() -> io::Result<()> {
    confine::die_with_parent()?;
    let ends = confine::take_ends()?;
    let mut child = Child {
        control: ends.control,
        columns: MappedColumns::new(ends.columns),
        plugin: None,
    };
    send(&mut child.control, &HELLO)?;
    loop {
        match receive(&mut child.control, u32::MAX as usize) {
            Ok(call) => child.answer(call)?,
            // The host is done with the plugin.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

struct Child {
    control: UnixStream,
    columns: MappedColumns,
    plugin: Option<Plugin>,
}

struct Plugin {
    code: Code,
    logged: usize,
    refused: u64,
    peak: Option<PeakMemory>,
}

/// What the library is.
enum Code {
    Collector(DylibSession),
    Probe(DylibProbe),
}

impl Code {
    fn host(&mut self) -> &mut HostSide {
        match self {
            Self::Collector(session) => session.host(),
            Self::Probe(probe) => probe.host(),
        }
    }
}

impl Child {
    fn answer(&mut self, call: Call) -> io::Result<()> {
        // Reading it takes longer than many a batch.
        let weigh = !matches!(call, Call::Batch(_) | Call::ProbeSample);
        let result = match call {
            Call::Load {
                limits,
                sha256,
                process,
            } => {
                let bytes = receive_bytes(&mut self.control, limits.library_bytes as usize)?;
                self.load(bytes, &sha256, (&limits, process))
            }
            Call::Symbols(texts) => {
                if let Some(plugin) = self.plugin.as_mut() {
                    plugin.code.host().learn_texts(&texts);
                }
                return Ok(());
            }
            call => self.call(call),
        };
        let (log, log_refused) = self
            .plugin
            .as_mut()
            .map_or_else(Default::default, Plugin::new_log);
        let peak = self
            .plugin
            .as_ref()
            .and_then(|plugin| plugin.peak)
            .filter(|_| weigh);
        let answer = Answer {
            result,
            log,
            log_refused,
            peak_memory: peak.and_then(|peak| peak.bytes(self.columns.resident())),
        };
        send(&mut self.control, &answer)
    }

    fn load(&mut self, bytes: Vec<u8>, sha256: &str, limits: (&Limits, u64)) -> Result<Reply, Failure> {
        if self.plugin.is_some() {
            return Err(Failure::contract("it was loaded twice"));
        }
        match loaded(bytes, sha256, limits) {
            Ok(plugin) => {
                self.plugin = Some(plugin);
                Ok(Reply::Done)
            }
            Err(text) => Ok(Reply::NotLoaded(text)),
        }
    }

    fn call(&mut self, call: Call) -> Result<Reply, Failure> {
        let Some(plugin) = self.plugin.as_mut() else {
            return Err(Failure::contract("it was called before it was loaded"));
        };
        match &mut plugin.code {
            Code::Collector(session) => collector_call(session, &mut self.columns, call),
            Code::Probe(probe) => probe_call(probe, call),
        }
    }
}

fn probe_call(probe: &mut DylibProbe, call: Call) -> Result<Reply, Failure> {
    match call {
        Call::Describe => probe.describe().map(Reply::Text),
        Call::ProbeOpen { config, run } => probe.open(&config, &run).map(|()| Reply::Done),
        Call::ProbeStart => probe.start().map(|()| Reply::Done),
        Call::ProbeSample => probe.sample().map(Reply::Sample),
        Call::ProbeStop => probe.stop().map(|()| Reply::Done),
        _ => Err(Failure::contract("a probe has no such call")),
    }
}

fn collector_call(
    session: &mut DylibSession,
    columns: &mut MappedColumns,
    call: Call,
) -> Result<Reply, Failure> {
    match call {
        Call::Load { .. } | Call::Symbols(_) => Err(Failure::contract("it is answered elsewhere")),
        Call::Describe => session.describe().map(Reply::Text),
        Call::Subscribe { config, run } => session.subscribe(&config, &run).map(Reply::Subscription),
        Call::Open {
            config,
            run,
            resolved,
        } => session.open(&config, &run, &resolved).map(|()| Reply::Done),
        Call::Batch(head) => on_batch(session, columns, &head).map(|()| Reply::Done),
        Call::LostAfter { kind, rows } => session.lost_after(kind, rows).map(|()| Reply::Done),
        Call::Checkpoint => session.checkpoint().and_then(metrics),
        Call::Finish => session.finish().and_then(metrics),
        _ => Err(Failure::contract("a collector has no such call")),
    }
}

/// Loads a library, once all that this program needs for it is done and before any of the library's code runs.
fn loaded(bytes: Vec<u8>, sha256: &str, (limits, process): (&Limits, u64)) -> Result<Plugin, String> {
    let facts = dylib::inspect(&bytes, limits).map_err(|error| error.to_string())?;
    let sealed = Sealed::of(&bytes, sha256).map_err(|error| error.to_string())?;
    // The plugin's memory is counted from here on.
    drop(bytes);
    let peak = PeakMemory::start();
    confine::confine(limits.memory_bytes)
        .map_err(|error| format!("its process cannot be confined: {error}"))?;
    let host = HostSide::new(LogBook::new(limits, Clock::start()));
    let code = if facts.manifest.is_probe() {
        DylibProbe::load(sealed, &facts, (limits, process), host).map(Code::Probe)
    } else {
        DylibSession::load(sealed, &facts, limits, host).map(Code::Collector)
    };
    Ok(Plugin {
        code: code.map_err(|error| error.to_string())?,
        logged: 0,
        refused: 0,
        peak,
    })
}

fn metrics(report: Report) -> Result<Reply, Failure> {
    report.into_metrics().map(Reply::Metrics)
}

fn on_batch(
    session: &mut DylibSession,
    columns: &mut MappedColumns,
    head: &BatchHead,
) -> Result<(), Failure> {
    let columns = columns
        .get(&head.columns)
        .map_err(|error| Failure::contract(format!("the batch cannot be read: {error}")))?;
    session.on_batch(&Batch {
        kind: head.kind,
        seq: head.seq,
        rows: head.rows,
        weight: head.weight,
        lost_before: head.lost_before,
        columns: &columns,
    })
}

impl Plugin {
    /// What was logged since the last answer, and how many lines were refused.
    fn new_log(&mut self) -> (Vec<(LogLevel, String)>, u64) {
        let log = &self.code.host().log;
        let lines = log.lines()[self.logged..]
            .iter()
            .map(|line| (line.level, line.text.clone()))
            .collect();
        let refused = log.refused() - self.refused;
        (self.logged, self.refused) = (log.lines().len(), log.refused());
        (lines, refused)
    }
}
