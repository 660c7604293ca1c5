//! Transcendental functions and sums that give the same bits on each platform and through every door.
//!
//! The functions of `std` go to the platform's library and differ between native code and WASM in the last bit.

pub use libm::{cbrt, ceil, cos, exp, exp2, fabs, floor, log, log1p, log2, log10, pow, sin, sqrt, tanh};

/// A running sum with Neumaier's compensation: its error does not grow with the number of terms.
///
/// A. Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", ZAMM 54 (1974).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    sum: f64,
    compensation: f64,
}

impl Sum {
    /// Adds a term.
    #[inline]
    pub fn add(&mut self, term: f64) {
        let total = self.sum + term;
        self.compensation += if fabs(self.sum) >= fabs(term) {
            (self.sum - total) + term
        } else {
            (term - total) + self.sum
        };
        self.sum = total;
    }

    /// The sum of all terms.
    pub fn value(&self) -> f64 {
        self.sum + self.compensation
    }
}

/// Count, mean and variance in one pass (Welford's recurrence).
///
/// B. P. Welford, "Note on a method for calculating corrected sums of squares and products", Technometrics 4 (1962).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        let delta = value - self.mean;
        self.mean += delta / self.count as f64;
        self.squares += delta * (value - self.mean);
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// Population standard deviation (divides by n); `None` without values.
    pub fn std_dev(&self) -> Option<f64> {
        (self.count > 0).then(|| sqrt(self.squares / self.count as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compensated_sum_keeps_what_plain_summation_loses() {
        let mut sum = Sum::default();
        for term in [1.0, 1e100, 1.0, -1e100] {
            sum.add(term);
        }
        assert_eq!(sum.value(), 2.0);
    }

    #[test]
    fn moments_of_a_textbook_sample() {
        // 2 4 4 4 5 5 7 9: mean 5, population standard deviation 2.
        let mut moments = Moments::default();
        for value in [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0] {
            moments.add(value);
        }
        assert_eq!(moments.mean(), Some(5.0));
        assert_eq!(moments.std_dev(), Some(2.0));
        assert_eq!(Moments::default().mean(), None);
    }
}
