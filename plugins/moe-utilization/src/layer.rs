//! What one layer's router did in one phase.

use lm_bench_plugin::Fault;
use lm_bench_plugin::math::{Moments, exp, log, log1p, sqrt};

use crate::counts::{Counts, Loads};

/// One row of `moe_route`.
pub(crate) struct Routed<'a> {
    pub(crate) weight: f64,
    pub(crate) tokens: u32,
    pub(crate) top_k: u32,
    pub(crate) counts: &'a [u32],
    pub(crate) prob_sum: Option<&'a [f32]>,
    pub(crate) dropped: Option<u32>,
}

/// Sums over the rows of a layer and phase. Weighted sums estimate all steps from the sampled ones; what concerns
/// chance (the `uniform` expectations) counts only what was seen.
#[derive(Clone, Debug)]
pub(crate) struct LayerLoad {
    /// Rows with at least one assignment.
    pub(crate) rows: u64,
    pub(crate) weight: f64,
    pub(crate) tokens: f64,
    counts: Counts,
    /// `None` where a row came without.
    pub(crate) dropped: Option<f64>,
    /// Sum of `tokens * top_k`.
    pub(crate) slots: f64,
    /// Sum over rows of `weight^2 * tokens * k * (1 - k/E)`: E times the variance of an expert's load by chance.
    chance: f64,
    /// Experts with an assignment, summed over rows, and what chance would give.
    pub(crate) unique: f64,
    pub(crate) unique_uniform: f64,
    /// Logarithm of the probability that chance leaves a given expert without a token.
    log_unpicked: f64,
    pub(crate) max_vio_sum: f64,
    pub(crate) max_vio_max: f64,
    uniform: Uniform,
}

/// Expected number of distinct experts under uniform routing, kept for rows of the same shape.
#[derive(Clone, Copy, Debug, Default)]
struct Uniform {
    tokens: u32,
    top_k: u32,
    unique: f64,
    log_unpicked: f64,
}

impl LayerLoad {
    pub(crate) fn new(experts: usize) -> Self {
        Self {
            rows: 0,
            weight: 0.0,
            tokens: 0.0,
            counts: Counts::new(experts),
            dropped: Some(0.0),
            slots: 0.0,
            chance: 0.0,
            unique: 0.0,
            unique_uniform: 0.0,
            log_unpicked: 0.0,
            max_vio_sum: 0.0,
            max_vio_max: 0.0,
            uniform: Uniform::default(),
        }
    }

    pub(crate) fn experts(&self) -> f64 {
        self.counts.experts() as f64
    }

    /// Adds a row and returns its `MaxVio`; `None` when it assigned nothing.
    pub(crate) fn add(&mut self, row: &Routed<'_>) -> Result<Option<f64>, Fault> {
        self.check(row)?;
        let weight = row.weight;
        let counted = self.counts.add(weight, row.counts, row.prob_sum);
        if counted.largest > row.tokens {
            let (largest, tokens) = (counted.largest, row.tokens);
            return Err(Fault::data(format!(
                "an expert has {largest} assignments of {tokens} tokens"
            )));
        }
        self.dropped = self
            .dropped
            .zip(row.dropped)
            .map(|(sum, n)| sum + weight * f64::from(n));
        if counted.assigned == 0 {
            return Ok(None);
        }
        let uniform = self.uniform(row);
        let picks = f64::from(row.tokens) * f64::from(row.top_k);
        self.rows += 1;
        self.weight += weight;
        self.tokens += weight * f64::from(row.tokens);
        self.slots += weight * picks;
        self.chance += weight * weight * picks * (1.0 - f64::from(row.top_k) / self.experts());
        self.unique += weight * f64::from(counted.unique);
        self.unique_uniform += weight * uniform.unique;
        self.log_unpicked += uniform.log_unpicked;
        let max_vio = f64::from(counted.largest) * self.experts() / counted.assigned as f64 - 1.0;
        self.max_vio_sum += weight * max_vio;
        self.max_vio_max = self.max_vio_max.max(max_vio);
        Ok(Some(max_vio))
    }

    fn check(&self, row: &Routed<'_>) -> Result<(), Fault> {
        let (had, has) = (self.counts.experts(), row.counts.len());
        if had != has {
            return Err(Fault::data(format!(
                "the layer had {had} experts before and has {has} now"
            )));
        }
        if row.top_k as usize > has {
            return Err(Fault::data(format!("{} of {has} experts per token", row.top_k)));
        }
        if row.prob_sum.is_some_and(|prob| prob.len() != has) {
            return Err(Fault::data("counts and prob_sum differ in length"));
        }
        Ok(())
    }

    /// A token leaves a given expert out with probability `1 - k/E`.
    fn uniform(&mut self, row: &Routed<'_>) -> Uniform {
        if (self.uniform.tokens, self.uniform.top_k) != (row.tokens, row.top_k) {
            let keeps_out = log1p(-f64::from(row.top_k) / self.experts());
            let log_unpicked = f64::from(row.tokens) * keeps_out;
            self.uniform = Uniform {
                tokens: row.tokens,
                top_k: row.top_k,
                unique: self.experts() * (1.0 - exp(log_unpicked)),
                log_unpicked,
            };
        }
        self.uniform
    }

    pub(crate) fn dead_uniform(&self) -> f64 {
        self.experts() * exp(self.log_unpicked)
    }

    /// The coefficient of variation that uniform random routing would give.
    pub(crate) fn cv_noise_floor(&self) -> f64 {
        sqrt(self.chance * self.experts()) / self.slots
    }

    /// The loads of its experts.
    pub(crate) fn loads(&self) -> Loads {
        self.counts.loads()
    }
}

impl Loads {
    fn experts(&self) -> f64 {
        self.load.len() as f64
    }

    /// All assignments.
    pub(crate) fn assigned(&self) -> f64 {
        self.load.iter().sum()
    }

    /// Assignments to the most loaded expert.
    pub(crate) fn largest(&self) -> f64 {
        self.load.iter().copied().fold(0.0, f64::max)
    }

    /// Experts with an assignment.
    pub(crate) fn active(&self) -> f64 {
        self.load.iter().filter(|&&load| load > 0.0).count() as f64
    }

    /// Coefficient of variation of the experts' loads.
    pub(crate) fn cv(&self) -> f64 {
        let mut loads = Moments::default();
        for &load in &self.load {
            loads.add(load);
        }
        loads.std_dev().unwrap_or(0.0) / (self.assigned() / self.experts())
    }

    /// Entropy of the load shares over that of equal shares; `None` for a single expert.
    pub(crate) fn entropy(&self) -> Option<f64> {
        if self.load.len() < 2 {
            return None;
        }
        let assigned = self.assigned();
        let shares = self
            .load
            .iter()
            .map(|load| load / assigned)
            .filter(|&share| share > 0.0);
        Some(-shares.map(|share| share * log(share)).sum::<f64>() / log(self.experts()))
    }

    /// Balance loss; `None` without router probabilities.
    pub(crate) fn balance_loss(&self) -> Option<f64> {
        let prob = self.prob.as_ref()?;
        let total: f64 = prob.iter().sum();
        if total <= 0.0 {
            return None;
        }
        let product: f64 = self.load.iter().zip(prob).map(|(load, prob)| load * prob).sum();
        Some(self.experts() * product / (self.assigned() * total))
    }
}
