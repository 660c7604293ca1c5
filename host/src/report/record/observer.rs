//! What being measured costs the engine.

use std::collections::BTreeMap;

use lm_bench_plugin::Direction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::headline::{Iteration, decode_ms, prefill_ms};
use super::judge::Note;
use super::metric::{CONFIDENCE, IntervalRecord, MetricRecord, MetricValue};
use crate::stats::{MIN_PAIRS, Stratum, ratio_of_means};

/// Code of the reason against a result whose overhead is above the limit.
pub(super) const OBSERVER_EFFECT: &str = "observer_effect";

/// What instrumented iterations took beside bare ones of the same prompts, interleaved with them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObserverEffect {
    /// Pairs of a bare and an instrumented iteration.
    pub pairs: u64,
    /// What the instrumented iterations had that the bare ones had not.
    pub covers: Observed,
    /// Most overhead in per cent with which the result is valid; `null` where none was asked for.
    pub max_overhead_pct: Option<f64>,
    /// Time of the prefill of one batch.
    pub prefill_latency: Overhead,
    /// Decode time per decode step.
    pub decode_latency_per_token: Overhead,
    /// Wall time of an iteration. Under `recording_and_collectors` it ends when the collectors have had its last row.
    pub iteration_wall_time: Overhead,
}

/// What observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Observed {
    /// Marks and rows alone: collectors ran after the timed part.
    Recording,
    /// Also the collectors, which ran beside the engine.
    RecordingAndCollectors,
}

/// Mean times without and with observation. Steps that are instrumented in detail count for their share of all steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overhead {
    /// Mean of the bare iterations in milliseconds.
    pub bare_ms: Option<f64>,
    /// Mean of the instrumented iterations in milliseconds.
    pub instrumented_ms: Option<f64>,
    /// By how many per cent the second mean exceeds the first; `null` with too few pairs.
    pub overhead_pct: Option<f64>,
    /// Interval of the overhead.
    pub interval: Option<IntervalRecord>,
    /// Pairs needed for it; only where there are fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<u64>,
}

/// A bare and an instrumented iteration of the same prompts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IterationPair {
    /// Without recording.
    pub bare: Iteration,
    /// With it.
    pub instrumented: Iteration,
    /// Wall time of the bare iteration.
    pub bare_wall_ns: u64,
    /// Wall time of the instrumented one.
    pub instrumented_wall_ns: u64,
    /// Whether its prefill was recorded in detail.
    pub prefill_sampled: bool,
}

/// Fewest pairs for an observer effect. Where one step in `sampled_every` is recorded in detail two such prefills must be
/// among them, and the second may come at the end of the second window.
pub fn pairs_needed(sampled_every: Option<u32>) -> u64 {
    let windows = sampled_every
        .filter(|every| *every > 1)
        .map_or(0, |every| 2 * u64::from(every));
    windows.max(MIN_PAIRS as u64)
}

impl ObserverEffect {
    /// The effect in these pairs. `sampled_every` is of how many steps one was recorded in detail; `None` where none was.
    pub fn of(pairs: &[IterationPair], covers: Observed, sampled_every: Option<u32>) -> Self {
        let prefill = Shares::of_prefills(pairs, sampled_every);
        // An iteration has many decode steps, so each has about the right share of sampled ones.
        let decode = Shares::even(sampled_every);
        Self {
            pairs: pairs.len() as u64,
            covers,
            max_overhead_pct: None,
            prefill_latency: overhead(pairs, &prefill, |pair| {
                Some((prefill_ms(&pair.bare), prefill_ms(&pair.instrumented)))
            }),
            decode_latency_per_token: overhead(pairs, &decode, |pair| {
                decode_ms(&pair.bare).zip(decode_ms(&pair.instrumented))
            }),
            iteration_wall_time: overhead(pairs, &prefill, |pair| {
                Some((
                    pair.bare_wall_ns as f64 / 1e6,
                    pair.instrumented_wall_ns as f64 / 1e6,
                ))
            }),
        }
    }

    /// The three figures by name.
    pub fn figures(&self) -> [(&'static str, &Overhead); 3] {
        [
            ("prefill_latency", &self.prefill_latency),
            ("decode_latency_per_token", &self.decode_latency_per_token),
            ("iteration_wall_time", &self.iteration_wall_time),
        ]
    }

    /// Reasons against a result for which there is a limit.
    pub(super) fn objections(&self) -> Vec<Note> {
        self.held_against(too_much)
    }

    /// What to know about a result for which there is a limit.
    pub(super) fn doubts(&self) -> Vec<Note> {
        self.held_against(uncertain)
    }

    /// What a rule says about each figure, where there is a limit.
    fn held_against(&self, rule: fn((&str, &Overhead), f64) -> Option<Note>) -> Vec<Note> {
        let limit = self.max_overhead_pct;
        let figures = self.figures().into_iter();
        limit.map_or_else(Vec::new, |limit| {
            figures.filter_map(|figure| rule(figure, limit)).collect()
        })
    }

    /// The figures as metrics of the plugin `lm-bench`.
    pub(super) fn metrics(&self) -> impl Iterator<Item = MetricRecord> {
        self.figures().into_iter().map(|(name, figure)| MetricRecord {
            labels: BTreeMap::from([("of".to_owned(), name.to_owned())]),
            unit: "%".to_owned(),
            direction: Direction::Lower,
            formula: "(mean of the instrumented iterations / mean of the bare iterations - 1) * 100"
                .to_owned(),
            value: figure.overhead_pct.map(MetricValue::Number),
            reason: figure.overhead_pct.is_none().then(|| match figure.needs {
                Some(needs) => format!("{} pairs of iterations, needs {needs}", self.pairs),
                None => "nothing was measured for it in this run".to_owned(),
            }),
            interval: figure.interval,
            ..MetricRecord::empty("lm-bench", "observer_effect_pct", self.pairs)
        })
    }
}

/// The overhead is above the limit even at the lower end of its interval, or nothing is known about it.
fn too_much((name, overhead): (&str, &Overhead), limit: f64) -> Option<Note> {
    if let Some(needs) = overhead.needs {
        let text =
            format!("the observer effect on {name} cannot be held against {limit} %: it needs {needs} pairs");
        return Some(Note::new(OBSERVER_EFFECT, text));
    }
    let (percent, interval) = overhead.overhead_pct.zip(overhead.interval)?;
    (interval.low > limit).then(|| {
        let text = format!(
            "the observer effect on {name} is {percent:.2} %, at least {:.2} %: more than {limit} %",
            interval.low
        );
        Note::new(OBSERVER_EFFECT, text)
    })
}

/// The limit lies within the interval.
fn uncertain((name, overhead): (&str, &Overhead), limit: f64) -> Option<Note> {
    let interval = overhead.interval?;
    (interval.low <= limit && interval.high > limit).then(|| {
        let text = format!(
            "the observer effect on {name} may be up to {:.2} %: these pairs do not tell it from {limit} %; use more --num-iters",
            interval.high
        );
        Note::new("overhead_uncertain", text)
    })
}

/// How the prefills that are recorded in detail are weighed.
struct Shares {
    /// Share of each stratum in all iterations.
    of_stratum: [f64; 2],
    /// Stratum of each pair.
    stratum: Vec<usize>,
    needs: u64,
}

impl Shares {
    fn even(sampled_every: Option<u32>) -> Self {
        Self {
            of_stratum: [1.0, 0.0],
            stratum: Vec::new(),
            needs: pairs_needed(sampled_every),
        }
    }

    fn of_prefills(pairs: &[IterationPair], sampled_every: Option<u32>) -> Self {
        let Some(every) = sampled_every.filter(|every| *every > 1) else {
            return Self::even(sampled_every);
        };
        let share = 1.0 / f64::from(every);
        Self {
            of_stratum: [1.0 - share, share],
            stratum: pairs
                .iter()
                .map(|pair| usize::from(pair.prefill_sampled))
                .collect(),
            needs: pairs_needed(sampled_every),
        }
    }
}

fn overhead(
    pairs: &[IterationPair],
    shares: &Shares,
    times: impl Fn(&IterationPair) -> Option<(f64, f64)>,
) -> Overhead {
    let mut strata = shares.of_stratum.map(|share| Stratum {
        share,
        pairs: Vec::new(),
    });
    for (index, pair) in pairs.iter().enumerate() {
        let stratum = shares.stratum.get(index).copied().unwrap_or(0);
        strata[stratum].pairs.extend(times(pair));
    }
    if strata.iter().all(|stratum| stratum.pairs.is_empty()) && !pairs.is_empty() {
        return Overhead::default();
    }
    let estimate = ratio_of_means(&strata, CONFIDENCE);
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    Overhead {
        bare_ms: mean(&strata, |pair| pair.0),
        instrumented_ms: mean(&strata, |pair| pair.1),
        overhead_pct: estimate.map(|found| percent(found.ratio)),
        interval: estimate
            .map(|found| IntervalRecord::new(percent(found.interval.low), percent(found.interval.high))),
        needs: estimate.is_none().then_some(shares.needs),
    }
}

/// The mean over the strata by their shares; none where one of them has no pair.
fn mean(strata: &[Stratum], of: fn(&(f64, f64)) -> f64) -> Option<f64> {
    let counted = strata.iter().filter(|stratum| stratum.share > 0.0);
    let each = counted.map(|stratum| {
        let n = stratum.pairs.len();
        (n > 0).then(|| stratum.share * stratum.pairs.iter().map(of).sum::<f64>() / n as f64)
    });
    each.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pair whose instrumented side takes `extra` per cent more, five times as much in a sampled prefill.
    fn pair(bare_ns: u64, extra: u64, prefill_sampled: bool) -> IterationPair {
        let iteration = |prefill: u64, decode: u64| Iteration {
            prefill_ns: bare_ns * prefill / 100,
            decode_ns: 4 * bare_ns * decode / 100,
            decode_steps: 4,
            prompt_tokens: 8,
            output_tokens: 5,
        };
        let prefill = if prefill_sampled {
            100 + 5 * extra
        } else {
            100 + extra
        };
        IterationPair {
            bare: iteration(100, 100),
            instrumented: iteration(prefill, 100 + extra),
            bare_wall_ns: 5 * bare_ns,
            instrumented_wall_ns: bare_ns * prefill / 100 + 4 * bare_ns * (100 + extra) / 100,
            prefill_sampled,
        }
    }

    #[test]
    fn sampled_prefills_count_for_their_share_whatever_their_number() {
        // Of 6 pairs 2 are sampled, but only one step in 4 is: (3 * 2 % + 1 * 10 %) / 4 = 4 %.
        let sampled = [true, false, false, true, false, false];
        let pairs: Vec<_> = sampled
            .into_iter()
            .map(|sampled| pair(1_000_000, 2, sampled))
            .collect();
        let effect = ObserverEffect::of(&pairs, Observed::Recording, Some(4));
        let prefill = effect.prefill_latency;
        assert!((prefill.overhead_pct.unwrap() - 4.0).abs() < 1e-9, "{prefill:?}");
        assert_eq!((prefill.bare_ms, prefill.needs), (Some(1.0), None));
        assert!((prefill.instrumented_ms.unwrap() - 1.04).abs() < 1e-9);
        let decode = effect.decode_latency_per_token;
        assert!((decode.overhead_pct.unwrap() - 2.0).abs() < 1e-9, "{decode:?}");
        // (1.04 + 4 * 1.02) / 5 = 1.024.
        let wall = effect.iteration_wall_time;
        assert!((wall.overhead_pct.unwrap() - 2.4).abs() < 1e-9, "{wall:?}");
        let interval = wall.interval.unwrap();
        assert!(interval.low <= 2.4 + 1e-9 && interval.high >= 2.4 - 1e-9);
    }

    #[test]
    fn too_few_pairs_say_how_many_it_takes() {
        let pairs: Vec<_> = (0..8).map(|index| pair(1_000_000, 2, index == 0)).collect();
        let effect = ObserverEffect::of(&pairs, Observed::Recording, Some(8));
        let prefill = effect.prefill_latency;
        assert_eq!(
            (prefill.overhead_pct, prefill.interval, prefill.needs),
            (None, None, Some(16))
        );
        assert!(prefill.bare_ms.is_some() && effect.decode_latency_per_token.overhead_pct.is_some());
        let few = ObserverEffect::of(&pairs[..5], Observed::Recording, None);
        assert_eq!(few.prefill_latency.needs, Some(6));
        let reasons: Vec<_> = few.metrics().map(|metric| metric.reason.unwrap()).collect();
        assert_eq!(reasons[0], "5 pairs of iterations, needs 6");
        assert_eq!(
            (pairs_needed(None), pairs_needed(Some(1)), pairs_needed(Some(8))),
            (6, 6, 16)
        );
        let none = ObserverEffect::of(&[], Observed::Recording, None);
        assert_eq!(
            (none.prefill_latency.bare_ms, none.prefill_latency.needs),
            (None, Some(6))
        );
    }

    #[test]
    fn what_does_not_happen_needs_no_pairs() {
        let mut pairs = vec![pair(1_000_000, 2, false); 6];
        for pair in &mut pairs {
            (pair.bare.decode_steps, pair.instrumented.decode_steps) = (0, 0);
        }
        let effect = ObserverEffect::of(&pairs, Observed::RecordingAndCollectors, None);
        assert_eq!(effect.decode_latency_per_token, Overhead::default());
        assert!((effect.prefill_latency.overhead_pct.unwrap() - 2.0).abs() < 1e-9);
    }
}
