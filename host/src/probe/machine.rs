//! Facts about the machine that a result depends on. The host name is left out: results are shared.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use super::cgroup::CgroupLimits;
use super::procfs::{kib_value, read, value, values};

/// Instruction sets that CPU engines choose their kernels by.
const FEATURES: &[&str] = &[
    "avx",
    "avx2",
    "fma",
    "f16c",
    "avx_vnni",
    "avx512f",
    "avx512bw",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "amx_tile",
    "amx_int8",
    "amx_bf16",
    "asimd",
    "asimddp",
    "asimdhp",
    "i8mm",
    "bf16",
    "sve",
    "sve2",
];

/// What the machine is; `None` where the kernel does not tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Machine {
    /// Operating system, such as `Debian GNU/Linux 13 (trixie)`.
    pub os: Option<String>,
    /// Kernel name and release, such as `Linux 6.8.0`.
    pub kernel: Option<String>,
    /// Architecture that this program is built for.
    pub arch: &'static str,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// CPU sockets.
    pub sockets: Option<u32>,
    /// Physical cores that are online.
    pub physical_cores: Option<u32>,
    /// Logical CPUs that are online.
    pub logical_cores: Option<u32>,
    /// Logical CPUs that this process may run on.
    pub usable_cores: Option<u32>,
    /// Instruction sets that matter for inference, sorted.
    pub cpu_features: Vec<String>,
    /// Frequency governors in use, sorted.
    pub governors: Vec<String>,
    /// Memory of the machine in bytes.
    pub memory_bytes: Option<u64>,
    /// Memory that can be had without swapping, in bytes.
    pub memory_available_bytes: Option<u64>,
    /// Limits of the control groups.
    pub cgroup: CgroupLimits,
    /// Hint at a virtual machine: the hypervisor's or product's name.
    pub virtual_machine: Option<String>,
    /// Hint at a container: what gave it away.
    pub container: Option<String>,
    /// Load averages over 1, 5 and 15 minutes when the facts were read.
    pub load_average: Option<[f64; 3]>,
}

impl Machine {
    /// Reads the facts below a root folder that holds `proc` and `sys`.
    pub fn read(root: &Path) -> Self {
        let text = |name: &str| read(&root.join(name)).unwrap_or_default();
        let (cpuinfo, meminfo) = (text("proc/cpuinfo"), text("proc/meminfo"));
        let cpus = Cpus::parse(&cpuinfo);
        Self {
            os: parse_os_release(&text("etc/os-release")),
            kernel: parse_kernel(&text("proc/version")),
            arch: std::env::consts::ARCH,
            cpu_model: cpus.model,
            sockets: cpus.sockets,
            physical_cores: cpus.physical,
            logical_cores: cpus.logical,
            usable_cores: value(&text("proc/self/status"), "Cpus_allowed_list").and_then(count_cpu_list),
            cpu_features: cpus.features,
            governors: governors(&root.join("sys/devices/system/cpu")),
            memory_bytes: kib_value(&meminfo, "MemTotal"),
            memory_available_bytes: kib_value(&meminfo, "MemAvailable"),
            cgroup: CgroupLimits::read(root),
            virtual_machine: virtual_machine(root, &cpuinfo),
            container: container(root),
            load_average: parse_load(&text("proc/loadavg")),
        }
    }
}

/// The facts of this machine.
pub fn facts() -> Machine {
    Machine::read(Path::new("/"))
}

/// What `/proc/cpuinfo` tells.
#[derive(Debug, Default, PartialEq, Eq)]
struct Cpus {
    model: Option<String>,
    sockets: Option<u32>,
    physical: Option<u32>,
    logical: Option<u32>,
    features: Vec<String>,
}

impl Cpus {
    fn parse(cpuinfo: &str) -> Self {
        let mut sockets = BTreeSet::new();
        let mut cores = BTreeSet::new();
        // The kernel separates CPUs by an empty line. ARM has neither sockets nor cores here.
        for cpu in cpuinfo.split("\n\n") {
            if let (Some(socket), Some(core)) = (value(cpu, "physical id"), value(cpu, "core id")) {
                sockets.insert(socket);
                cores.insert((socket, core));
            }
        }
        let flags = value(cpuinfo, "flags")
            .or_else(|| value(cpuinfo, "Features"))
            .unwrap_or_default();
        let flags: BTreeSet<&str> = flags
            .split_whitespace()
            .filter(|flag| FEATURES.contains(flag))
            .collect();
        Self {
            model: value(cpuinfo, "model name")
                .filter(|model| !model.is_empty())
                .map(str::to_owned),
            sockets: at_least_one(sockets.len()),
            physical: at_least_one(cores.len()),
            logical: at_least_one(values(cpuinfo, "processor").count()),
            features: flags.into_iter().map(str::to_owned).collect(),
        }
    }
}

fn at_least_one(count: usize) -> Option<u32> {
    u32::try_from(count).ok().filter(|&count| count > 0)
}

/// `Linux version 6.8.0-45-generic (…) …`: name and release alone, the rest names the build machine.
fn parse_kernel(version: &str) -> Option<String> {
    let (name, rest) = version.split_once(" version ")?;
    Some(format!("{name} {}", rest.split_whitespace().next()?))
}

/// `PRETTY_NAME="Debian GNU/Linux 13 (trixie)"` among other assignments.
fn parse_os_release(text: &str) -> Option<String> {
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    let name = name.trim().trim_matches(['"', '\'']);
    (!name.is_empty()).then(|| name.to_owned())
}

/// Number of CPUs in a list such as `0-3,8,10-11`.
fn count_cpu_list(list: &str) -> Option<u32> {
    let mut count = 0_u32;
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (
            first.trim().parse::<u32>().ok()?,
            last.trim().parse::<u32>().ok()?,
        );
        count = count.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(count)
}

fn parse_load(loadavg: &str) -> Option<[f64; 3]> {
    let mut loads = loadavg
        .split_whitespace()
        .map(|load| load.parse::<f64>().ok().filter(|load| load.is_finite()));
    Some([loads.next()??, loads.next()??, loads.next()??])
}

fn governors(cpus: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(cpus) else {
        return Vec::new();
    };
    let governors: BTreeSet<String> = entries
        .flatten()
        .filter_map(|cpu| read(&cpu.path().join("cpufreq/scaling_governor")))
        .map(|governor| governor.trim().to_owned())
        .collect();
    governors.into_iter().collect()
}

fn virtual_machine(root: &Path, cpuinfo: &str) -> Option<String> {
    let text = |name: &str| {
        read(&root.join(name))
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
    };
    let is_guest = value(cpuinfo, "flags")
        .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    let hypervisor = text("sys/hypervisor/type");
    if !is_guest && hypervisor.is_none() {
        return None;
    }
    let product = text("sys/class/dmi/id/sys_vendor").zip(text("sys/class/dmi/id/product_name"));
    let product = product.map(|(vendor, name)| format!("{vendor} {name}"));
    product
        .or(hypervisor)
        .or_else(|| Some("hypervisor flag of the CPU".to_owned()))
}

fn container(root: &Path) -> Option<String> {
    for marker in [".dockerenv", "run/.containerenv"] {
        if root.join(marker).exists() {
            return Some(format!("/{marker}"));
        }
    }
    let groups = read(&root.join("proc/self/cgroup")).unwrap_or_default();
    let word = ["kubepods", "docker", "containerd", "lxc", "libpod"]
        .into_iter()
        .find(|word| groups.contains(word));
    word.map(|word| format!("control group of {word}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Captured from a machine with two sockets of one core with two threads each, shortened.
    const CPUINFO: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Platinum 8480+\nphysical id\t: 0\ncore id\t\t: 0\nflags\t\t: fpu hypervisor avx2 amx_int8 avx512_vnni sse4_2\n\nprocessor\t: 1\nmodel name\t: Intel(R) Xeon(R) Platinum 8480+\nphysical id\t: 0\ncore id\t\t: 0\n\nprocessor\t: 2\nphysical id\t: 1\ncore id\t\t: 0\n\nprocessor\t: 3\nphysical id\t: 1\ncore id\t\t: 0\n\n";
    const ARM: &str = "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd sve i8mm\nCPU implementer\t: 0x41\n\nprocessor\t: 1\n\n";

    #[test]
    fn cpus_are_counted_by_socket_core_and_thread() {
        let cpus = Cpus::parse(CPUINFO);
        assert_eq!(cpus.model.as_deref(), Some("Intel(R) Xeon(R) Platinum 8480+"));
        assert_eq!(
            (cpus.sockets, cpus.physical, cpus.logical),
            (Some(2), Some(2), Some(4))
        );
        assert_eq!(cpus.features, ["amx_int8", "avx2", "avx512_vnni"]);
        let arm = Cpus::parse(ARM);
        assert_eq!((arm.model, arm.physical, arm.logical), (None, None, Some(2)));
        assert_eq!(arm.features, ["asimd", "i8mm", "sve"]);
        assert_eq!(Cpus::parse(""), Cpus::default());
    }

    #[test]
    fn small_texts_are_parsed_or_refused() {
        let version = "Linux version 6.8.0-45-generic (buildd@lcy02) (gcc 13.2.0) #45-Ubuntu SMP";
        assert_eq!(parse_kernel(version).as_deref(), Some("Linux 6.8.0-45-generic"));
        assert_eq!(parse_kernel("nonsense"), None);
        let os = "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n";
        assert_eq!(
            parse_os_release(os).as_deref(),
            Some("Debian GNU/Linux 13 (trixie)")
        );
        assert_eq!(parse_os_release("PRETTY_NAME=\"\"\n"), None);
        assert_eq!(count_cpu_list("0-3,8,10-11\n"), Some(7));
        for bad in ["", "3-1", "a", "0-4294967295"] {
            assert_eq!(count_cpu_list(bad), None, "{bad}");
        }
        assert_eq!(
            parse_load("0.52 1.00 11.25 2/345 6789\n"),
            Some([0.52, 1.0, 11.25])
        );
        assert_eq!(parse_load("0.52 nan 1"), None);
        assert_eq!(parse_load("0.52"), None);
    }

    #[test]
    fn a_machine_is_read_from_its_files() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/cpuinfo", CPUINFO);
        write(
            "proc/meminfo",
            "MemTotal:       24689764 kB\nMemFree:  1 kB\nMemAvailable:   23000000 kB\n",
        );
        write("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-1\n");
        write("proc/self/cgroup", "0::/kubepods/pod1\n");
        write(
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
            "powersave\n",
        );
        write(
            "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
            "performance\n",
        );
        write("sys/class/dmi/id/sys_vendor", "QEMU\n");
        write("sys/class/dmi/id/product_name", "Standard PC\n");
        let machine = Machine::read(root.path());
        assert_eq!(machine.memory_bytes, Some(24_689_764 * 1024));
        assert_eq!(machine.usable_cores, Some(2));
        assert_eq!(machine.governors, ["performance", "powersave"]);
        assert_eq!(machine.virtual_machine.as_deref(), Some("QEMU Standard PC"));
        assert_eq!(machine.container.as_deref(), Some("control group of kubepods"));
        assert_eq!(machine.load_average, None);
        let nothing = Machine::read(&root.path().join("missing"));
        assert_eq!(
            nothing,
            Machine {
                arch: std::env::consts::ARCH,
                ..Machine::default()
            }
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_has_cpus_and_memory() {
        let machine = facts();
        assert!(
            machine.logical_cores.is_some() && machine.memory_bytes.is_some(),
            "{machine:?}"
        );
    }
}
