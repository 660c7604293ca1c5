//! How much the processor's caches hold, so that a measurement of memory can be made larger.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Bytes of all caches of the last level together; `None` where the kernel does not tell.
pub(super) fn last_level_bytes() -> Option<usize> {
    read(Path::new("/sys/devices/system/cpu"))
}

fn read(cpus: &Path) -> Option<usize> {
    // A cache is listed below each processor that shares it.
    let mut caches: BTreeMap<(u32, String), usize> = BTreeMap::new();
    for cpu in fs::read_dir(cpus).ok()?.flatten() {
        let Ok(entries) = fs::read_dir(cpu.path().join("cache")) else {
            continue;
        };
        caches.extend(entries.flatten().filter_map(|entry| cache(&entry.path())));
    }
    let last = caches.keys().map(|(level, _)| *level).max()?;
    let of_last = caches.iter().filter(|((level, _), _)| *level == last);
    Some(of_last.map(|(_, bytes)| bytes).sum())
}

/// Level, processors that share it, and size of one cache.
fn cache(entry: &Path) -> Option<((u32, String), usize)> {
    let text = |name: &str| Some(fs::read_to_string(entry.join(name)).ok()?.trim().to_owned());
    let bytes = text("size")?
        .strip_suffix('K')?
        .parse::<usize>()
        .ok()?
        .checked_mul(1024)?;
    Some(((text("level")?.parse().ok()?, text("shared_cpu_list")?), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_caches_count_once_and_only_the_last_level_counts() {
        let root = tempfile::tempdir().expect("temporary folder");
        let write = |cpu: u32, index: u32, (level, size, shared): (&str, &str, &str)| {
            let folder = root.path().join(format!("cpu{cpu}/cache/index{index}"));
            fs::create_dir_all(&folder).expect("folder");
            for (name, text) in [("level", level), ("size", size), ("shared_cpu_list", shared)] {
                fs::write(folder.join(name), format!("{text}\n")).expect("write");
            }
        };
        // Two sockets of two processors; each socket has 32 MiB.
        for (cpu, socket) in [(0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3")] {
            write(cpu, 0, ("1", "48K", &cpu.to_string()));
            write(cpu, 3, ("3", "32768K", socket));
        }
        fs::create_dir_all(root.path().join("cpufreq")).expect("folder");
        assert_eq!(read(root.path()), Some(64 << 20));
        assert_eq!(read(&root.path().join("cpufreq")), None);
        assert_eq!(read(&root.path().join("absent")), None);
    }
}
