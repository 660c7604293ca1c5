//! Probes: plugins that produce rows of their own kinds, `vendor.NAME.KIND`, for collectors to take.

use serde::de::DeserializeOwned;

use crate::collector::{Info, LogLevel};
use crate::column::{ColumnData, Data, ElementType};
use crate::fault::Fault;
use crate::run_info::RunInfo;

/// A column of a [`ProbeKind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeColumn {
    /// Name, unique within its kind: `[a-z0-9_]`. `t_ns` is the host's.
    pub name: &'static str,
    /// Physical type of an element.
    pub element: ElementType,
    /// Whether each row holds the same number of values, at least one, instead of one.
    pub list: bool,
    /// UCUM-style unit; `1` for counts and ratios.
    pub unit: &'static str,
    /// Whether values may be NaN or infinite.
    pub nonfinite: bool,
    /// What the value means.
    pub about: &'static str,
}

impl ProbeColumn {
    /// A column of one finite value per row.
    pub const fn new(name: &'static str, element: ElementType, unit: &'static str) -> Self {
        Self {
            name,
            element,
            list: false,
            unit,
            nonfinite: false,
            about: "",
        }
    }

    /// The same with several values per row.
    pub const fn list(mut self) -> Self {
        self.list = true;
        self
    }

    /// The same with values that may be NaN or infinite.
    pub const fn nonfinite(mut self) -> Self {
        self.nonfinite = true;
        self
    }

    /// The same with a description.
    pub const fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }
}

/// A kind of event that a probe produces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeKind {
    /// `vendor.NAME.KIND`.
    pub name: &'static str,
    /// What one row stands for.
    pub about: &'static str,
    /// Columns, without `t_ns`, which the host adds in front.
    pub columns: &'static [ProbeColumn],
}

/// What the host does for a probe during a call.
pub trait ProbeHost {
    /// Writes a line to the run's log.
    fn log(&mut self, level: LogLevel, text: &str);
    /// The symbol of a text.
    fn symbol(&mut self, text: &str) -> u32;
    /// Takes rows of a kind by its place in [`Probe::KINDS`]; the columns are those of the kind, in order.
    fn rows(&mut self, kind: u32, rows: u32, columns: &[ColumnData<'_>]);
}

/// Lends the host to a call of a probe.
pub struct ProbeSink<'a> {
    host: &'a mut dyn ProbeHost,
}

impl<'a> ProbeSink<'a> {
    /// A sink backed by `host`.
    pub fn new(host: &'a mut dyn ProbeHost) -> Self {
        Self { host }
    }

    /// Writes a line to the run's log. The host limits lines and bytes.
    pub fn log(&mut self, level: LogLevel, text: &str) {
        self.host.log(level, text);
    }

    /// The symbol of a text, for columns of type `sym`. Keep it: each text that was not seen costs the host memory.
    pub fn symbol(&mut self, text: &str) -> u32 {
        self.host.symbol(text)
    }

    /// Hands over one row of scalar columns: each of `values` holds one value.
    pub fn row(&mut self, kind: u32, values: &[Data<'_>]) {
        let columns: Vec<ColumnData<'_>> = values.iter().map(|&data| ColumnData { width: 1, data }).collect();
        self.host.rows(kind, 1, &columns);
    }

    /// Hands over whole columns of `rows` rows. The host copies them, and ends the probe if they are not what
    /// [`Probe::KINDS`] says.
    pub fn rows(&mut self, kind: u32, rows: u32, columns: &[ColumnData<'_>]) {
        self.host.rows(kind, rows, columns);
    }
}

/// A source of rows that the host asks at a period.
///
/// The host calls [`open`](Self::open), then [`start`](Self::start) when the measured part of the run begins,
/// [`sample`](Self::sample) once per period and [`stop`](Self::stop) when that part is over. Calls never overlap, come
/// on a thread or from a process of the probe's own, and none follows an error. Unlike a collector a probe may read
/// clocks, files and devices: its rows are recorded, and a replay of them needs no probe.
pub trait Probe: Sized + Send + 'static {
    /// Who the probe is.
    const INFO: Info;
    /// Each kind that it may produce.
    const KINDS: &'static [ProbeKind];
    /// Configuration. Use `#[serde(default, deny_unknown_fields)]`, as for a collector.
    type Config: DeserializeOwned + schemars::JsonSchema;

    /// Creates the probe. `process` is the number of the process that is measured, from which the probe itself is
    /// isolated.
    ///
    /// # Errors
    /// A [`Fault::config`] ends the run before it starts; another fault the probe alone.
    fn open(config: Self::Config, run: &RunInfo, process: u64) -> Result<Self, Fault>;

    /// Learns that the measured part begins. By default nothing is done.
    ///
    /// # Errors
    /// A fault ends the probe.
    fn start(&mut self, sink: &mut ProbeSink<'_>) -> Result<(), Fault> {
        let _ = sink;
        Ok(())
    }

    /// Takes a sample. The host stamps its rows with the time at which the call began.
    ///
    /// # Errors
    /// A fault ends the probe; rows of earlier samples are kept.
    fn sample(&mut self, sink: &mut ProbeSink<'_>) -> Result<(), Fault>;

    /// Learns that no sample follows. By default nothing is done. Rows are not taken any more.
    ///
    /// # Errors
    /// A fault is part of the account.
    fn stop(&mut self, sink: &mut ProbeSink<'_>) -> Result<(), Fault> {
        let _ = sink;
        Ok(())
    }
}
