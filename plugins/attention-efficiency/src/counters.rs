//! Hardware counters of attention kernels, by the names that Nsight Compute gives them.

/// Share of time in which an SM had a resident warp.
pub(crate) const SM_ACTIVE: &str = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed";
/// Resident warps over the most that fit.
pub(crate) const WARPS_ACTIVE: &str = "sm__warps_active.avg.pct_of_peak_sustained_active";
/// Wavefronts of 128 bytes that read shared memory, and all of them for chips that do not tell reads apart.
const SHARED_READ: &str = "l1tex__data_pipe_lsu_wavefronts_mem_shared_cmd_read.sum";
const SHARED: &str = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum";
const WAVEFRONT_BYTES: f64 = 128.0;
const DRAM_READ: &str = "dram__bytes_read.sum";
const DURATION: &str = "gpu__time_duration.sum";

/// A mean over launches by their duration.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mean {
    pub(crate) launches: u64,
    sum: f64,
    weight: f64,
}

impl Mean {
    fn add(&mut self, value: f64, weight: f64) {
        self.launches += 1;
        self.sum += weight * value;
        self.weight += weight;
    }

    pub(crate) fn get(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }
}

/// The counters of one launch.
#[derive(Clone, Debug)]
struct Launch {
    kernel: String,
    number: u64,
    weight: f64,
    sm_active: Option<f64>,
    warps_active: Option<f64>,
    shared_read: Option<f64>,
    shared: Option<f64>,
    dram_read: Option<f64>,
    duration: Option<f64>,
}

/// Sums over launches; the counters of a launch follow each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    open: Option<Launch>,
    /// In per cent.
    pub(crate) sm_active: Mean,
    /// In per cent.
    pub(crate) warps_active: Mean,
    /// Launches that have bytes of shared memory and DRAM, and these.
    pub(crate) moved: u64,
    pub(crate) shared_bytes: f64,
    pub(crate) dram_bytes: f64,
}

impl Counters {
    /// Adds the value of a counter of a kernel's launch.
    pub(crate) fn add(&mut self, (kernel, number): (&str, u64), (name, value): (&str, f64), weight: f64) {
        let same = |open: &Launch| open.number == number && open.kernel == kernel;
        if !self.open.as_ref().is_some_and(same) {
            self.close();
            self.open = Some(Launch {
                kernel: kernel.to_owned(),
                number,
                weight,
                sm_active: None,
                warps_active: None,
                shared_read: None,
                shared: None,
                dram_read: None,
                duration: None,
            });
        }
        if let Some(launch) = self.open.as_mut().filter(|_| value.is_finite()) {
            match name {
                SM_ACTIVE => launch.sm_active = Some(value),
                WARPS_ACTIVE => launch.warps_active = Some(value),
                SHARED_READ => launch.shared_read = Some(value),
                SHARED => launch.shared = Some(value),
                DRAM_READ => launch.dram_read = Some(value),
                DURATION => launch.duration = Some(value),
                _ => {}
            }
        }
    }

    fn close(&mut self) {
        let Some(launch) = self.open.take() else {
            return;
        };
        let weight = launch.weight * launch.duration.unwrap_or(1.0);
        if let Some(percent) = launch.sm_active {
            self.sm_active.add(percent, weight);
        }
        if let Some(percent) = launch.warps_active {
            self.warps_active.add(percent, weight);
        }
        let shared = launch.shared_read.or(launch.shared);
        if let Some((shared, dram)) = shared.zip(launch.dram_read) {
            self.moved += 1;
            self.shared_bytes += launch.weight * shared * WAVEFRONT_BYTES;
            self.dram_bytes += launch.weight * dram;
        }
    }

    /// All launches, the one that is still open included.
    pub(crate) fn closed(&self) -> Self {
        let mut closed = self.clone();
        closed.close();
        closed
    }
}
