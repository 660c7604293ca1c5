//! Which forward passes are instrumented in detail.

use lm_bench_plugin::kinds::phase;

/// Steps are sampled apart by phase, so that a workload of one prefill and many decode steps yields both.
const PHASES: usize = 4;

/// Chooses one step of each `every` consecutive ones of a phase. The first step of a phase is always chosen; in
/// later windows the position varies (from a fixed sequence, so that runs agree), because a constant one would
/// always meet the same step of a workload whose length is a multiple of `every`.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    every: u64,
    phases: [PhaseSteps; PHASES],
}

#[derive(Clone, Copy, Debug, Default)]
struct PhaseSteps {
    steps: u64,
    pick: u64,
}

impl Sampler {
    /// `every` is at least 1.
    pub(super) fn new(every: u32) -> Self {
        Self {
            every: u64::from(every),
            phases: [PhaseSteps::default(); PHASES],
        }
    }

    /// Counts a step of the given phase and says whether it is chosen.
    pub(super) fn choose(&mut self, phase_code: u8) -> bool {
        let index = phase_index(phase_code);
        let phase = &mut self.phases[index];
        let position = phase.steps % self.every;
        let window = phase.steps / self.every;
        if position == 0 {
            phase.pick = pick(window, index, self.every);
        }
        phase.steps += 1;
        position == phase.pick
    }
}

/// Of the first `steps` measured steps of a phase, those that are instrumented in detail if one in `every` (at least
/// 1) is.
pub fn sampled_steps(every: u32, steps: u64, phase_code: u8) -> u64 {
    let every = u64::from(every);
    let (windows, rest) = (steps / every, steps % every);
    windows + u64::from(pick(windows, phase_index(phase_code), every) < rest)
}

fn phase_index(phase_code: u8) -> usize {
    usize::from(phase_code.min(phase::LOAD))
}

/// The position of the chosen step in a window.
fn pick(window: u64, phase: usize, every: u64) -> u64 {
    match window {
        0 => 0,
        _ => mix(window, phase as u64) % every,
    }
}

/// The finaliser of `SplitMix64` (Steele, Lea and Flood 2014), good enough to spread positions.
fn mix(window: u64, phase: u64) -> u64 {
    let mut z = window.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(phase);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_step_of_each_window_is_chosen() {
        let mut sampler = Sampler::new(8);
        let chosen: Vec<bool> = (0..800).map(|_| sampler.choose(phase::DECODE)).collect();
        assert!(chosen[0]);
        for window in chosen.chunks(8) {
            assert_eq!(window.iter().filter(|&&chosen| chosen).count(), 1);
        }
    }

    #[test]
    fn sampled_steps_are_foretold() {
        for (every, phase) in [(8, phase::PREFILL), (8, phase::DECODE), (5, phase::MIXED), (1, 0)] {
            let mut sampler = Sampler::new(every);
            let mut chosen = 0;
            for steps in 0..500 {
                assert_eq!(
                    sampled_steps(every, steps, phase),
                    chosen,
                    "1 in {every} of {steps}"
                );
                chosen += u64::from(sampler.choose(phase));
            }
        }
    }

    #[test]
    fn positions_vary_so_that_a_periodic_workload_is_covered() {
        let mut sampler = Sampler::new(8);
        let chosen = (0..8_000).filter(|_| sampler.choose(phase::DECODE));
        let mut by_position = [0; 8];
        chosen.for_each(|step| by_position[step % 8] += 1);
        // 1,000 windows over 8 positions: 125 each; the binomial deviation is 10.5, six of them are 63.
        assert!(
            by_position.iter().all(|&count| (62..=188).contains(&count)),
            "{by_position:?}"
        );
    }

    #[test]
    fn each_phase_is_sampled_on_its_own() {
        let mut sampler = Sampler::new(4);
        let mut prefill = 0;
        for _ in 0..40 {
            prefill += u32::from(sampler.choose(phase::PREFILL));
            for _ in 0..3 {
                sampler.choose(phase::DECODE);
            }
        }
        assert_eq!(prefill, 10);
    }

    #[test]
    fn an_interval_of_one_chooses_every_step() {
        let mut sampler = Sampler::new(1);
        assert!((0..20).all(|_| sampler.choose(phase::MIXED)));
        assert!(sampler.choose(200));
    }
}
