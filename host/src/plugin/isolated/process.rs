//! The process of a plugin as the host holds it: spoken to with deadlines, and killed in the end.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::columns::SharedColumns;
use super::{PROCESS_COMMAND, offspring};
use crate::clock::Clock;
use crate::plugin::failure::Failure;

/// What a plugin printed is kept up to this many bytes.
const PRINTED_BYTES: usize = 16 << 10;
/// How long the rest of what a dead plugin printed is waited for.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// Time between two looks at whether the process still lives. Something that it started may hold its end of the
/// connection open when it is dead.
const LOOK: Duration = Duration::from_millis(20);
/// How long a process that has closed its end of the connection may take to end by itself.
const GRACE: Duration = Duration::from_millis(200);
/// Variables that a library may need to be found and to run; all others stay here.
const VARIABLES: &[&str] = &["LD_LIBRARY_PATH"];
/// Variable by which the process and all that it starts are known.
const MARK: &str = "LM_BENCH_PLUGIN_PROCESS";

/// A running child.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    mark: String,
    control: UnixStream,
    clock: Clock,
    printed: Receiver<String>,
    ended: Option<ExitStatus>,
}

impl Process {
    /// Starts the process for one plugin.
    ///
    /// # Errors
    /// When the system cannot start it.
    pub(super) fn start(program: &Path, columns: &SharedColumns, clock: &Clock) -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let (control, theirs) = UnixStream::pair()?;
        let mark = format!(
            "{}.{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        let variables = VARIABLES
            .iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?)));
        let mut child = Command::new(program)
            .arg(PROCESS_COMMAND)
            .env_clear()
            .envs(variables)
            .env(MARK, &mark)
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
            mark,
            control,
            clock: clock.clone(),
            printed,
            ended: None,
        })
    }

    /// Exchanges messages with the child for at most `limit` in all.
    pub(super) fn exchange<T>(
        &mut self,
        limit: Duration,
        talk: impl FnOnce(&mut Line<'_>) -> io::Result<T>,
    ) -> Result<T, Failure> {
        let mut line = Line {
            stream: &self.control,
            child: Pid::from_child(&self.child),
            clock: &self.clock,
            end_ns: self.clock.now_ns().saturating_add(limit.as_nanos() as u64),
        };
        talk(&mut line).map_err(|error| self.failed(&error, limit))
    }

    /// Ends the child after a failed exchange, and says what happened to it.
    fn failed(&mut self, error: &io::Error, limit: Duration) -> Failure {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, InvalidData, TimedOut, UnexpectedEof};
        match error.kind() {
            TimedOut => {
                self.kill();
                Failure::TimeLimit(limit)
            }
            UnexpectedEof | BrokenPipe | ConnectionReset => {
                let by_itself = self.ends_by_itself();
                let status = self.kill();
                let end = if by_itself {
                    status.map_or_else(|| "its process ended".to_owned(), how_it_ended)
                } else {
                    "its process closed the connection to this program and went on".to_owned()
                };
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

    /// Whether the child is dead, or is so shortly.
    fn ends_by_itself(&self) -> bool {
        let end = self.clock.now_ns() + GRACE.as_nanos() as u64;
        loop {
            if is_dead(Pid::from_child(&self.child)) {
                return true;
            }
            if self.clock.now_ns() >= end {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends the child and what it started, and tells how it ended.
    pub(super) fn kill(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            // Before the child is waited for: until then nobody else can have its number.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.kill();
            self.ended = self.child.wait().ok();
            offspring::kill(MARK, &self.mark);
        }
        self.ended
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

/// Whether a child has ended. It can still be waited for afterwards.
fn is_dead(child: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // An error means that there is no such child any more.
    !matches!(waitid(WaitId::Pid(child), options), Ok(None))
}

/// The connection to a child until a point in time, or until the child is dead.
pub(super) struct Line<'a> {
    stream: &'a UnixStream,
    child: Pid,
    clock: &'a Clock,
    end_ns: u64,
}

impl Line<'_> {
    /// Repeats `step`, which waits for at most the time that it is given, until it succeeds.
    fn until_end(
        &mut self,
        mut step: impl FnMut(&UnixStream, Duration) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            let left = Duration::from_nanos(self.end_ns.saturating_sub(self.clock.now_ns()));
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            // Looked at before the step: what the child sent before it ended is still there to be read.
            let dead = is_dead(self.child);
            match step(self.stream, left.min(LOOK)) {
                Err(error) if is_wait(&error) && dead => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if is_wait(&error) => {}
                other => return other,
            }
        }
    }
}

fn is_wait(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

impl Read for Line<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.until_end(|mut stream, wait| {
            stream.set_read_timeout(Some(wait))?;
            stream.read(buffer)
        })
    }
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.until_end(|mut stream, wait| {
            stream.set_write_timeout(Some(wait))?;
            stream.write(bytes)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
    use super::*;

    /// A child that does nothing until it is killed.
    struct Sleeper(Child);

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn sleeper() -> Sleeper {
        Sleeper(Command::new("sleep").arg("600").spawn().expect("a process"))
    }

    #[test]
    fn a_trickle_of_bytes_does_not_stretch_the_deadline() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        let (clock, child) = (Clock::fake(), sleeper());
        let mut line = Line {
            stream: &ours,
            child: Pid::from_child(&child.0),
            clock: &clock,
            end_ns: 1_000,
        };
        theirs.write_all(&[1, 2]).expect("written");
        let mut byte = [0];
        assert_eq!(line.read(&mut byte).expect("in time"), 1);
        clock.advance(Duration::from_nanos(1_000));
        let late = line
            .read(&mut byte)
            .expect_err("the second byte is there, but too late");
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_dead_child_is_noticed_although_its_end_is_open_and_its_last_words_are_read() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        let (clock, mut child) = (Clock::start(), sleeper());
        theirs.write_all(&[7]).expect("written");
        child.0.kill().expect("killed");
        let mut line = Line {
            stream: &ours,
            child: Pid::from_child(&child.0),
            clock: &clock,
            end_ns: u64::MAX,
        };
        let mut byte = [0];
        assert_eq!((line.read(&mut byte).expect("read"), byte), (1, [7]));
        let end = line.read(&mut byte).expect_err("nothing more comes");
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
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
