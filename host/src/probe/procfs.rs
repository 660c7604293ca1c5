//! Small text files of the kernel.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Most bytes read of one file; `/proc/cpuinfo` of a machine with 1,024 cores stays below.
const MAX_BYTES: u64 = 4 << 20;

/// A file's text; `None` where it is missing, unreadable or no text, which is common in containers.
pub(super) fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path)
        .ok()?
        .take(MAX_BYTES)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

/// The value of the first `key: value` line of a text such as `/proc/self/status`.
pub(super) fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    values(text, key).next()
}

/// The values of all `key: value` lines.
pub(super) fn values<'a>(text: &'a str, key: &str) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(move |line| {
        let (name, value) = line.split_once(':')?;
        (name.trim_end() == key).then_some(value.trim())
    })
}

/// The bytes of a `key:  123 kB` line.
pub(super) fn kib_value(text: &str, key: &str) -> Option<u64> {
    let number = value(text, key)?
        .strip_suffix("kB")?
        .trim_end()
        .parse::<u64>()
        .ok()?;
    number.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_whole_key() {
        let text = "VmHWM:\t    5120 kB\nVmRSS:\t    1024 kB\nPss_Dirty: 7 kB\nmodel name\t: AMD EPYC 9V74\n";
        assert_eq!(kib_value(text, "VmRSS"), Some(1 << 20));
        assert_eq!(kib_value(text, "Pss"), None);
        assert_eq!(value(text, "model name"), Some("AMD EPYC 9V74"));
        assert_eq!(kib_value("VmRSS: 99999999999999999 kB", "VmRSS"), None);
        assert_eq!(kib_value("VmRSS: x kB", "VmRSS"), None);
        assert_eq!(kib_value("VmRSS: 5", "VmRSS"), None);
    }

    #[test]
    fn a_missing_file_is_none() {
        assert_eq!(read(Path::new("/proc/self/no-such-file")), None);
    }
}
