//! Processes that a plugin started and left behind. They are known by a variable of their environment, which each process
//! hands on: a process group can be left with one call.

use std::fs;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How often it is looked for processes that were started since the last look.
const ROUNDS: usize = 16;
/// Looks in a row that find nothing before there is taken to be nothing, and the time between them: a process that is
/// just being started has no environment yet.
const EMPTY_LOOKS: usize = 2;
const PAUSE: Duration = Duration::from_millis(2);

/// Kills each process of this user whose environment holds `name=value`. What gave itself another environment is not
/// found.
pub(super) fn kill(name: &str, value: &str) {
    let entry = format!("{name}={value}");
    let mut empty = 0;
    for _ in 0..ROUNDS {
        if kill_once(entry.as_bytes()) {
            empty = 0;
        } else {
            empty += 1;
            if empty == EMPTY_LOOKS {
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

/// Whether any was found.
fn kill_once(entry: &[u8]) -> bool {
    let Ok(all) = fs::read_dir("/proc") else {
        return false;
    };
    let numbers = all.filter_map(|process| process.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter(|&number| kill_if(number, entry)).count() > 0
}

fn kill_if(number: i32, entry: &[u8]) -> bool {
    // Held before its environment is read: the number cannot come to mean another process in between.
    let held = Pid::from_raw(number).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let Some(process) = held else {
        return false;
    };
    // Unreadable where it belongs to another user; empty where it is dead.
    let environment = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
    environment
        .split(|&byte| byte == 0)
        .any(|variable| variable == entry)
        && pidfd_send_signal(&process, Signal::KILL).is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_known_by_its_mark_alone() {
        let value = format!("test.{}", std::process::id());
        let start = |value: &str| {
            let mut command = Command::new("sleep");
            command.arg("600").env("LM_BENCH_TEST_MARK", value);
            command.spawn().expect("a process")
        };
        let (mut marked, mut other) = (start(&value), start(&format!("{value}0")));
        for child in [&marked, &other] {
            // A child that was started is not yet one that has its environment.
            while fs::read(format!("/proc/{}/environ", child.id())).is_ok_and(|text| text.is_empty()) {
                thread::sleep(PAUSE);
            }
        }
        kill("LM_BENCH_TEST_MARK", &value);
        let ended = marked.wait().expect("waited for");
        assert_eq!(ended.signal(), Some(9));
        assert!(
            other.try_wait().expect("looked at").is_none(),
            "another one was killed"
        );
        other.kill().expect("killed");
        other.wait().expect("waited for");
    }
}
