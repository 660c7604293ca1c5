//! What quantising a tensor did to it.

/// Which direction of a matrix counts as a channel for the median SQNR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelAxis {
    /// Each row is a channel: the outputs of a weight matrix.
    Rows,
    /// Each column is a channel: the features of activations, where outliers live.
    Columns,
}

/// Sums over one or more quantised tensors. Non-finite inputs are counted and left out of all sums.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QuantError {
    /// Values seen.
    pub n: u64,
    /// Largest finite magnitude.
    pub amax: f32,
    /// Largest scale used (value = code × scale).
    pub scale: f32,
    /// Σ x².
    pub sum_sq_ref: f64,
    /// Σ (x̂ − x)².
    pub sum_sq_err: f64,
    /// Largest |x̂ − x|.
    pub max_abs_err: f32,
    /// Values whose scaled magnitude was above 448 before the cast.
    pub saturated: u64,
    /// Values other than 0 that became 0.
    pub underflow: u64,
    /// Infinities and NaNs in the input.
    pub nonfinite: u64,
    /// Σ x² and Σ (x̂ − x)² per channel.
    pub(super) channels: Vec<(f64, f64)>,
}

impl QuantError {
    pub(super) fn with_channels(count: usize) -> Self {
        Self {
            channels: vec![(0.0, 0.0); count],
            ..Self::default()
        }
    }

    /// Adds more rows of the same columns, channel to channel (activations of another expert).
    pub fn merge(&mut self, other: &Self) {
        self.add_totals(other);
        if self.channels.len() < other.channels.len() {
            self.channels.resize(other.channels.len(), (0.0, 0.0));
        }
        for (mine, theirs) in self.channels.iter_mut().zip(&other.channels) {
            mine.0 += theirs.0;
            mine.1 += theirs.1;
        }
    }

    /// Adds another matrix whose channels are its own (the weight of another expert).
    pub fn append(&mut self, other: Self) {
        self.add_totals(&other);
        self.channels.extend(other.channels);
    }

    fn add_totals(&mut self, other: &Self) {
        self.n += other.n;
        self.amax = self.amax.max(other.amax);
        self.scale = self.scale.max(other.scale);
        self.sum_sq_ref += other.sum_sq_ref;
        self.sum_sq_err += other.sum_sq_err;
        self.max_abs_err = self.max_abs_err.max(other.max_abs_err);
        self.saturated += other.saturated;
        self.underflow += other.underflow;
        self.nonfinite += other.nonfinite;
    }

    /// Median over channels of 10·log₁₀(Σx² / Σ(x̂−x)²), in dB. A channel without error counts as infinite, one
    /// without signal not at all; infinite if no channel has a signal.
    pub fn sqnr_channel_p50(&self) -> f64 {
        let with_signal = self.channels.iter().filter(|(signal, _)| *signal > 0.0);
        let mut decibels: Vec<f64> = with_signal
            .map(|(signal, error)| 10.0 * (signal / error).log10())
            .collect();
        decibels.sort_by(f64::total_cmp);
        let n = decibels.len();
        match n {
            0 => f64::INFINITY,
            _ if n % 2 == 1 => decibels[n / 2],
            _ => f64::midpoint(decibels[n / 2 - 1], decibels[n / 2]),
        }
    }
}
