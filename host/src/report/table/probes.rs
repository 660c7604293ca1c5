//! What the probes gave and cost.

use super::super::record::RunRecord;
use super::format::{NONE, bytes, clean, count, number};
use super::grid::Grid;
use super::style::Style;

/// The account of the probes; nothing without probes.
pub(super) fn account(record: &RunRecord, style: Style) -> String {
    if record.probes.is_empty() {
        return String::new();
    }
    let mut grid = Grid::default()
        .text("probe")
        .text("version")
        .number("samples")
        .number("late")
        .number("missed")
        .number("rows")
        .spare("ns/sample")
        .spare("memory")
        .text("state");
    for probe in &record.probes {
        let state = if probe.faults.is_empty() { "ok" } else { "ended" };
        grid.push([
            clean(&probe.id),
            clean(&probe.version),
            count(probe.samples),
            count(probe.late),
            count(probe.missed),
            count(probe.rows),
            probe.ns_per_sample.map_or(NONE.to_owned(), number),
            probe.peak_memory.map_or(NONE.to_owned(), bytes),
            state.to_owned(),
        ]);
    }
    grid.render(style)
}
