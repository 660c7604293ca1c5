//! The process of a plugin as the host holds it: spoken to with deadlines, and killed in the end.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::columns::SharedColumns;
use super::{PROCESS_COMMAND, wire};
use crate::clock::Clock;
use crate::plugin::failure::Failure;

/// What a plugin printed is kept up to this many bytes.
const PRINTED_BYTES: usize = 16 << 10;
/// How long the rest of what a dead plugin printed is waited for.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// Variables that a library may need to be found and to run; all others stay here.
const VARIABLES: &[&str] = &["LD_LIBRARY_PATH"];

/// A running child.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    control: UnixStream,
    clock: Clock,
    printed: Receiver<String>,
}

impl Process {
    /// Starts the process for one plugin.
    ///
    /// # Errors
    /// When the system cannot start it.
    pub(super) fn start(program: &Path, columns: &SharedColumns, clock: &Clock) -> io::Result<Self> {
        let (control, theirs) = UnixStream::pair()?;
        let variables = VARIABLES
            .iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?)));
        let mut child = Command::new(program)
            .arg(PROCESS_COMMAND)
            .env_clear()
            .envs(variables)
            .current_dir("/")
            // Ctrl-C in the terminal is for the host, which ends the plugin in order.
            .process_group(0)
            .stdin(OwnedFd::from(theirs))
            .stdout(columns.share()?)
            .stderr(Stdio::piped())
            .spawn()?;
        let printed = child.stderr.take().map(read_printed).transpose()?;
        let printed = printed.ok_or_else(|| io::Error::other("its output cannot be read"))?;
        Ok(Self {
            child,
            control,
            clock: clock.clone(),
            printed,
        })
    }

    /// Writes one frame to the child within `limit`.
    pub(super) fn send<T: Serialize>(&mut self, value: &T, limit: Duration) -> Result<(), Failure> {
        self.control
            .set_write_timeout(Some(limit))
            .and_then(|()| wire::send(&mut self.control, value))
            .map_err(|error| self.failed(&error, limit))
    }

    /// Writes one frame of bytes to the child within `limit`.
    pub(super) fn send_bytes(&mut self, bytes: &[u8], limit: Duration) -> Result<(), Failure> {
        self.control
            .set_write_timeout(Some(limit))
            .and_then(|()| wire::send_bytes(&mut self.control, bytes))
            .map_err(|error| self.failed(&error, limit))
    }

    /// Reads one frame of at most `most` bytes that ends within `limit` from now.
    pub(super) fn receive<T: DeserializeOwned>(
        &mut self,
        most: usize,
        limit: Duration,
    ) -> Result<T, Failure> {
        let mut reader = Deadline {
            stream: &self.control,
            clock: &self.clock,
            end_ns: self.clock.now_ns().saturating_add(limit.as_nanos() as u64),
        };
        let received = wire::receive(&mut reader, most);
        received.map_err(|error| self.failed(&error, limit))
    }

    /// Ends the child after a failed exchange, and says what happened to it.
    fn failed(&mut self, error: &io::Error, limit: Duration) -> Failure {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, InvalidData, TimedOut, UnexpectedEof, WouldBlock};
        match error.kind() {
            WouldBlock | TimedOut => {
                self.kill();
                Failure::TimeLimit(limit)
            }
            UnexpectedEof | BrokenPipe | ConnectionReset => {
                let status = self.child.wait();
                let end = status.map_or_else(|error| error.to_string(), how_it_ended);
                let printed = self.last_words();
                let printed = printed.lines().last().map(|line| format!("; it printed: {line}"));
                Failure::Died(format!("{end}{}", printed.unwrap_or_default()))
            }
            InvalidData => {
                self.kill();
                Failure::contract(format!("its process sent what cannot be read: {error}"))
            }
            _ => {
                self.kill();
                Failure::Died(format!("its process cannot be reached: {error}"))
            }
        }
    }

    /// Ends the child and what it started.
    pub(super) fn kill(&mut self) {
        // Gone already is as good.
        if let Some(group) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// What the plugin printed. The process has ended: this takes the text away.
    pub(super) fn last_words(&mut self) -> String {
        // Late or never: something that the plugin started still holds its output open.
        self.printed.recv_timeout(LAST_WORDS).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads from a stream until a point in time.
struct Deadline<'a> {
    stream: &'a UnixStream,
    clock: &'a Clock,
    end_ns: u64,
}

impl Read for Deadline<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = Duration::from_nanos(self.end_ns.saturating_sub(self.clock.now_ns()));
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}

/// Reads all that a child prints, so that it never waits for a reader, and keeps the beginning.
fn read_printed(mut from: ChildStderr) -> io::Result<Receiver<String>> {
    let (sender, receiver) = sync_channel(1);
    let read = move || {
        let mut kept = Vec::new();
        // An error ends it like the end does: there is no more to read.
        let _ = (&mut from).take(PRINTED_BYTES as u64).read_to_end(&mut kept);
        let _ = io::copy(&mut from, &mut io::sink());
        // Nobody waits when the run is over.
        let _ = sender.send(String::from_utf8_lossy(&kept).into_owned());
    };
    std::thread::Builder::new()
        .name("plugin-output".to_owned())
        .spawn(read)?;
    Ok(receiver)
}

fn how_it_ended(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => match signal_name(signal) {
            Some(name) => format!("its process was ended by {name}"),
            None => format!("its process was ended by signal {signal}"),
        },
        (None, Some(code)) => format!("it ended its process with exit status {code}"),
        (None, None) => format!("its process ended: {status}"),
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    let signal = Signal::from_named_raw(signal)?;
    Some(match signal {
        Signal::SEGV => "SIGSEGV: it used memory that it does not have, or recursed too deeply",
        Signal::BUS => "SIGBUS: it used memory that is not there",
        Signal::ABORT => {
            "SIGABRT: it aborted, as code does that runs out of memory or panics in a destructor"
        }
        Signal::ILL => "SIGILL: it ran an instruction that there is not",
        Signal::FPE => "SIGFPE: it divided by zero",
        Signal::XFSZ => "SIGXFSZ: it tried to write a file",
        Signal::KILL => "SIGKILL",
        Signal::TERM => "SIGTERM",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_trickle_of_bytes_does_not_stretch_the_deadline() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        let clock = Clock::fake();
        let mut reader = Deadline {
            stream: &ours,
            clock: &clock,
            end_ns: 1_000,
        };
        theirs.write_all(&[1, 2]).expect("written");
        let mut byte = [0];
        assert_eq!(reader.read(&mut byte).expect("in time"), 1);
        clock.advance(Duration::from_nanos(1_000));
        let late = reader
            .read(&mut byte)
            .expect_err("the second byte is there, but too late");
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn ends_are_told_in_words() {
        assert_eq!(
            how_it_ended(ExitStatus::from_raw(3 << 8)),
            "it ended its process with exit status 3"
        );
        assert!(how_it_ended(ExitStatus::from_raw(11)).contains("SIGSEGV"));
        assert!(how_it_ended(ExitStatus::from_raw(25)).contains("tried to write a file"));
        assert!(how_it_ended(ExitStatus::from_raw(60)).contains("signal 60"));
    }
}
