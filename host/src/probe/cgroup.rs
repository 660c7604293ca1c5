//! CPU and memory limits of the process's control groups, versions 1 and 2.

use std::path::{Component, Path, PathBuf};

use serde::Serialize;

use super::procfs::read;

/// What the control groups allow; `None` where they set no limit, or none that can be seen from here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CgroupLimits {
    /// CPU time per time: 1.5 stands for one and a half CPUs.
    pub cpus: Option<f64>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
}

/// Version 1 writes "no limit" as the largest multiple of the page size; nothing real comes near.
const UNLIMITED_BYTES: u64 = 1 << 60;

impl CgroupLimits {
    /// Reads the limits of this process below the given root, `/` on a real machine. The tightest limit of the
    /// process's group and the groups above it counts.
    pub fn read(root: &Path) -> Self {
        let mut limits = Self::default();
        let text = read(&root.join("proc/self/cgroup")).unwrap_or_default();
        let mounts = root.join("sys/fs/cgroup");
        for Membership { controllers, path } in memberships(&text) {
            let is = |name: &str| controllers.split(',').any(|controller| controller == name);
            for group in groups(path) {
                let file = |mount: &str, name: &str| read(&mounts.join(mount).join(&group).join(name));
                if controllers.is_empty() {
                    for mount in ["", "unified"] {
                        limits.tighten_cpus(file(mount, "cpu.max").as_deref().and_then(parse_cpu_max));
                        limits.tighten_memory(file(mount, "memory.max").as_deref().and_then(parse_bytes));
                    }
                }
                if is("cpu") {
                    for mount in ["cpu", controllers] {
                        let quota = file(mount, "cpu.cfs_quota_us");
                        let period = file(mount, "cpu.cfs_period_us");
                        limits.tighten_cpus(quota.zip(period).and_then(|(q, p)| parse_cfs(&q, &p)));
                    }
                }
                if is("memory") {
                    limits.tighten_memory(
                        file("memory", "memory.limit_in_bytes")
                            .as_deref()
                            .and_then(parse_bytes),
                    );
                }
            }
        }
        limits
    }

    fn tighten_cpus(&mut self, limit: Option<f64>) {
        self.cpus = match (self.cpus, limit) {
            (Some(have), Some(limit)) => Some(have.min(limit)),
            (have, limit) => have.or(limit),
        };
    }

    fn tighten_memory(&mut self, limit: Option<u64>) {
        self.memory_bytes = match (self.memory_bytes, limit) {
            (Some(have), Some(limit)) => Some(have.min(limit)),
            (have, limit) => have.or(limit),
        };
    }
}

/// A line of `/proc/self/cgroup`: `4:memory:/a/b`, or `0::/a/b` for version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Membership<'a> {
    controllers: &'a str,
    path: &'a str,
}

fn memberships(text: &str) -> impl Iterator<Item = Membership<'_>> {
    text.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        Some(Membership { controllers, path })
    })
}

/// A group and all above it, relative to the mount. A path that leads out of the visible tree, as a container may
/// have, stands for the mount itself.
fn groups(path: &str) -> Vec<PathBuf> {
    let mut group = PathBuf::new();
    let mut groups = vec![group.clone()];
    for component in Path::new(path).components() {
        match component {
            Component::Normal(name) => {
                group.push(name);
                groups.push(group.clone());
            }
            Component::ParentDir => return vec![PathBuf::new()],
            _ => {}
        }
    }
    groups
}

/// `max 100000` or `150000 100000`: microseconds per period.
fn parse_cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    parse_cfs(quota, period)
}

/// Version 1 has a quota of -1 for "no limit".
fn parse_cfs(quota: &str, period: &str) -> Option<f64> {
    let quota = quota.trim().parse::<u32>().ok()?;
    let period = period.trim().parse::<u32>().ok().filter(|&period| period > 0)?;
    Some(f64::from(quota) / f64::from(period))
}

fn parse_bytes(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|&bytes| bytes < UNLIMITED_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn version_2_takes_the_tightest_limit_on_the_way_up() {
        let root = tree(&[
            ("proc/self/cgroup", "0::/user.slice/job\n"),
            ("sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/user.slice/job/memory.max", "2147483648\n"),
            ("sys/fs/cgroup/user.slice/memory.max", "max\n"),
        ]);
        let limits = CgroupLimits::read(root.path());
        assert_eq!(
            limits,
            CgroupLimits {
                cpus: Some(1.5),
                memory_bytes: Some(2 << 30)
            }
        );
    }

    #[test]
    fn version_1_reads_joined_controllers_and_falls_back_to_the_mount() {
        let root = tree(&[
            (
                "proc/self/cgroup",
                "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/\n",
            ),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ]);
        let limits = CgroupLimits::read(root.path());
        assert_eq!(
            limits,
            CgroupLimits {
                cpus: Some(2.0),
                memory_bytes: Some(512 << 20)
            }
        );
    }

    #[test]
    fn no_limit_is_none() {
        let root = tree(&[
            ("proc/self/cgroup", "4:memory:/\n1:cpu:/\n0::/\n"),
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(CgroupLimits::read(root.path()), CgroupLimits::default());
        assert_eq!(
            CgroupLimits::read(Path::new("/no/such/root")),
            CgroupLimits::default()
        );
    }

    #[test]
    fn a_path_out_of_the_namespace_stands_for_the_mount() {
        assert_eq!(groups("/../../other"), [PathBuf::new()]);
        assert_eq!(
            groups("/a/b"),
            [PathBuf::new(), PathBuf::from("a"), PathBuf::from("a/b")]
        );
        assert_eq!(parse_cpu_max("100000 0"), None);
        assert_eq!(parse_cpu_max("garbage"), None);
    }
}
