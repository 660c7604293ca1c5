//! Sums over quantised tensors.

use std::collections::BTreeMap;

use lm_bench_plugin::Fault;
use lm_bench_plugin::math::{Sum, log10, sqrt};

/// Steps of the histogram of channel medians per dB, and the values it spans.
const PER_DB: f64 = 100.0;
const MOST_DB: f64 = 1000.0;

/// The error columns of one row of `quant`.
pub(crate) struct Quantised {
    pub(crate) weight: f64,
    pub(crate) n: u64,
    pub(crate) sum_sq_ref: f64,
    pub(crate) sum_sq_err: f64,
    pub(crate) sqnr_channel_p50: f32,
    pub(crate) max_abs_err: f32,
    pub(crate) saturated: u64,
    pub(crate) underflow: u64,
    pub(crate) nonfinite: u64,
}

impl Quantised {
    /// Refuses what cannot be.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let n = self.n;
        for (what, count) in [
            ("saturated", self.saturated),
            ("underflow", self.underflow),
            ("nonfinite", self.nonfinite),
        ] {
            if count > n {
                return Err(Fault::data(format!("{what} is {count} of {n} values")));
            }
        }
        if self.sum_sq_ref < 0.0 || self.sum_sq_err < 0.0 {
            return Err(Fault::data("a sum of squares is negative"));
        }
        Ok(())
    }
}

/// Sums, each row counted by its weight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) rows: u64,
    n: f64,
    sum_sq_ref: Sum,
    sum_sq_err: Sum,
    max_abs_err: f64,
    saturated: f64,
    underflow: f64,
    nonfinite: f64,
    /// Rows by their channel median in 1/100 dB; `i32::MAX` stands for infinite.
    channel_medians: BTreeMap<i32, u64>,
}

pub(crate) type Figure = Result<f64, &'static str>;

const NO_VALUE: &str = "the tensors have no values";
const ALL_ZERO: &str = "all values are 0";
const NO_ERROR: &str = "quantisation changed no value";

impl Totals {
    pub(crate) fn add(&mut self, row: &Quantised) {
        self.rows += 1;
        self.n += row.weight * row.n as f64;
        self.sum_sq_ref.add(row.weight * row.sum_sq_ref);
        self.sum_sq_err.add(row.weight * row.sum_sq_err);
        self.max_abs_err = self.max_abs_err.max(f64::from(row.max_abs_err));
        self.saturated += row.weight * row.saturated as f64;
        self.underflow += row.weight * row.underflow as f64;
        self.nonfinite += row.weight * row.nonfinite as f64;
        let median = f64::from(row.sqnr_channel_p50);
        if !median.is_nan() {
            let bucket = if median == f64::INFINITY {
                i32::MAX
            } else {
                (median.clamp(-MOST_DB, MOST_DB) * PER_DB).round_ties_even() as i32
            };
            *self.channel_medians.entry(bucket).or_insert(0) += 1;
        }
    }

    /// Relative error.
    pub(crate) fn l2(&self) -> Figure {
        self.over_signal().map(sqrt)
    }

    fn over_signal(&self) -> Figure {
        let signal = self.sum_sq_ref.value();
        if signal > 0.0 {
            Ok(self.sum_sq_err.value() / signal)
        } else {
            Err(ALL_ZERO)
        }
    }

    pub(crate) fn sqnr_db(&self) -> Figure {
        match self.over_signal()? {
            noise if noise > 0.0 => Ok(-10.0 * log10(noise)),
            _ => Err(NO_ERROR),
        }
    }

    /// Median (the lower one of an even number) over rows of each row's median over channels.
    pub(crate) fn sqnr_channel_p50_db(&self) -> Figure {
        let rows: u64 = self.channel_medians.values().sum();
        let mut below = 0;
        for (&bucket, count) in &self.channel_medians {
            below += count;
            if 2 * below >= rows {
                return if bucket == i32::MAX {
                    Err(NO_ERROR)
                } else {
                    Ok(f64::from(bucket) / PER_DB)
                };
            }
        }
        Err("no median over channels was recorded")
    }

    pub(crate) fn max_abs_error(&self) -> Figure {
        Ok(self.max_abs_err)
    }

    pub(crate) fn saturation(&self) -> Figure {
        self.share(self.saturated)
    }

    pub(crate) fn underflow(&self) -> Figure {
        self.share(self.underflow)
    }

    pub(crate) fn nonfinite(&self) -> Figure {
        self.share(self.nonfinite)
    }

    fn share(&self, count: f64) -> Figure {
        if self.n > 0.0 {
            Ok(count / self.n)
        } else {
            Err(NO_VALUE)
        }
    }
}
