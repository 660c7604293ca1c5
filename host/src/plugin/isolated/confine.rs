//! What the process of a plugin gives up before the plugin's first instruction runs.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use landlock::{
    ABI, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError,
    Scope,
};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit};
use rustix::stdio::{dup2_stdin, dup2_stdout};

/// The two ends that the process was started with.
pub(super) struct Ends {
    /// Calls come in here and answers go out.
    pub(super) control: UnixStream,
    /// Memory with the columns.
    pub(super) columns: File,
}

/// Takes over standard input and output. What a plugin prints afterwards goes where its errors go.
pub(super) fn take_ends() -> io::Result<Ends> {
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // Fails for anything that is not a socket: the command is not for people.
    control.peer_addr()?;
    let columns = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    dup2_stdin(OpenOptions::new().read(true).open("/dev/null")?)?;
    dup2_stdout(io::stderr())?;
    Ok(Ends { control, columns })
}

/// Ends with the program that started it, whatever the plugin does.
pub(super) fn die_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Limits memory to `memory_bytes` beyond what the process has now, forbids to write, make and remove files, to dump core and
/// to signal other processes.
pub(super) fn confine(memory_bytes: usize) -> io::Result<()> {
    let now = status_bytes("VmData").unwrap_or(0);
    lower(Resource::Data, now + memory_bytes as u64)?;
    lower(Resource::Fsize, 0)?;
    lower(Resource::Core, 0)?;
    leave_the_rest_alone().map_err(io::Error::other)
}

/// Takes away what the limit on file sizes leaves: to make empty files, to cut, move and remove files, and signals to
/// others. A kernel grants as much of it as it knows: files since Linux 5.13 (cutting 6.2), signals since 6.12.
fn leave_the_rest_alone() -> Result<(), RulesetError> {
    let rules = Ruleset::default()
        .handle_access(AccessFs::from_write(ABI::V6))?
        .scope(Scope::Signal)?
        .create()?;
    // Libraries of accelerators open their devices for writing.
    let rules = match PathFd::new("/dev") {
        Ok(devices) => rules.add_rule(PathBeneath::new(
            devices,
            AccessFs::WriteFile | AccessFs::IoctlDev,
        ))?,
        Err(_) => rules,
    };
    rules.restrict_self().map(|_| ())
}

fn lower(resource: Resource, to: u64) -> io::Result<()> {
    let before = getrlimit(resource);
    let to = before.maximum.map_or(to, |most| most.min(to));
    let limit = Rlimit {
        current: Some(to),
        maximum: Some(to),
    };
    Ok(setrlimit(resource, limit)?)
}

/// The memory that a plugin made this process hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeakMemory {
    before: u64,
}

impl PeakMemory {
    /// Starts to watch: the kernel's high-water mark begins anew.
    pub(super) fn start() -> Option<Self> {
        const RESET_HIGH_WATER_MARK: &str = "5";
        fs::write("/proc/self/clear_refs", RESET_HIGH_WATER_MARK).ok()?;
        Some(Self {
            before: status_bytes("VmRSS")?,
        })
    }

    /// Most memory since then that was resident at once, in bytes; memory that is `shared` with the host does not count.
    pub(super) fn bytes(self, shared: u64) -> Option<u64> {
        let peak = status_bytes("VmHWM")?;
        Some(peak.saturating_sub(self.before).saturating_sub(shared))
    }
}

/// A size of this process as the kernel gives it.
fn status_bytes(key: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    size_in(&status, key)
}

fn size_in(status: &str, key: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_by_their_whole_name() {
        let status = "Name:\tx\nVmPeak:\t  10 kB\nVmRSS:\t     2048 kB\nVmRSSx:\t1 kB\nThreads:\t1\n";
        assert_eq!(size_in(status, "VmRSS"), Some(2048 * 1024));
        assert_eq!(size_in(status, "VmR"), None);
        assert_eq!(size_in(status, "Threads"), None);
    }
}
