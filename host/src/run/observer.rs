//! Which iteration of a pair comes first, and what the pairs say.

use lm_bench_plugin::Level;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::RunError;
use crate::plan::{Collect, RunPlan};
use crate::report::{IterationPair, Observed, ObserverEffect, pairs_needed};

/// Keeps the draws apart from those of prompts with the same seed.
const STREAM: u64 = 0x6f62_7365_7276_6572;

/// For each pair whether its bare iteration comes first. Of two successive pairs each order occurs once, so that a steady
/// drift of the machine cancels, and a seeded coin says which comes first, so that no rhythm of the machine can follow.
pub(super) fn bare_first(seed: u64) -> impl Iterator<Item = bool> {
    let mut coin = Pcg64Mcg::seed_from_u64(seed ^ STREAM);
    std::iter::repeat_with(move || coin.random_bool(0.5)).flat_map(|first| [first, !first])
}

/// What the pairs say.
pub(super) fn effect(plan: &RunPlan, pairs: &[IterationPair], sampled_every: Option<u32>) -> ObserverEffect {
    let covers = match plan.collect {
        Collect::Live => Observed::RecordingAndCollectors,
        Collect::After => Observed::Recording,
    };
    ObserverEffect {
        max_overhead_pct: plan.max_overhead.map(|limit| limit.percent()),
        ..ObserverEffect::of(pairs, covers, sampled_every)
    }
}

/// Refuses a limit that so few iterations could surely not be held against, before the model is loaded. What the collectors
/// want is not known yet: the advice is enough for whatever they do.
pub(super) fn check_pairs_of_plan(plan: &RunPlan) -> Result<(), RunError> {
    let sampled = (Level::from(plan.instrument) >= Level::Ops).then_some(plan.sample_every);
    refuse_fewer(plan, pairs_needed(sampled), pairs_needed(Some(plan.sample_every)))
}

/// Refuses a limit that so few iterations could not be held against, before they are run.
pub(super) fn check_pairs(plan: &RunPlan, sampled_every: Option<u32>) -> Result<(), RunError> {
    let needs = pairs_needed(sampled_every);
    refuse_fewer(plan, needs, needs)
}

fn refuse_fewer(plan: &RunPlan, needs: u64, enough: u64) -> Result<(), RunError> {
    match plan.max_overhead {
        Some(limit) if u64::from(plan.num_iters) < needs => Err(RunError::Unsupported(format!(
            "{} iterations are too few to hold the observer effect against {limit}: use --num-iters {enough} or more, or leave out --max-overhead",
            plan.num_iters
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Instrument;

    #[test]
    fn two_successive_pairs_have_both_orders() {
        let order: Vec<bool> = bare_first(7).take(400).collect();
        assert!(order.chunks(2).all(|two| two[0] != two[1]));
        let first = order.chunks(2).filter(|two| two[0]).count();
        // 200 coins: mean 100, deviation 7.07; six of them are 42.
        assert!((58..=142).contains(&first), "{first}");
        assert_eq!(order, bare_first(7).take(400).collect::<Vec<_>>());
        assert_ne!(order, bare_first(8).take(400).collect::<Vec<_>>());
    }

    #[test]
    fn a_limit_needs_enough_pairs() {
        let plan = |num_iters| RunPlan {
            observer_effect: true,
            max_overhead: Some("1%".parse().expect("an overhead")),
            num_iters,
            ..RunPlan::default()
        };
        assert!(check_pairs(&plan(6), None).is_ok() && check_pairs(&plan(16), Some(8)).is_ok());
        let error = check_pairs(&plan(15), Some(8)).expect_err("too few").to_string();
        assert_eq!(
            error,
            "15 iterations are too few to hold the observer effect against 1%: use --num-iters 16 or more, or leave out --max-overhead"
        );
        let level = |num_iters, instrument| {
            check_pairs_of_plan(&RunPlan {
                instrument,
                ..plan(num_iters)
            })
        };
        assert!(level(6, Instrument::Steps).is_ok() && level(16, Instrument::Ops).is_ok());
        for refused in [level(5, Instrument::Steps), level(15, Instrument::Ops)] {
            let error = refused.expect_err("too few").to_string();
            assert!(error.contains("--num-iters 16 or more"), "{error}");
        }
        let unlimited = RunPlan {
            max_overhead: None,
            ..plan(1)
        };
        assert!(check_pairs(&unlimited, Some(8)).is_ok());
    }
}
