//! What all calls of the other checks took.

use std::time::Duration;

use crate::plugin::contract::subject::Subject;
use crate::plugin::contract::verdict::{Trouble, Verdict};

/// Ordinary and extraordinary streams alike leave the log within its limits.
pub(super) fn log(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    let seen = subject.seen.borrow();
    Ok(match &seen.log_refused {
        Some((refused, last)) => Verdict::fail(format!(
            "{refused} lines were refused, after {} lines in one run the last of which is {last:?}; {} lines per \
             second and {} bytes are allowed",
            seen.log_lines, subject.limits.log_lines_per_second, subject.limits.log_bytes
        )),
        None => Verdict::noted(format!("at most {} lines in a run", seen.log_lines)),
    })
}

/// No call took longer than its limit.
pub(super) fn time(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    let seen = subject.seen.borrow();
    if let Some(late) = &seen.late {
        return Ok(late.clone().into_verdict());
    }
    let ms = |time: &Duration| time.as_secs_f64() * 1e3;
    Ok(match &seen.slowest {
        None => Verdict::none("it was given no batch"),
        Some((took, _)) => Verdict::noted(format!(
            "slowest batch {:.1} ms of {}",
            ms(took),
            subject.limits.batch_ms
        )),
    })
}

/// No life took more memory than its limit.
pub(super) fn memory(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    const MIB: f64 = 1_048_576.0;
    let seen = subject.seen.borrow();
    if let Some(large) = &seen.large {
        return Ok(large.clone().into_verdict());
    }
    let limit = subject.limits.memory_bytes as f64 / MIB;
    Ok(match seen.memory {
        None => Verdict::none("it shares the memory of this program"),
        Some(peak) => Verdict::noted(format!("at most {:.1} MiB of {limit:.0}", peak as f64 / MIB)),
    })
}
