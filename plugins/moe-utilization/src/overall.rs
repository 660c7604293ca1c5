//! Figures over the layers of a phase.

use lm_bench_plugin::math::sqrt;

use crate::layer::LayerLoad;

/// A sum and how many terms it has.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    terms: f64,
}

impl Mean {
    fn add(&mut self, term: f64) {
        self.sum += term;
        self.terms += 1.0;
    }

    fn get(self) -> Option<f64> {
        (self.terms > 0.0).then(|| self.sum / self.terms)
    }
}

/// Sums over layers, and maxima of what was computed within each layer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overall {
    pub(crate) rows: u64,
    pub(crate) weight: f64,
    pub(crate) tokens: f64,
    pub(crate) assigned: f64,
    pub(crate) dropped: Option<f64>,
    pub(crate) slots: f64,
    pub(crate) experts: f64,
    pub(crate) active: f64,
    pub(crate) dead_uniform: f64,
    pub(crate) unique: f64,
    pub(crate) unique_uniform: f64,
    pub(crate) mean_loads: f64,
    pub(crate) largest_loads: f64,
    pub(crate) share_max: f64,
    pub(crate) max_vio: f64,
    /// Assignments to the expert of each index, over layers.
    pub(crate) loads: Vec<f64>,
    cv_squared: Mean,
    floor_squared: Mean,
    entropy: Mean,
    balance: Mean,
}

impl Overall {
    pub(crate) fn of<'a>(layers: impl Iterator<Item = &'a LayerLoad>) -> Self {
        let mut all = Self {
            dropped: Some(0.0),
            ..Self::default()
        };
        for layer in layers {
            all.add(layer);
        }
        all
    }

    fn add(&mut self, layer: &LayerLoad) {
        let loads = layer.loads();
        let (assigned, largest) = (loads.assigned(), loads.largest());
        self.rows += layer.rows;
        self.weight += layer.weight;
        self.tokens += layer.tokens;
        self.assigned += assigned;
        self.dropped = self
            .dropped
            .zip(layer.dropped)
            .map(|(sum, dropped)| sum + dropped);
        self.slots += layer.slots;
        self.experts += layer.experts();
        self.active += loads.active();
        self.dead_uniform += layer.dead_uniform();
        self.unique += layer.unique;
        self.unique_uniform += layer.unique_uniform;
        self.mean_loads += assigned / layer.experts();
        self.largest_loads += largest;
        self.share_max = self.share_max.max(largest / assigned);
        self.max_vio = self.max_vio.max(largest * layer.experts() / assigned - 1.0);
        if self.loads.len() < loads.load.len() {
            self.loads.resize(loads.load.len(), 0.0);
        }
        for (sum, load) in self.loads.iter_mut().zip(&loads.load) {
            *sum += load;
        }
        self.cv_squared.add(loads.cv() * loads.cv());
        self.floor_squared
            .add(layer.cv_noise_floor() * layer.cv_noise_floor());
        if let Some(entropy) = loads.entropy() {
            self.entropy.add(entropy);
        }
        if let Some(balance) = loads.balance_loss() {
            self.balance.add(balance);
        }
    }

    pub(crate) fn cv(&self) -> f64 {
        sqrt(self.cv_squared.get().unwrap_or(0.0))
    }

    pub(crate) fn cv_noise_floor(&self) -> f64 {
        sqrt(self.floor_squared.get().unwrap_or(0.0))
    }

    pub(crate) fn entropy(&self) -> Option<f64> {
        self.entropy.get()
    }

    pub(crate) fn balance_loss(&self) -> Option<f64> {
        self.balance.get()
    }
}
