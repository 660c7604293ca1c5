//! The part that runs for each expert of each row. On the way to 128 experts it decides the collector's cost, so that it
//! adds integers and leaves weights to the moment at which they change.

/// What one row's assignments say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowCounts {
    pub(crate) assigned: u64,
    pub(crate) largest: u32,
    pub(crate) unique: u32,
}

/// Assignments and router probabilities per expert.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    /// Sums of the rows since the weight last changed.
    weight: f64,
    counts: Vec<u64>,
    prob: Vec<f64>,
    /// Weighted sums of the rows before.
    earlier: Loads,
}

/// Weighted sums per expert.
#[derive(Clone, Debug)]
pub(crate) struct Loads {
    pub(crate) load: Vec<f64>,
    /// `None` where a row came without router probabilities.
    pub(crate) prob: Option<Vec<f64>>,
}

impl Counts {
    pub(crate) fn new(experts: usize) -> Self {
        Self {
            weight: 1.0,
            counts: vec![0; experts],
            prob: vec![0.0; experts],
            earlier: Loads {
                load: vec![0.0; experts],
                prob: Some(vec![0.0; experts]),
            },
        }
    }

    pub(crate) fn experts(&self) -> usize {
        self.counts.len()
    }

    /// Adds a row.
    pub(crate) fn add(&mut self, weight: f64, counts: &[u32], prob: Option<&[f32]>) -> RowCounts {
        if weight != self.weight {
            self.earlier = self.loads();
            self.counts.fill(0);
            self.prob.fill(0.0);
            self.weight = weight;
        }
        match prob {
            Some(prob) => {
                for (sum, &prob) in self.prob.iter_mut().zip(prob) {
                    *sum += f64::from(prob);
                }
            }
            None => self.earlier.prob = None,
        }
        // Overflow checks would keep the loops from becoming vector code, and 64 bits hold 2^32 rows of any counts.
        for (sum, &count) in self.counts.iter_mut().zip(counts) {
            *sum = sum.wrapping_add(u64::from(count));
        }
        let mut row = RowCounts::default();
        for &count in counts {
            row.assigned = row.assigned.wrapping_add(u64::from(count));
            row.largest = row.largest.max(count);
            row.unique = row.unique.wrapping_add(u32::from(count != 0));
        }
        row
    }

    /// The weighted sums of all rows.
    pub(crate) fn loads(&self) -> Loads {
        let earlier = &self.earlier;
        let load = earlier.load.iter().zip(&self.counts);
        let load = load
            .map(|(sum, &count)| sum + self.weight * count as f64)
            .collect();
        let prob = earlier.prob.as_ref().map(|earlier| {
            let sums = earlier.iter().zip(&self.prob);
            sums.map(|(sum, prob)| sum + self.weight * prob).collect()
        });
        Loads { load, prob }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_follow_a_changing_weight() {
        let mut counts = Counts::new(3);
        let row = counts.add(2.0, &[4, 0, 1], Some(&[0.5, 0.25, 0.25]));
        assert_eq!(
            row,
            RowCounts {
                assigned: 5,
                largest: 4,
                unique: 2
            }
        );
        counts.add(2.0, &[1, 1, 0], Some(&[0.5, 0.5, 0.0]));
        counts.add(8.0, &[0, 1, 0], Some(&[0.0, 1.0, 0.0]));
        // 2*(4+1), 2*1 + 8*1, 2*1
        assert_eq!(counts.loads().load, [10.0, 10.0, 2.0]);
        assert_eq!(counts.loads().prob, Some(vec![2.0, 9.5, 0.5]));
        counts.add(2.0, &[1, 0, 0], None);
        assert_eq!(counts.loads().load, [12.0, 10.0, 2.0]);
        assert_eq!(counts.loads().prob, None);
    }
}
