//! Memory of this process.

use std::path::Path;

use super::procfs::{kib_value, read};

/// Memory of the process in bytes; `None` where the kernel does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Resident set size now.
    pub rss: Option<u64>,
    /// Highest resident set size so far.
    pub peak_rss: Option<u64>,
    /// Proportional set size: pages shared by n processes count 1/n.
    pub pss: Option<u64>,
}

/// Reads `/proc/self`. The kernel walks the page tables for the proportional size, which takes about 1 ms per GiB of
/// small pages, so this belongs between timed parts, or into a sampler's thread.
pub fn memory() -> ProcessMemory {
    let text = |name: &str| read(&Path::new("/proc/self").join(name)).unwrap_or_default();
    ProcessMemory::parse(&text("status"), &text("smaps_rollup"))
}

impl ProcessMemory {
    /// Reads the texts of `/proc/<pid>/status` and `/proc/<pid>/smaps_rollup`.
    pub fn parse(status: &str, smaps_rollup: &str) -> Self {
        Self {
            rss: kib_value(status, "VmRSS"),
            peak_rss: kib_value(status, "VmHWM"),
            pss: kib_value(smaps_rollup, "Pss"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Captured from Linux 6.1, shortened.
    const STATUS: &str = "Name:\tcat\nUmask:\t0022\nVmPeak:\t    3928 kB\nVmSize:\t    3928 kB\nVmLck:\t       0 kB\nVmHWM:\t    1408 kB\nVmRSS:\t    1404 kB\nRssAnon:\t      88 kB\nThreads:\t1\n";
    const ROLLUP: &str = "55d8e0e5f000-7ffd3d9f7000 ---p 00000000 00:00 0                          [rollup]\nRss:                1432 kB\nPss:                 263 kB\nPss_Dirty:            92 kB\nPss_Anon:             92 kB\n";

    #[test]
    fn captured_texts_give_bytes() {
        let memory = ProcessMemory::parse(STATUS, ROLLUP);
        assert_eq!(
            memory,
            ProcessMemory {
                rss: Some(1404 * 1024),
                peak_rss: Some(1408 * 1024),
                pss: Some(263 * 1024)
            }
        );
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_none() {
        assert_eq!(
            ProcessMemory::parse("", "garbage\u{0}: x"),
            ProcessMemory::default()
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_memory() {
        let rss = memory().rss.unwrap();
        assert!(rss > 100 * 1024, "{rss}");
    }
}
