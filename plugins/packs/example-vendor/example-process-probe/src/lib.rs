//! A probe of the measured process: what Linux says of it in `/proc/PID/stat`.

use lm_bench_plugin::{Data, ElementType, Fault, Info, Probe, ProbeColumn, ProbeKind, ProbeSink, RunInfo};

/// Clock ticks per second in `/proc`, the same on all architectures that Rust runs on.
const TICKS_PER_SECOND: u64 = 100;
/// Place of the one kind in [`ProcessProbe::KINDS`].
const PROCESS: u32 = 0;

/// There is nothing to set.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

/// The probe.
#[derive(Debug)]
pub struct ProcessProbe {
    path: String,
}

impl Probe for ProcessProbe {
    const INFO: Info = Info {
        id: env!("CARGO_PKG_NAME"),
        version: env!("CARGO_PKG_VERSION"),
        about: env!("CARGO_PKG_DESCRIPTION"),
        license: env!("CARGO_PKG_LICENSE"),
    };
    const KINDS: &'static [ProbeKind] = &[ProbeKind {
        name: "vendor.example.process",
        about: "a sample of the measured process",
        columns: &[
            ProbeColumn::new("cpu_ns", ElementType::U64, "ns").about("processor time of all its threads since it began"),
            ProbeColumn::new("threads", ElementType::U32, "1").about("threads that it has"),
            ProbeColumn::new("resident_pages", ElementType::U64, "{page}").about("pages of memory that are resident"),
        ],
    }];
    type Config = Config;

    fn open(_: Config, _: &RunInfo, process: u64) -> Result<Self, Fault> {
        let probe = Self { path: format!("/proc/{process}/stat") };
        probe.read().map(|_| probe)
    }

    fn sample(&mut self, sink: &mut ProbeSink<'_>) -> Result<(), Fault> {
        let process = self.read()?;
        sink.row(
            PROCESS,
            &[
                Data::U64(&[process.cpu_ns]),
                Data::U32(&[process.threads]),
                Data::U64(&[process.resident_pages]),
            ],
        );
        Ok(())
    }
}

lm_bench_plugin::export_probe!(ProcessProbe);

#[derive(Debug, PartialEq)]
struct Process {
    cpu_ns: u64,
    threads: u32,
    resident_pages: u64,
}

impl ProcessProbe {
    fn read(&self) -> Result<Process, Fault> {
        let text = std::fs::read_to_string(&self.path)
            .map_err(|error| Fault::data(format!("{}: {error}", self.path)))?;
        parse(&text).ok_or_else(|| Fault::data(format!("{} is not understood: {text:?}", self.path)))
    }
}

/// See proc_pid_stat(5). The name, in parentheses, may hold spaces and parentheses.
fn parse(stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().collect();
    // The state, field 3 in the manual, is the first one here.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let ticks = field(14)?.checked_add(field(15)?)?;
    Some(Process {
        cpu_ns: ticks.checked_mul(1_000_000_000 / TICKS_PER_SECOND)?,
        threads: u32::try_from(field(20)?).ok()?,
        resident_pages: field(24)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a) b (c) R 1 2 3 4 5 6 7 8 9 10 110 12 13 14 15 16 17 0 99 1000 321 0 0";
        let expected = Process { cpu_ns: 1_220_000_000, threads: 17, resident_pages: 321 };
        assert_eq!(parse(stat), Some(expected));
        assert_eq!(parse("7 (a) R 1"), None);
    }
}
