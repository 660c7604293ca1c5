//! How steady the range of a tensor is from step to step.

use std::collections::VecDeque;

use lm_bench_plugin::math::{exp2, fabs, log2};

use crate::totals::Figure;

/// The largest finite value of a format; `None` for a format that is not known here.
pub(crate) fn largest(format: &str) -> Option<f64> {
    match format {
        "e4m3" | "e4m3fn" => Some(448.0),
        "e4m3fnuz" => Some(240.0),
        "e5m2" => Some(57344.0),
        _ => None,
    }
}

/// What was seen of a tensor in one step.
#[derive(Clone, Copy, Debug)]
struct Seen {
    step: u64,
    amax: f64,
    scale: f64,
}

/// Sums over pairs of successive steps, and the last steps themselves.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    largest: Option<f64>,
    window: usize,
    /// The step that may still grow by further rows.
    current: Option<Seen>,
    previous: Option<Seen>,
    pairs: u64,
    /// Sum over pairs of |log2 of the ratio of their amax|.
    moved: f64,
    growth: f64,
    /// Pairs in which the previous step's scale could not hold the amax.
    stale: u64,
    /// log2 of amax, and log2 of the headroom where the format is known.
    last: VecDeque<(f64, Option<f64>)>,
}

impl Range {
    pub(crate) fn new(largest: Option<f64>, window: usize) -> Self {
        Self {
            largest,
            window,
            current: None,
            previous: None,
            pairs: 0,
            moved: 0.0,
            growth: 0.0,
            stale: 0,
            last: VecDeque::new(),
        }
    }

    /// Adds a row; several rows of a step (parts of a tensor) count as one. An amax of 0 has no logarithm and is
    /// passed over.
    pub(crate) fn add(&mut self, step: u64, amax: f32, scale: f32) {
        let (amax, scale) = (f64::from(amax), f64::from(scale));
        if amax <= 0.0 {
            return;
        }
        match &mut self.current {
            Some(current) if current.step == step => {
                current.amax = current.amax.max(amax);
                current.scale = current.scale.max(scale);
            }
            _ => {
                self.close();
                self.current = Some(Seen { step, amax, scale });
            }
        }
    }

    /// Says that rows are missing: the next step does not follow the last one.
    pub(crate) fn rows_were_lost(&mut self) {
        self.close();
        self.previous = None;
    }

    fn close(&mut self) {
        let Some(seen) = self.current.take() else {
            return;
        };
        if let Some(previous) = self.previous {
            let ratio = seen.amax / previous.amax;
            self.pairs += 1;
            self.moved += fabs(log2(ratio));
            self.growth = self.growth.max(ratio);
            self.stale += u64::from(self.largest.is_some_and(|most| seen.amax > most * previous.scale));
        }
        let headroom = self.largest.filter(|_| seen.scale > 0.0);
        let headroom = headroom.map(|most| log2(most * seen.scale / seen.amax));
        if self.last.len() == self.window {
            self.last.pop_front();
        }
        self.last.push_back((log2(seen.amax), headroom));
        self.previous = Some(seen);
    }
}

/// The ranges of several tensors together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    pub(crate) pairs: u64,
    moved: f64,
    growth: f64,
    stale: u64,
    /// Whether the largest value of each tensor's format is known.
    unknown_format: bool,
    spread: Option<f64>,
    headroom: Option<f64>,
}

const NO_PAIR: &str = "no tensor was quantised in two successive steps";
const UNKNOWN_FORMAT: &str = "the largest value of this format is not known";

impl Ranges {
    pub(crate) fn of<'a>(ranges: impl Iterator<Item = &'a Range>) -> Self {
        let mut all = Self::default();
        for range in ranges {
            let mut closed = range.clone();
            closed.close();
            all.add(&closed);
        }
        all
    }

    fn add(&mut self, range: &Range) {
        self.pairs += range.pairs;
        self.moved += range.moved;
        self.growth = self.growth.max(range.growth);
        self.stale += range.stale;
        self.unknown_format |= range.largest.is_none();
        let amaxes = range.last.iter().map(|&(amax, _)| amax);
        let (least, most) = amaxes.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), amax| {
            (a.min(amax), b.max(amax))
        });
        if range.last.len() > 1 {
            self.spread = Some(self.spread.unwrap_or(0.0).max(most - least));
        }
        for headroom in range.last.iter().filter_map(|&(_, headroom)| headroom) {
            self.headroom = Some(self.headroom.map_or(headroom, |least| least.min(headroom)));
        }
    }

    pub(crate) fn stability(&self) -> Figure {
        if self.pairs > 0 {
            Ok(exp2(-self.moved / self.pairs as f64))
        } else {
            Err(NO_PAIR)
        }
    }

    pub(crate) fn growth(&self) -> Figure {
        if self.pairs > 0 {
            Ok(self.growth)
        } else {
            Err(NO_PAIR)
        }
    }

    pub(crate) fn stale_overflow(&self) -> Figure {
        match self.pairs {
            _ if self.unknown_format => Err(UNKNOWN_FORMAT),
            0 => Err(NO_PAIR),
            pairs => Ok(self.stale as f64 / pairs as f64),
        }
    }

    pub(crate) fn spread(&self) -> Figure {
        self.spread.ok_or(NO_PAIR)
    }

    pub(crate) fn headroom(&self) -> Figure {
        let none = if self.unknown_format {
            UNKNOWN_FORMAT
        } else {
            "no tensor had a value other than 0"
        };
        self.headroom.ok_or(none)
    }
}
