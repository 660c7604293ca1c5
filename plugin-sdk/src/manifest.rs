//! Who a plugin is, as JSON that is written at compile time into a section of the built file, so that the host can
//! read it without executing anything.

use serde::{Deserialize, Serialize};

use crate::collector::Info;
use crate::column::ElementType;
use crate::metric::{Direction, MetricDef, MetricKind};
use crate::probe::{ProbeColumn, ProbeKind};
use crate::subscription::Subscription;

/// Version of the manifest's own layout.
pub const SCHEMA: u32 = 1;
/// Version of this SDK.
pub const SDK_VERSION: &str = env!("CARGO_PKG_VERSION");
/// Interface that collectors offer and the host looks up.
pub const COLLECTOR_INTERFACE: &str = "lmb.collector/1";
/// Interface that probes offer and the host looks up.
pub const PROBE_INTERFACE: &str = "lmb.probe/1";
/// Section of a native plugin that holds the manifest.
pub const DYLIB_SECTION: &str = ".lmb.manifest";
/// Custom section of a WASM plugin that holds the manifest.
pub const WASM_SECTION: &str = "lmb:manifest";

/// Section of a native plugin in which its build wrote its [`Description`].
pub const DYLIB_DESCRIPTION: &str = ".lmb.describe";
/// Custom section of a WASM plugin in which its build wrote its [`Description`].
pub const WASM_DESCRIPTION: &str = "lmb:describe";

/// What a plugin says when it is asked, written into its file by the build that asked it, so that the host can show it
/// without executing anything. Unknown keys are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// JSON schema of the configuration.
    pub config: serde_json::Value,
    /// What it wants with the default configuration, on a run of which nothing is known; `None` where it wants to know
    /// more.
    #[serde(default)]
    pub subscription: Option<Subscription>,
}

/// A manifest as the host reads it. Unknown keys are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the manifest's layout.
    pub schema: u32,
    /// Id of the plugin.
    pub id: String,
    /// Version of the plugin.
    pub version: String,
    /// What it measures.
    pub about: String,
    /// SPDX licence expression.
    pub license: String,
    /// Version of the SDK it was built with.
    pub sdk: String,
    /// Interfaces without which it does not run.
    pub requires: Vec<String>,
    /// Metrics that it may report.
    pub metrics: Vec<MetricDecl>,
    /// Kinds of events that it may produce, if it is a probe.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<KindDecl>,
}

impl Manifest {
    /// Whether it is the manifest of a probe.
    pub fn is_probe(&self) -> bool {
        self.requires.iter().any(|needs| needs == PROBE_INTERFACE)
    }
}

/// The declaration of a kind as the host reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindDecl {
    /// `vendor.NAME.KIND`.
    pub name: String,
    /// What one row stands for.
    pub about: String,
    /// Columns, without `t_ns`.
    pub columns: Vec<ColumnDecl>,
}

/// The declaration of a probe's column as the host reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnDecl {
    /// Name.
    pub name: String,
    /// Physical type of an element.
    #[serde(rename = "type")]
    pub element: ElementType,
    /// Whether each row holds several values.
    #[serde(default)]
    pub list: bool,
    /// Unit.
    pub unit: String,
    /// Whether values may be NaN or infinite.
    #[serde(default)]
    pub nonfinite: bool,
    /// What the value means.
    #[serde(default)]
    pub about: String,
}

/// The declaration of a metric as the host reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricDecl {
    /// Name.
    pub name: String,
    /// Unit.
    pub unit: String,
    /// Shape of the value.
    pub kind: MetricKind,
    /// Which values are better.
    pub direction: Direction,
    /// Formula.
    pub formula: String,
    /// What it tells.
    pub about: String,
    /// Keys of its labels.
    #[serde(default)]
    pub labels: Vec<String>,
}

/// The metrics of some collectors as a Markdown page, in the order of their ids.
pub fn markdown(manifests: &[Manifest]) -> String {
    let mut sorted: Vec<&Manifest> = manifests.iter().collect();
    sorted.sort_by(|a, b| a.id.cmp(&b.id));
    let mut page = "# Metrics\n\n\
        What the collectors in this repository report. This page is made from their manifests; do not edit it.\n\n\
        Formulas are in terms of event columns (`docs/events.md`). A value without one of the labels stands for all \
        values of that label. What cannot be known is reported as unavailable, with the reason.\n"
        .to_owned();
    for manifest in sorted {
        page += &format!("\n## {}\n\n{}\n", manifest.id, manifest.about);
        for metric in &manifest.metrics {
            page += &metric_markdown(metric);
        }
    }
    page
}

fn metric_markdown(metric: &MetricDecl) -> String {
    let kind = match metric.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Distribution => "distribution",
    };
    let direction = match metric.direction {
        Direction::Higher => "higher is better",
        Direction::Lower => "lower is better",
        Direction::Neither => "neither direction is better",
    };
    let unit = if metric.unit == "1" {
        "no unit".to_owned()
    } else {
        format!("unit `{}`", metric.unit)
    };
    let labels: Vec<String> = metric.labels.iter().map(|key| format!("`{key}`")).collect();
    let labels = if labels.is_empty() {
        "no labels".to_owned()
    } else {
        format!("labels {}", labels.join(", "))
    };
    let (name, about, formula) = (&metric.name, &metric.about, &metric.formula);
    format!("\n### {name}\n\n{kind}, {unit}, {direction}, {labels}\n\n{about}\n\n```text\n{formula}\n```\n")
}

/// Length of the manifest of a collector in bytes.
pub const fn length(info: &Info, metrics: &[MetricDef]) -> usize {
    write::<0>(info, metrics).length
}

/// The manifest of a collector; `N` is its [`length`].
pub const fn bytes<const N: usize>(info: &Info, metrics: &[MetricDef]) -> [u8; N] {
    write::<N>(info, metrics).buffer
}

/// Length of the manifest of a probe in bytes.
pub const fn probe_length(info: &Info, kinds: &[ProbeKind]) -> usize {
    write_probe::<0>(info, kinds).length
}

/// The manifest of a probe; `N` is its [`probe_length`].
pub const fn probe_bytes<const N: usize>(info: &Info, kinds: &[ProbeKind]) -> [u8; N] {
    write_probe::<N>(info, kinds).buffer
}

/// Counts all bytes and keeps the first `N`: a first pass with `N = 0` measures, a second one writes.
struct Json<const N: usize> {
    buffer: [u8; N],
    length: usize,
}

impl<const N: usize> Json<N> {
    const fn byte(mut self, byte: u8) -> Self {
        if self.length < N {
            self.buffer[self.length] = byte;
        }
        self.length += 1;
        self
    }

    const fn raw(mut self, text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut index = 0;
        while index < bytes.len() {
            self = self.byte(bytes[index]);
            index += 1;
        }
        self
    }

    const fn string(mut self, text: &str) -> Self {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        self = self.byte(b'"');
        let bytes = text.as_bytes();
        let mut index = 0;
        while index < bytes.len() {
            let byte = bytes[index];
            self = match byte {
                b'"' | b'\\' => self.byte(b'\\').byte(byte),
                0..0x20 => self
                    .raw("\\u00")
                    .byte(HEX[(byte >> 4) as usize])
                    .byte(HEX[(byte & 15) as usize]),
                _ => self.byte(byte),
            };
            index += 1;
        }
        self.byte(b'"')
    }

    const fn field(self, key: &str, value: &str) -> Self {
        self.string(key).byte(b':').string(value).byte(b',')
    }
}

/// Who the plugin is and what it requires, up to the list of its metrics.
const fn head<const N: usize>(info: &Info, interface: &str) -> Json<N> {
    Json {
        buffer: [0; N],
        length: 0,
    }
    .raw("{\"schema\":1,")
    .field("id", info.id)
    .field("version", info.version)
    .field("about", info.about)
    .field("license", info.license)
    .field("sdk", SDK_VERSION)
    .raw("\"requires\":[")
    .string(interface)
    .raw("],\"metrics\":[")
}

const fn write_probe<const N: usize>(info: &Info, kinds: &[ProbeKind]) -> Json<N> {
    let mut json = head::<N>(info, PROBE_INTERFACE).raw("],\"kinds\":[");
    let mut index = 0;
    while index < kinds.len() {
        let kind = &kinds[index];
        if index > 0 {
            json = json.byte(b',');
        }
        json = json
            .byte(b'{')
            .field("name", kind.name)
            .field("about", kind.about)
            .raw("\"columns\":[");
        let mut at = 0;
        while at < kind.columns.len() {
            if at > 0 {
                json = json.byte(b',');
            }
            json = write_column(json, &kind.columns[at]);
            at += 1;
        }
        json = json.raw("]}");
        index += 1;
    }
    json.raw("]}")
}

const fn write_column<const N: usize>(json: Json<N>, column: &ProbeColumn) -> Json<N> {
    let json = json
        .byte(b'{')
        .field("name", column.name)
        .field("type", column.element.name())
        .field("unit", column.unit)
        .field("about", column.about);
    let json = if column.list {
        json.raw("\"list\":true,")
    } else {
        json.raw("\"list\":false,")
    };
    if column.nonfinite {
        json.raw("\"nonfinite\":true}")
    } else {
        json.raw("\"nonfinite\":false}")
    }
}

const fn write<const N: usize>(info: &Info, metrics: &[MetricDef]) -> Json<N> {
    let mut json = head::<N>(info, COLLECTOR_INTERFACE);
    let mut index = 0;
    while index < metrics.len() {
        if index > 0 {
            json = json.byte(b',');
        }
        json = write_metric(json, &metrics[index]);
        index += 1;
    }
    json.raw("]}")
}

const fn write_metric<const N: usize>(json: Json<N>, metric: &MetricDef) -> Json<N> {
    let kind = match metric.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Distribution => "distribution",
    };
    let direction = match metric.direction {
        Direction::Higher => "higher",
        Direction::Lower => "lower",
        Direction::Neither => "neither",
    };
    let mut json = json
        .byte(b'{')
        .field("name", metric.name)
        .field("unit", metric.unit)
        .field("kind", kind)
        .field("direction", direction)
        .field("formula", metric.formula)
        .field("about", metric.about)
        .raw("\"labels\":[");
    let mut index = 0;
    while index < metric.labels.len() {
        if index > 0 {
            json = json.byte(b',');
        }
        json = json.string(metric.labels[index]);
        index += 1;
    }
    json.raw("]}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: Info = Info {
        id: "probe",
        version: "2.3.4",
        about: "quotes \" and \\ and\nnew lines",
        license: "MIT",
    };
    const METRICS: &[MetricDef] = &[
        MetricDef::gauge("a", "ms")
            .better(Direction::Lower)
            .formula("x / y")
            .about("an \u{e4}")
            .labels(&["phase", "layer"]),
        MetricDef::counter("b"),
    ];
    const BYTES: [u8; length(&INFO, METRICS)] = bytes(&INFO, METRICS);

    #[test]
    fn the_compile_time_json_reads_back() {
        let manifest: Manifest = serde_json::from_slice(&BYTES).expect("valid JSON");
        assert_eq!(manifest.schema, SCHEMA);
        assert_eq!(
            (manifest.id.as_str(), manifest.version.as_str()),
            (INFO.id, INFO.version)
        );
        assert_eq!(manifest.about, INFO.about);
        assert_eq!(manifest.requires, [COLLECTOR_INTERFACE]);
        assert_eq!(manifest.metrics.len(), 2);
        assert_eq!(manifest.metrics[0].about, "an \u{e4}");
        assert_eq!(manifest.metrics[0].direction, Direction::Lower);
        assert_eq!(manifest.metrics[0].labels, ["phase", "layer"]);
        assert_eq!(manifest.metrics[1].kind, MetricKind::Counter);
    }

    const KINDS: &[ProbeKind] = &[ProbeKind {
        name: "vendor.acme.power",
        about: "a \"sample\"",
        columns: &[
            ProbeColumn::new("mw", ElementType::F64, "mW").nonfinite(),
            ProbeColumn::new("rails", ElementType::Sym, "1")
                .list()
                .about("names"),
        ],
    }];
    const PROBE: [u8; probe_length(&INFO, KINDS)] = probe_bytes(&INFO, KINDS);

    #[test]
    fn the_manifest_of_a_probe_reads_back() {
        let manifest: Manifest = serde_json::from_slice(&PROBE).expect("valid JSON");
        assert!(manifest.is_probe() && manifest.metrics.is_empty());
        let kind = &manifest.kinds[0];
        assert_eq!(
            (kind.name.as_str(), kind.about.as_str()),
            ("vendor.acme.power", "a \"sample\"")
        );
        let columns: Vec<_> = kind
            .columns
            .iter()
            .map(|column| {
                (
                    column.name.as_str(),
                    column.element,
                    column.list,
                    column.nonfinite,
                )
            })
            .collect();
        assert_eq!(
            columns,
            [
                ("mw", ElementType::F64, false, true),
                ("rails", ElementType::Sym, true, false)
            ]
        );
    }

    #[test]
    fn the_page_tells_what_a_manifest_does() {
        let first: Manifest = serde_json::from_slice(&BYTES).expect("valid JSON");
        let mut second = first.clone();
        second.id = "a-probe".to_owned();
        second.metrics.truncate(1);
        let page = markdown(&[first, second]);
        let (a, b) = (page.find("\n## a-probe\n"), page.find("\n## probe\n"));
        assert!(a.is_some() && a < b, "{page}");
        assert_eq!(page.matches("\n### a\n").count(), 2);
        let line = "\ngauge, unit `ms`, lower is better, labels `phase`, `layer`\n";
        assert!(page.contains(line), "{page}");
        assert!(page.contains("\n```text\nx / y\n```\n"), "{page}");
        assert!(
            page.contains("\ncounter, no unit, neither direction is better, no labels\n"),
            "{page}"
        );
    }
}
