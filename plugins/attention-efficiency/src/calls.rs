//! Sums over attention calls.

/// One row of `attention`.
pub(crate) struct Call {
    pub(crate) weight: f64,
    pub(crate) flops: f64,
    pub(crate) bytes: f64,
    pub(crate) device_ns: u64,
    pub(crate) smem_bytes: u64,
    pub(crate) dram_bytes: u64,
}

/// The device's peaks per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Roof {
    pub(crate) flops: f64,
    pub(crate) bytes: f64,
}

/// Sums, each call counted by its weight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Calls {
    pub(crate) rows: u64,
    pub(crate) weight: f64,
    pub(crate) flops: f64,
    pub(crate) bytes: f64,
    pub(crate) seconds: f64,
    /// Least time that the peaks allow, for the calls one by one.
    pub(crate) least_seconds: f64,
    /// Calls that carry counters, and their bytes.
    pub(crate) counted: u64,
    pub(crate) smem_bytes: f64,
    pub(crate) dram_bytes: f64,
}

impl Calls {
    pub(crate) fn add(&mut self, call: &Call, roof: Option<Roof>) {
        let weight = call.weight;
        self.rows += 1;
        self.weight += weight;
        self.flops += weight * call.flops;
        self.bytes += weight * call.bytes;
        self.seconds += weight * call.device_ns as f64 / 1e9;
        if let Some(roof) = roof {
            self.least_seconds += weight * (call.flops / roof.flops).max(call.bytes / roof.bytes);
        }
        if call.smem_bytes > 0 && call.dram_bytes > 0 {
            self.counted += 1;
            self.smem_bytes += weight * call.smem_bytes as f64;
            self.dram_bytes += weight * call.dram_bytes as f64;
        }
    }

    pub(crate) fn of<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        parts.fold(Self::default(), |sum, part| Self {
            rows: sum.rows + part.rows,
            weight: sum.weight + part.weight,
            flops: sum.flops + part.flops,
            bytes: sum.bytes + part.bytes,
            seconds: sum.seconds + part.seconds,
            least_seconds: sum.least_seconds + part.least_seconds,
            counted: sum.counted + part.counted,
            smem_bytes: sum.smem_bytes + part.smem_bytes,
            dram_bytes: sum.dram_bytes + part.dram_bytes,
        })
    }
}
