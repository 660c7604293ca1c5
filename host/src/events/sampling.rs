//! Which forward passes are instrumented in detail.

use lm_bench_plugin::kinds::phase;

/// Steps are sampled apart by phase, so that a workload of one prefill and many decode steps yields both.
const STRATA: usize = 4;

/// Chooses one step of each `every` consecutive ones of a phase. The first step of a phase is always chosen; in
/// later windows the position varies (from a fixed sequence, so that runs agree), because a constant one would
/// always meet the same step of a workload whose length is a multiple of `every`.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    every: u64,
    strata: [Stratum; STRATA],
}

#[derive(Clone, Copy, Debug, Default)]
struct Stratum {
    steps: u64,
    pick: u64,
}

impl Sampler {
    /// `every` is at least 1.
    pub(super) fn new(every: u32) -> Self {
        Self {
            every: u64::from(every),
            strata: [Stratum::default(); STRATA],
        }
    }

    /// Counts a step of the given phase and says whether it is chosen.
    pub(super) fn choose(&mut self, phase_code: u8) -> bool {
        let index = usize::from(phase_code.min(phase::LOAD));
        let stratum = &mut self.strata[index];
        let position = stratum.steps % self.every;
        let window = stratum.steps / self.every;
        if position == 0 {
            stratum.pick = if window == 0 {
                0
            } else {
                mix(window, index as u64) % self.every
            };
        }
        stratum.steps += 1;
        position == stratum.pick
    }
}

/// The finaliser of `SplitMix64` (Steele, Lea and Flood 2014), good enough to spread positions.
fn mix(window: u64, stratum: u64) -> u64 {
    let mut z = window.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(stratum);
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
