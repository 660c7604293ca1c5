//! Mixture of experts: routing, and experts on the tokens sent to them.

use super::rows::{add_scaled, softmax};
use crate::engine::marks::RouterSums;
use crate::model::ExpertConfig;

/// Where the tokens of one layer and step go.
pub(super) struct Routing {
    pub(super) per_token: usize,
    /// `[tokens, per_token]`, best first.
    pub(super) experts: Vec<u32>,
    /// Weights of the chosen experts, as `experts`.
    pub(super) gates: Vec<f32>,
    /// Router probabilities, `[tokens, experts]`.
    probabilities: Vec<f32>,
}

/// Softmax over all experts, then the `per_token` most probable (of equals the first), divided by their sum where the
/// model says so. Mixtral's softmax over the chosen logits is the same as this with the division.
pub(super) fn route(mut logits: Vec<f32>, config: &ExpertConfig) -> Routing {
    let tokens = logits.len() / config.count;
    let mut experts = Vec::with_capacity(tokens * config.per_token);
    let mut gates = Vec::with_capacity(tokens * config.per_token);
    let mut order: Vec<u32> = Vec::with_capacity(config.count);
    for probabilities in logits.chunks_exact_mut(config.count) {
        softmax(probabilities);
        order.clear();
        order.extend(0..config.count as u32);
        // A stable sort keeps the lower number first among equals.
        order.sort_by(|&a, &b| probabilities[b as usize].total_cmp(&probabilities[a as usize]));
        let chosen = &order[..config.per_token];
        let sum: f32 = chosen.iter().map(|&e| probabilities[e as usize]).sum();
        let divisor = if config.normalise_gates { sum } else { 1.0 };
        experts.extend_from_slice(chosen);
        gates.extend(chosen.iter().map(|&e| probabilities[e as usize] / divisor));
    }
    Routing {
        per_token: config.per_token,
        experts,
        gates,
        probabilities: logits,
    }
}

impl Routing {
    /// Tokens sent to each of `count` experts, and probabilities summed over tokens.
    pub(super) fn sums(&self, count: usize) -> RouterSums {
        let mut counts = vec![0; count];
        for &expert in &self.experts {
            counts[expert as usize] += 1;
        }
        let mut sums = vec![0.0f64; count];
        for probabilities in self.probabilities.chunks_exact(count) {
            for (sum, &p) in sums.iter_mut().zip(probabilities) {
                *sum += f64::from(p);
            }
        }
        RouterSums {
            counts,
            prob_sum: sums.iter().map(|&sum| sum as f32).collect(),
        }
    }

    /// The tokens sent to `expert`, with their gates.
    pub(super) fn tokens_of(&self, expert: u32) -> Vec<(usize, f32)> {
        self.experts
            .iter()
            .zip(&self.gates)
            .enumerate()
            .filter(|(_, (e, _))| **e == expert)
            .map(|(i, (_, gate))| (i / self.per_token, *gate))
            .collect()
    }
}

/// The rows of `x` that belong to `tokens`, one after the other.
pub(super) fn gather(x: &[f32], width: usize, tokens: &[(usize, f32)]) -> Vec<f32> {
    let mut out = Vec::with_capacity(tokens.len() * width);
    for &(token, _) in tokens {
        out.extend_from_slice(&x[token * width..(token + 1) * width]);
    }
    out
}

/// Adds one expert's rows, times their gates, to the rows of their tokens.
pub(super) fn scatter_add(out: &mut [f32], width: usize, (rows, tokens): (&[f32], &[(usize, f32)])) {
    for (row, &(token, gate)) in rows.chunks_exact(width).zip(tokens) {
        add_scaled(&mut out[token * width..(token + 1) * width], row, gate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: ExpertConfig = ExpertConfig {
        count: 4,
        per_token: 2,
        intermediate: 1,
        normalise_gates: true,
    };

    #[test]
    fn routing_by_hand() {
        // exp of the logits is 1, 2, 4, 1 and 3, 3, 1, 1: probabilities are eighths.
        let ln = f32::ln;
        let logits = vec![0.0, ln(2.0), ln(4.0), 0.0, ln(3.0), ln(3.0), 0.0, 0.0];
        let r = route(logits.clone(), &CONFIG);
        assert_eq!(r.experts, [2, 1, 0, 1], "ties go to the lower number");
        let expected = [4.0 / 6.0, 2.0 / 6.0, 0.5, 0.5];
        assert!(
            r.gates.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6),
            "{:?}",
            r.gates
        );
        let found = r.sums(4);
        assert_eq!(found.counts, [1, 2, 1, 0]);
        let sums = [4.0 / 8.0, 5.0 / 8.0, 5.0 / 8.0, 2.0 / 8.0];
        assert!(
            found.prob_sum.iter().zip(sums).all(|(a, b)| (a - b).abs() < 1e-6),
            "{:?}",
            found.prob_sum
        );
        assert_eq!(r.tokens_of(1).iter().map(|t| t.0).collect::<Vec<_>>(), [0, 1]);
        let plain = ExpertConfig {
            normalise_gates: false,
            ..CONFIG
        };
        let r = route(logits, &plain);
        assert!((r.gates[0] - 0.5).abs() < 1e-6 && (r.gates[1] - 0.25).abs() < 1e-6);
    }

    #[test]
    fn gathering_and_scattering_are_inverse_up_to_gates() {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let tokens = [(0, 2.0), (2, 0.5)];
        let rows = gather(&x, 2, &tokens);
        assert_eq!(rows, [1.0, 2.0, 5.0, 6.0]);
        let mut out = vec![0.0; 6];
        scatter_add(&mut out, 2, (&rows, &tokens));
        assert_eq!(out, [2.0, 4.0, 0.0, 0.0, 2.5, 3.0]);
    }

    #[test]
    fn broken_router_logits_do_not_panic() {
        let r = route(vec![f32::NAN, f32::INFINITY, 0.0, f32::NEG_INFINITY], &CONFIG);
        assert_eq!(r.experts.len(), 2);
    }
}
