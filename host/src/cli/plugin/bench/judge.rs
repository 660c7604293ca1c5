//! What the samples of a measurement amount to, and whether they do.

use serde::Serialize;

use crate::plugin::bench::{BenchDoor, BenchSamples, DoorSamples, LeftOut};
use crate::probe;
use crate::stats::{Confidence, Distribution, Percent};

/// An interval wider than this share of its median says that the machine was too busy.
const WIDEST: f64 = 0.2;

/// A median with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Estimate {
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Estimate {
    fn of(samples: impl IntoIterator<Item = f64>) -> Result<Self, String> {
        let all = Distribution::from_samples(samples).map_err(|error| error.to_string())?;
        let [half, ..] = Percent::DEFAULT;
        let estimate = all
            .percentile(half, Confidence::P95)
            .map_err(|error| error.to_string())?;
        Ok(Self {
            median: estimate.value,
            low: estimate.low,
            high: estimate.high,
        })
    }

    pub(super) fn times(self, factor: f64) -> Self {
        Self {
            median: self.median * factor,
            low: self.low * factor,
            high: self.high * factor,
        }
    }

    fn too_wide(&self) -> bool {
        self.high - self.low > WIDEST * self.median.abs()
    }
}

/// A measurement with its verdict.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Judged {
    pub(super) id: String,
    pub(super) version: String,
    pub(super) machine: String,
    pub(super) kinds: Vec<String>,
    pub(super) rows: u64,
    pub(super) rounds: u32,
    pub(super) valid: bool,
    pub(super) reasons: Vec<String>,
    pub(super) noop_ns: Estimate,
    pub(super) doors: Vec<JudgedDoor>,
    /// Isolated over in-process, in the same rounds.
    pub(super) process_ratio: Option<Estimate>,
    pub(super) left_out: Vec<LeftOut>,
}

/// A door's figures.
#[derive(Clone, Debug, Serialize)]
pub(super) struct JudgedDoor {
    pub(super) door: BenchDoor,
    pub(super) target: String,
    pub(super) row_ns: Estimate,
    /// Less what a collector costs that does nothing, round by round.
    pub(super) net_ns: Estimate,
    /// To the first door, round by round; none for that door itself.
    pub(super) ratio: Option<Estimate>,
    pub(super) checkpoint_ns: Estimate,
    pub(super) start_ns: Estimate,
    pub(super) cold_start_ns: Option<Estimate>,
    pub(super) calls_per_s: f64,
    pub(super) peak_memory: Option<u64>,
    pub(super) faults: Vec<String>,
}

impl JudgedDoor {
    pub(super) fn name(&self) -> String {
        name(self.door)
    }
}

fn name(door: BenchDoor) -> String {
    let value = clap::ValueEnum::to_possible_value(&door);
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Figures and verdict.
///
/// # Errors
/// When there are too few samples, or one is not a number.
pub(super) fn judge(samples: &BenchSamples, rounds: u32) -> Result<Judged, String> {
    let mut doors = Vec::new();
    for (at, door) in samples.doors.iter().enumerate() {
        let first = (at > 0).then(|| samples.doors[0].row_ns.as_slice());
        doors.push(figures(door, &samples.noop_ns, first)?);
    }
    let of = |wanted| samples.doors.iter().find(|door| door.door == wanted);
    let process_ratio = match (of(BenchDoor::Dylib), of(BenchDoor::DylibInProcess)) {
        (Some(own), Some(shared)) => Some(ratio(&own.row_ns, &shared.row_ns)?),
        _ => None,
    };
    let mut reasons = Vec::new();
    for door in &doors {
        for fault in &door.faults {
            reasons.push(format!("{}: the plugin was quarantined: {fault}", door.name()));
        }
        if door.faults.is_empty() && door.row_ns.too_wide() {
            reasons.push(format!(
                "{}: the interval is wider than {:.0} % of the median: quieten the machine, or raise --rounds",
                door.name(),
                WIDEST * 100.0
            ));
        }
    }
    Ok(Judged {
        id: samples.id.clone(),
        version: samples.version.clone(),
        machine: machine(),
        kinds: samples.kinds.clone(),
        rows: samples.rows,
        rounds,
        valid: reasons.is_empty(),
        reasons,
        noop_ns: Estimate::of(samples.noop_ns.iter().copied())?,
        doors,
        process_ratio,
        left_out: samples.left_out.clone(),
    })
}

fn figures(door: &DoorSamples, noop: &[f64], first: Option<&[f64]>) -> Result<JudgedDoor, String> {
    let of = |samples: &[f64]| Estimate::of(samples.iter().copied());
    let net = door.row_ns.iter().zip(noop).map(|(with, without)| with - without);
    let cold = Some(&door.cold_start_ns).filter(|samples| !samples.is_empty());
    Ok(JudgedDoor {
        door: door.door,
        target: door.target.clone(),
        row_ns: of(&door.row_ns)?,
        net_ns: Estimate::of(net)?,
        ratio: first.map(|first| ratio(&door.row_ns, first)).transpose()?,
        checkpoint_ns: of(&door.checkpoint_ns)?,
        start_ns: of(&door.start_ns)?,
        cold_start_ns: cold.map(|samples| of(samples)).transpose()?,
        calls_per_s: door.calls_per_s,
        peak_memory: door.peak_memory,
        faults: door.faults.clone(),
    })
}

/// The ratio of two doors, round by round: both met the same machine.
fn ratio(of: &[f64], to: &[f64]) -> Result<Estimate, String> {
    Estimate::of(of.iter().zip(to).map(|(of, to)| of / to))
}

fn machine() -> String {
    let facts = probe::machine::facts();
    let cores = facts
        .usable_cores
        .map_or_else(String::new, |cores| format!(", {cores} cores"));
    let model = facts.cpu_model.unwrap_or_else(|| facts.arch.to_owned());
    let system = facts.os.map_or_else(String::new, |os| format!(", {os}"));
    format!("{model}{cores}{system}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(wasm: Vec<f64>) -> BenchSamples {
        let door = |door, row_ns| DoorSamples {
            door,
            target: "x".to_owned(),
            row_ns,
            checkpoint_ns: vec![5.0; 7],
            start_ns: vec![9.0; 7],
            cold_start_ns: Vec::new(),
            calls_per_s: 1.0,
            peak_memory: None,
            faults: Vec::new(),
        };
        let first = (1..=7).map(f64::from).map(|at| 100.0 + at).collect();
        BenchSamples {
            id: "x".to_owned(),
            version: "1.0.0".to_owned(),
            kinds: Vec::new(),
            rows: 1,
            noop_ns: vec![1.0; 7],
            doors: vec![door(BenchDoor::Builtin, first), door(BenchDoor::Wasm, wasm)],
            left_out: Vec::new(),
        }
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        // Each round twice as dear, whatever the drift.
        let twice = (1..=7).map(f64::from).map(|at| 2.0 * (100.0 + at)).collect();
        let judged = judge(&samples(twice), 7).expect("figures");
        let ratio = judged.doors[1].ratio.expect("a ratio");
        assert_eq!((ratio.low, ratio.median, ratio.high), (2.0, 2.0, 2.0));
        assert_eq!(judged.doors[0].net_ns.median, 103.0);
        assert!(judged.valid && judged.doors[0].ratio.is_none());
    }

    #[test]
    fn what_varies_too_much_is_not_valid() {
        let judged =
            judge(&samples(vec![100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0]), 7).expect("figures");
        assert!(!judged.valid);
        assert!(
            judged.reasons[0].starts_with("wasm: the interval"),
            "{:?}",
            judged.reasons
        );
    }

    #[test]
    fn too_few_rounds_give_no_figure() {
        let mut few = samples(vec![1.0; 7]);
        few.noop_ns.truncate(5);
        assert!(judge(&few, 5).is_err());
    }
}
