//! The regularised incomplete beta function, from which binomial and Student's t tails follow.

use libm::{exp, fabs, lgamma, log, log1p, sqrt};

/// Regularised incomplete beta function `I_x(a, b)` for `a, b > 0`, `0 <= x <= 1`: the continued fraction of NIST DLMF
/// 8.17.22 by Lentz's method (Thompson and Barnett, J. Comput. Phys. 64, 1986). Relative error about 1e-10.
pub(super) fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast only below the mean; above it use I_x(a, b) = 1 - I_{1-x}(b, a).
    if x < (a + 1.0) / (a + b + 2.0) {
        front(a, b, x) * fraction(a, b, x) / a
    } else {
        1.0 - front(b, a, 1.0 - x) * fraction(b, a, 1.0 - x) / b
    }
}

/// `x^a (1-x)^b / B(a, b)`.
fn front(a: f64, b: f64, x: f64) -> f64 {
    exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
}

fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if fabs(value) < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    // Converges within a few square roots of the larger parameter.
    let most = 200 + (20.0 * sqrt(a.max(b))) as u32;
    for step in 1..=most {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        result *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        let factor = d * c;
        result *= factor;
        if fabs(factor - 1.0) < 1e-14 {
            break;
        }
    }
    result
}

/// `P(B <= k)` for `B` binomial with `n` trials of probability `p` (DLMF 8.17.5).
pub(super) fn binomial_at_most(k: u64, n: u64, p: f64) -> f64 {
    if k >= n {
        1.0
    } else {
        incomplete_beta((n - k) as f64, k as f64 + 1.0, 1.0 - p)
    }
}

/// The `t` that Student's distribution with `freedom >= 1` degrees of freedom exceeds with probability `tail < 0.5`.
pub(super) fn student_t(freedom: f64, tail: f64) -> f64 {
    // P(T > t) = I_{v / (v + t^2)}(v/2, 1/2) / 2, falling in t: bracket, then halve to the last bit.
    let exceeds = |t: f64| incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t)) / 2.0 > tail;
    let (mut low, mut high) = (0.0, 1.0);
    while exceeds(high) && high < 1e12 {
        low = high;
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if exceeds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, want: f64, tolerance: f64) {
        assert!(
            (got - want).abs() <= tolerance * want.abs().max(1e-300),
            "{got} is not {want}"
        );
    }

    #[test]
    fn incomplete_beta_of_integers_is_a_polynomial() {
        // I_x(1, 1) = x; I_x(2, 1) = x^2; I_x(1, b) = 1 - (1-x)^b; I_x(2, 3) = 6x^2 - 8x^3 + 3x^4.
        close(incomplete_beta(1.0, 1.0, 0.3), 0.3, 1e-13);
        close(incomplete_beta(2.0, 1.0, 0.3), 0.09, 1e-13);
        close(incomplete_beta(1.0, 7.0, 0.9), 1.0 - 1e-7, 1e-13);
        close(
            incomplete_beta(2.0, 3.0, 0.4),
            6.0 * 0.16 - 8.0 * 0.064 + 3.0 * 0.0256,
            1e-13,
        );
        assert_eq!(
            (incomplete_beta(2.0, 3.0, 0.0), incomplete_beta(2.0, 3.0, 1.0)),
            (0.0, 1.0)
        );
    }

    #[test]
    fn binomial_tails_of_ten_coins() {
        // Of 1024 outcomes 1 has no head, 10 one, 45 two: 1, 11 and 56 at most 0, 1 and 2.
        for (k, outcomes) in [(0, 1.0), (1, 11.0), (2, 56.0), (9, 1023.0), (10, 1024.0)] {
            close(binomial_at_most(k, 10, 0.5), outcomes / 1024.0, 1e-12);
        }
    }

    #[test]
    fn binomial_tail_of_a_million_trials_is_the_normal_one() {
        // 9,900 failures in a million at 1 % lie (10,000 - 9,900 - 0.5) / sqrt(9,900) = 1.0000 deviations below the
        // mean; the normal tail there is 0.1587, the skewness term of Edgeworth's expansion vanishes at 1 deviation.
        close(binomial_at_most(9_900, 1_000_000, 0.01), 0.158_655, 2e-3);
    }

    #[test]
    fn student_t_agrees_with_the_printed_tables() {
        // NIST/SEMATECH e-Handbook 1.3.6.7.2, upper tail 0.025; the last is the normal quantile.
        for (freedom, t) in [
            (1.0, 12.706),
            (2.0, 4.303),
            (9.0, 2.262),
            (29.0, 2.045),
            (100.0, 1.984),
        ] {
            close(student_t(freedom, 0.025), t, 3e-4);
        }
        close(student_t(1e6, 0.025), 1.959_966, 1e-5);
        close(student_t(1.0, 0.025), 12.706_204_736, 1e-9);
    }
}
