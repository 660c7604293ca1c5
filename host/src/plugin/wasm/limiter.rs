//! Limits of a guest's memory, and its account.

use wasmtime::{ResourceLimiter, Result};

/// Entries of all tables of a component; compiled Rust has some hundred functions behind pointers.
const TABLE_ENTRIES: usize = 100_000;
/// Core instances, memories and tables of a component; a component of one module has about four.
const OBJECTS: usize = 64;

/// Counts memory over all of a component's memories and refuses growth beyond the limit with a trap, which tells
/// it apart from a panic.
#[derive(Debug)]
pub(super) struct MemoryLimiter {
    limit: usize,
    now: usize,
    peak: usize,
    refused: Option<usize>,
    entries: usize,
}

impl MemoryLimiter {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            now: 0,
            peak: 0,
            refused: None,
            entries: 0,
        }
    }

    /// Most bytes held so far.
    pub(super) fn peak(&self) -> usize {
        self.peak
    }

    /// Bytes that the guest would have had with the growth that was refused.
    pub(super) fn refused(&self) -> Option<usize> {
        self.refused
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> Result<bool> {
        let wanted = (self.now - current.min(self.now)).saturating_add(desired);
        if wanted > self.limit {
            self.refused = Some(wanted);
            return Err(wasmtime::Error::msg("memory limit"));
        }
        self.now = wanted;
        self.peak = self.peak.max(wanted);
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> Result<bool> {
        let wanted = (self.entries - current.min(self.entries)).saturating_add(desired);
        if wanted > TABLE_ENTRIES {
            return Err(wasmtime::Error::msg(format!(
                "asked for tables of {wanted} entries where {TABLE_ENTRIES} are allowed"
            )));
        }
        self.entries = wanted;
        Ok(true)
    }

    fn instances(&self) -> usize {
        OBJECTS
    }

    fn tables(&self) -> usize {
        OBJECTS
    }

    fn memories(&self) -> usize {
        OBJECTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_counted_over_all_memories() {
        let mut limiter = MemoryLimiter::new(300);
        assert!(limiter.memory_growing(0, 100, None).expect("100 of 300"));
        assert!(limiter.memory_growing(0, 100, None).expect("200 of 300"));
        assert!(limiter.memory_growing(100, 200, None).expect("300 of 300"));
        limiter.memory_growing(200, 201, None).expect_err("301 of 300");
        assert_eq!((limiter.peak(), limiter.refused()), (300, Some(301)));
    }
}
