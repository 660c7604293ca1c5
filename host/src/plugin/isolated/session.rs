//! A library in a process of its own as a session.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lm_bench_plugin::{Batch, LogLevel, MetricSink as _, Resolved, Subscription};

use super::columns::SharedColumns;
use super::process::Process;
use super::wire::{Answer, BatchHead, Call, HELLO, Reply, SMALL_FRAME, receive, send, send_bytes};
use crate::clock::Clock;
use crate::plugin::dylib::LibraryError;
use crate::plugin::failure::{Failure, one_line};
use crate::plugin::file::PluginFile;
use crate::plugin::gather::Report;
use crate::plugin::limits::Limits;
use crate::plugin::session::{HostSide, Session};

/// Bytes of symbols that are told in one message. A single symbol may have more.
const SYMBOL_BYTES: usize = SMALL_FRAME / 4;

/// A native plugin in a process of its own.
#[derive(Debug)]
pub(crate) struct IsolatedSession {
    process: Process,
    columns: SharedColumns,
    pub(super) host: HostSide,
    /// Number of symbols that the child knows.
    symbols: usize,
    pub(super) limits: Limits,
    /// Most memory that the plugin may hold, with the pages of its library.
    memory_limit: usize,
    peak_memory: Option<u64>,
    /// What the library's own code did while it was loaded: the first call fails with it.
    failed: Option<Failure>,
}

impl IsolatedSession {
    /// Starts a process and has it load a library whose file was inspected. `program` is this program; by default the
    /// file that runs now. A library whose constructors crash, loop or leave is loaded as far as this goes, and fails at
    /// its first call.
    ///
    /// # Errors
    /// When the process cannot be started, or the library is refused there.
    pub(crate) fn load(
        file: &PluginFile,
        program: Option<&Path>,
        host: HostSide,
        (limits, clock): (&Limits, &Clock),
    ) -> Result<Self, LibraryError> {
        let no_process = |error| LibraryError::Process(format!("no process can be started for it: {error}"));
        // The path names the running file even when another one has been put in its place.
        let program = program.map_or_else(|| PathBuf::from("/proc/self/exe"), Path::to_owned);
        let columns = SharedColumns::new().map_err(no_process)?;
        let process = Process::start(&program, &columns, clock).map_err(no_process)?;
        let mut session = Self {
            process,
            columns,
            host,
            symbols: 0,
            limits: limits.clone(),
            memory_limit: limits.memory_bytes,
            peak_memory: None,
            failed: None,
        };
        session.load_library(file)?;
        Ok(session)
    }

    fn load_library(&mut self, file: &PluginFile) -> Result<(), LibraryError> {
        let failed = |failure: Failure| LibraryError::Process(failure.to_string());
        let limit = self.limits.call_time();
        let hello = self
            .process
            .exchange(limit, |line| receive::<String>(line, HELLO.len() * 2));
        let hello = hello.map_err(failed)?;
        if hello != HELLO {
            let text = format!("its process runs another program ({hello:?})");
            return Err(LibraryError::Process(text));
        }
        let call = Call::Load {
            limits: Box::new(self.limits.clone()),
            sha256: file.sha256.clone(),
            process: u64::from(std::process::id()),
        };
        // Pages of a mapped library count as memory when they are used.
        self.memory_limit = self.limits.memory_bytes.saturating_add(file.bytes.len());
        let most = self.most_answer_bytes();
        let answer = self.process.exchange(limit, |line| {
            send(line, &call)?;
            send_bytes(line, &file.bytes)?;
            receive(line, most)
        });
        match answer.and_then(|answer| self.take(answer)) {
            Ok(Reply::NotLoaded(text)) => Err(LibraryError::Process(text)),
            Ok(_) => Ok(()),
            // From here on the library's code may have run.
            Err(failure) => {
                self.failed = Some(while_loading(failure));
                Ok(())
            }
        }
    }

    fn most_answer_bytes(&self) -> usize {
        SMALL_FRAME + self.limits.report_bytes + self.limits.log_bytes
    }

    pub(super) fn call(&mut self, call: &Call, limit: Duration) -> Result<Reply, Failure> {
        if let Some(failure) = self.failed.take() {
            return Err(failure);
        }
        let most = self.most_answer_bytes();
        let answer = self.process.exchange(limit, |line| {
            send(line, call)?;
            receive(line, most)
        })?;
        self.take(answer)
    }

    /// Takes one answer. The limits hold for what the child says too: the plugin's code may speak for it.
    fn take(&mut self, answer: Answer) -> Result<Reply, Failure> {
        for (level, text) in &answer.log {
            self.host.log.relay(*level, text);
        }
        self.host.log.refuse(answer.log_refused);
        self.peak_memory = self.peak_memory.max(answer.peak_memory);
        match self.peak_memory {
            Some(peak) if peak > self.memory_limit as u64 => Err(Failure::MemoryLimit {
                wanted: peak as usize,
                limit: self.memory_limit,
            }),
            _ => answer.result,
        }
    }

    /// Tells the child the symbols that are new, in pieces that fit into a message.
    fn tell_symbols(&mut self) -> Result<(), Failure> {
        let new = self.host.texts_from(self.symbols);
        let told = new.len();
        let mut pieces = Vec::new();
        let mut piece: Vec<String> = Vec::new();
        let mut bytes = 0;
        for text in new {
            bytes += text.len() + size_of::<u64>();
            if bytes > SYMBOL_BYTES && !piece.is_empty() {
                pieces.push(Call::Symbols(std::mem::take(&mut piece)));
                bytes = text.len();
            }
            piece.push(text.as_ref().to_owned());
        }
        if !piece.is_empty() {
            pieces.push(Call::Symbols(piece));
        }
        self.symbols += told;
        let limit = self.limits.call_time();
        self.process.exchange(limit, |line| {
            pieces.iter().try_for_each(|piece| send(line, piece))
        })
    }

    pub(super) fn done(&mut self, call: &Call, limit: Duration) -> Result<(), Failure> {
        match self.call(call, limit)? {
            Reply::Done => Ok(()),
            _ => Err(unexpected()),
        }
    }

    fn report(&mut self, call: &Call) -> Result<Report, Failure> {
        let Reply::Metrics(metrics) = self.call(call, self.limits.call_time())? else {
            return Err(unexpected());
        };
        let mut report = Report::new(&self.limits);
        metrics.into_iter().for_each(|metric| report.metric(metric));
        Ok(report)
    }
}

/// A failure that says that no function of the contract was called yet.
fn while_loading(failure: Failure) -> Failure {
    match failure {
        Failure::Died(text) => Failure::Died(format!("while it was loaded, {text}")),
        failure => failure,
    }
}

pub(super) fn unexpected() -> Failure {
    Failure::contract("its process gave an answer to another call")
}

impl Session for IsolatedSession {
    fn describe(&mut self) -> Result<String, Failure> {
        match self.call(&Call::Describe, self.limits.call_time())? {
            Reply::Text(text) => Ok(text),
            _ => Err(unexpected()),
        }
    }

    fn subscribe(&mut self, config: &str, run: &str) -> Result<Subscription, Failure> {
        let (config, run) = (config.to_owned(), run.to_owned());
        match self.call(&Call::Subscribe { config, run }, self.limits.call_time())? {
            Reply::Subscription(subscription) => Ok(subscription),
            _ => Err(unexpected()),
        }
    }

    fn open(&mut self, config: &str, run: &str, resolved: &Resolved) -> Result<(), Failure> {
        let call = Call::Open {
            config: config.to_owned(),
            run: run.to_owned(),
            resolved: resolved.clone(),
        };
        self.done(&call, self.limits.call_time())
    }

    fn on_batch(&mut self, batch: &Batch<'_>) -> Result<(), Failure> {
        self.tell_symbols()?;
        let columns = self
            .columns
            .put(batch.columns)
            .map_err(|error| Failure::Died(format!("its columns cannot be written: {error}")))?;
        let head = BatchHead {
            kind: batch.kind,
            seq: batch.seq,
            rows: batch.rows,
            weight: batch.weight,
            lost_before: batch.lost_before,
            columns,
        };
        self.done(&Call::Batch(head), self.limits.batch_time())
    }

    fn lost_after(&mut self, kind: u16, rows: u64) -> Result<(), Failure> {
        self.done(&Call::LostAfter { kind, rows }, self.limits.call_time())
    }

    fn checkpoint(&mut self) -> Result<Report, Failure> {
        self.report(&Call::Checkpoint)
    }

    fn finish(&mut self) -> Result<Report, Failure> {
        self.report(&Call::Finish)
    }

    fn host(&mut self) -> &mut HostSide {
        &mut self.host
    }

    fn peak_memory(&self) -> Option<u64> {
        self.peak_memory
    }

    fn interrupts(&self) -> bool {
        true
    }

    fn end(&mut self) {
        self.process.kill();
        for line in self.process.last_words().lines() {
            let line = one_line(line, self.limits.text_bytes);
            self.host.log.write(LogLevel::Info, &format!("printed: {line}"));
        }
    }
}
