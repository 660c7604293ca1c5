//! Latencies of requests from their phase changes, and gaps between chunks.

use std::collections::BTreeMap;

use lm_bench_plugin::Fault;
use lm_bench_plugin::kinds::request_phase as phase;

use crate::durations::Durations;

/// The clocks of a request that has not ended.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    due: Option<u64>,
    sent: Option<u64>,
    first: Option<u64>,
    last: Option<u64>,
    output_tokens: u32,
}

/// A latency measured from two starts.
#[derive(Clone, Debug, Default)]
pub(crate) struct FromBoth {
    pub(crate) due: Durations,
    pub(crate) sent: Durations,
}

/// A phase change of a request.
pub(crate) struct Change {
    pub(crate) id: u64,
    pub(crate) phase: u8,
    pub(crate) t_ns: u64,
    pub(crate) output_tokens: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    open: BTreeMap<u64, Open>,
    pub(crate) ttft: FromBoth,
    pub(crate) e2e: FromBoth,
    pub(crate) tpot: Durations,
}

impl Requests {
    pub(crate) fn add(&mut self, change: &Change) -> Result<(), Fault> {
        let request = self.open.entry(change.id).or_default();
        request.output_tokens = request.output_tokens.max(change.output_tokens);
        match change.phase {
            phase::DUE => request.due = Some(change.t_ns),
            phase::SENT => request.sent = Some(change.t_ns),
            phase::FIRST_TOKEN => request.first = Some(change.t_ns),
            phase::LAST_CONTENT => request.last = Some(change.t_ns),
            phase::FINISHED | phase::FAILED | phase::CANCELLED => {
                let ended = self.open.remove(&change.id).unwrap_or_default();
                if change.phase == phase::FINISHED {
                    self.finish(change.id, &ended)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Records what the clocks of a finished request allow; after lost rows some may be missing.
    fn finish(&mut self, id: u64, request: &Open) -> Result<(), Fault> {
        let Open {
            due,
            sent,
            first,
            last,
            output_tokens,
        } = *request;
        for (from, to, into) in [
            (due, first, &mut self.ttft.due),
            (sent, first, &mut self.ttft.sent),
            (due, last, &mut self.e2e.due),
            (sent, last, &mut self.e2e.sent),
        ] {
            if let Some((from, to)) = from.zip(to) {
                into.record(elapsed(id, from, to)?);
            }
        }
        if let Some((first, last)) = first.zip(last)
            && output_tokens > 1
        {
            self.tpot
                .record(elapsed(id, first, last)? / u64::from(output_tokens - 1));
        }
        Ok(())
    }
}

fn elapsed(id: u64, from: u64, to: u64) -> Result<u64, Fault> {
    to.checked_sub(from).ok_or_else(|| {
        Fault::data(format!(
            "request {id}: an event of {to} ns follows one of {from} ns"
        ))
    })
}

/// Requests with chunks after which one without a chunk may be forgotten.
const REMEMBERED: usize = 1 << 16;

/// Gaps between successive chunks of each request.
///
/// Rows of different kinds come in no order, so the end of a request says nothing about which chunks are still to come. A
/// request is remembered until at least [`REMEMBERED`] others have had chunks since its last one; at most twice as many are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gaps {
    /// Number and arrival of the last chunk by request, of the requests that had one lately.
    recent: BTreeMap<u64, (u32, u64)>,
    /// The same of those before.
    earlier: BTreeMap<u64, (u32, u64)>,
    pub(crate) gaps: Durations,
}

impl Gaps {
    /// Adds the arrival of a chunk. A gap over a chunk that was lost is not counted.
    pub(crate) fn add(&mut self, request: u64, chunk: u32, t_ns: u64) -> Result<(), Fault> {
        let last = match self.recent.insert(request, (chunk, t_ns)) {
            None => self.earlier.remove(&request),
            last => last,
        };
        if self.recent.len() == REMEMBERED {
            self.earlier = std::mem::take(&mut self.recent);
        }
        if let Some((before, from)) = last
            && before.checked_add(1) == Some(chunk)
        {
            self.gaps.record(elapsed(request, from, t_ns)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_without_chunks_are_forgotten_and_those_of_late_count() {
        let mut gaps = Gaps::default();
        let most = REMEMBERED as u64;
        // The chunk before comes 100 requests earlier, so that it is often on the other side of a change.
        for request in 0..5 * most {
            gaps.add(request, 0, request).expect("in order");
            if let Some(before) = request.checked_sub(100) {
                gaps.add(before, 1, request).expect("in order");
            }
            assert!(gaps.recent.len() < REMEMBERED && gaps.earlier.len() <= REMEMBERED);
        }
        assert_eq!(gaps.gaps.len(), 5 * most - 100);
        // Long forgotten: counted as a first chunk, and forgotten again.
        gaps.add(7, 2, u64::MAX).expect("nothing to compare with");
        assert_eq!(gaps.gaps.len(), 5 * most - 100);
        for request in 0..2 * most {
            gaps.add(9 * most + request, 0, 0).expect("in order");
        }
        assert!(!gaps.recent.contains_key(&7) && !gaps.earlier.contains_key(&7));
    }
}
