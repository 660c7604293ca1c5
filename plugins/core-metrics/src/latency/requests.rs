//! Latencies of requests from their phase changes, and gaps between chunks.

use std::collections::{BTreeMap, VecDeque};

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

/// Ended requests whose last chunk is still remembered. Rows of different kinds come in no order, so tokens of a request
/// may follow its end; by the time that so many others have ended they are long there.
const ENDED: usize = 1 << 16;

/// Gaps between successive chunks of each request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gaps {
    last: BTreeMap<u64, (u32, u64)>,
    ended: VecDeque<u64>,
    pub(crate) gaps: Durations,
}

impl Gaps {
    /// Adds the arrival of a chunk. A gap over a chunk that was lost is not counted.
    pub(crate) fn add(&mut self, request: u64, chunk: u32, t_ns: u64) -> Result<(), Fault> {
        if let Some((before, from)) = self.last.insert(request, (chunk, t_ns))
            && before.checked_add(1) == Some(chunk)
        {
            self.gaps.record(elapsed(request, from, t_ns)?);
        }
        Ok(())
    }

    /// A request ended, however it did: it will be forgotten.
    pub(crate) fn end(&mut self, request: u64) {
        if self.ended.len() == ENDED
            && let Some(first) = self.ended.pop_front()
        {
            self.last.remove(&first);
        }
        self.ended.push_back(request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_ended_are_forgotten_and_late_tokens_still_count() {
        let mut gaps = Gaps::default();
        let most = ENDED as u64;
        for request in 0..most + 100 {
            gaps.add(request, 0, request).expect("in order");
            gaps.end(request);
            gaps.add(request, 1, request + 5).expect("in order");
        }
        assert_eq!(gaps.last.len(), ENDED);
        assert!(gaps.last.contains_key(&100) && !gaps.last.contains_key(&99));
        assert_eq!(gaps.gaps.len(), most + 100);
    }
}
