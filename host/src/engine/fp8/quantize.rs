//! Quantising a matrix under one scale per tensor, row or block.

use super::e4m3::{MAX, round};
use super::error::{ChannelAxis, QuantError};

/// The values that share a scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    /// The whole matrix.
    Tensor,
    /// Each row: an output channel of weights, a token of activations.
    Row,
    /// Tiles of this many rows and columns; tiles at the edges are smaller.
    Block {
        /// Rows of a tile.
        rows: usize,
        /// Columns of a tile.
        columns: usize,
    },
}

impl Granularity {
    /// 1×128, for activations.
    pub const TILE_1X128: Self = Self::Block {
        rows: 1,
        columns: 128,
    };
    /// 128×128, for weights.
    pub const TILE_128X128: Self = Self::Block {
        rows: 128,
        columns: 128,
    };

    /// The name used in events: `tensor`, `row`, `1x128`, `128x128`.
    pub fn name(self) -> String {
        match self {
            Self::Tensor => "tensor".into(),
            Self::Row => "row".into(),
            Self::Block { rows, columns } => format!("{rows}x{columns}"),
        }
    }

    /// Rows and columns of one group in a matrix of this size.
    fn group(self, rows: usize, columns: usize) -> (usize, usize) {
        match self {
            Self::Tensor => (rows, columns),
            Self::Row => (1, columns),
            Self::Block { rows: r, columns: c } => (r.clamp(1, rows), c.clamp(1, columns)),
        }
    }
}

/// How the groups of weights and activations are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fp8Scales {
    /// Values of a weight that share a scale.
    pub weights: Granularity,
    /// Values of an activation that share a scale.
    pub activations: Granularity,
}

impl Default for Fp8Scales {
    /// One scale per output channel and per token.
    fn default() -> Self {
        Self {
            weights: Granularity::Row,
            activations: Granularity::Row,
        }
    }
}

/// A row-major matrix of f32 that is changed in place.
#[derive(Debug)]
pub struct Matrix<'a> {
    values: &'a mut [f32],
    rows: usize,
    columns: usize,
}

impl<'a> Matrix<'a> {
    /// `None` unless `values` is a whole number of rows of `columns` values.
    pub fn new(values: &'a mut [f32], columns: usize) -> Option<Self> {
        if columns == 0 || !values.len().is_multiple_of(columns) {
            return None;
        }
        Some(Self {
            rows: values.len() / columns,
            values,
            columns,
        })
    }

    fn groups(&self, granularity: Granularity) -> Vec<Group> {
        if self.rows == 0 {
            return Vec::new();
        }
        let (height, width) = granularity.group(self.rows, self.columns);
        let mut groups = Vec::new();
        for top in (0..self.rows).step_by(height) {
            for left in (0..self.columns).step_by(width) {
                groups.push(Group {
                    top,
                    bottom: (top + height).min(self.rows),
                    left,
                    right: (left + width).min(self.columns),
                });
            }
        }
        groups
    }

    fn row(&mut self, row: usize, group: &Group) -> &mut [f32] {
        let start = row * self.columns;
        &mut self.values[start + group.left..start + group.right]
    }

    fn amax(&mut self, group: &Group) -> f32 {
        (group.top..group.bottom)
            .map(|row| amax(self.row(row, group)))
            .fold(0.0, f32::max)
    }
}

struct Group {
    top: usize,
    bottom: usize,
    left: usize,
    right: usize,
}

/// Largest finite magnitude.
fn amax(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |max, v| {
        let magnitude = v.abs();
        if magnitude > max && magnitude < f32::INFINITY {
            magnitude
        } else {
            max
        }
    })
}

/// The scale that maps `amax` to at most 448: amax/448, moved up where rounding would put amax itself above 448; 1 for
/// a group of zeros.
fn scale_for(amax: f32) -> f32 {
    if amax == 0.0 {
        return 1.0;
    }
    let scale = (amax / MAX).max(f32::MIN_POSITIVE);
    if amax / scale > MAX {
        scale.next_up()
    } else {
        scale
    }
}

/// Replaces every value by what E4M3 codes times their group's scale keep of it.
pub fn quantize(mut matrix: Matrix<'_>, granularity: Granularity) {
    for group in matrix.groups(granularity) {
        let scale = scale_for(matrix.amax(&group));
        for row in group.top..group.bottom {
            for value in matrix.row(row, &group) {
                *value = round(*value / scale) * scale;
            }
        }
    }
}

/// As [`quantize`], and returns the error.
pub fn quantize_measured(mut matrix: Matrix<'_>, granularity: Granularity, axis: ChannelAxis) -> QuantError {
    let mut error = QuantError::with_channels(match axis {
        ChannelAxis::Rows => matrix.rows,
        ChannelAxis::Columns => matrix.columns,
    });
    error.n = matrix.values.len() as u64;
    for group in matrix.groups(granularity) {
        let amax = matrix.amax(&group);
        let scale = scale_for(amax);
        error.amax = error.amax.max(amax);
        error.scale = error.scale.max(scale);
        for row in group.top..group.bottom {
            let first = match axis {
                ChannelAxis::Rows => row,
                ChannelAxis::Columns => group.left,
            };
            measure_row(matrix.row(row, &group), scale, (&mut error, axis, first));
        }
    }
    error
}

fn measure_row(values: &mut [f32], scale: f32, (error, axis, first): (&mut QuantError, ChannelAxis, usize)) {
    for (i, value) in values.iter_mut().enumerate() {
        let original = *value;
        let scaled = original / scale;
        let kept = round(scaled) * scale;
        *value = kept;
        if !original.is_finite() {
            error.nonfinite += 1;
            continue;
        }
        error.saturated += u64::from(scaled.abs() > MAX);
        error.underflow += u64::from(original != 0.0 && kept == 0.0);
        let difference = f64::from(kept) - f64::from(original);
        let (signal, noise) = (f64::from(original).powi(2), difference * difference);
        error.sum_sq_ref += signal;
        error.sum_sq_err += noise;
        error.max_abs_err = error.max_abs_err.max(difference.abs() as f32);
        let channel = match axis {
            ChannelAxis::Rows => first,
            ChannelAxis::Columns => first + i,
        };
        error.channels[channel].0 += signal;
        error.channels[channel].1 += noise;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(values: &mut [f32], columns: usize, g: Granularity, axis: ChannelAxis) -> QuantError {
        quantize_measured(Matrix::new(values, columns).expect("whole rows"), g, axis)
    }

    #[test]
    fn a_row_by_hand() {
        // amax 896 → scale 2. 896/2 = 448 exact; 34/2 = 17 → 16 → 32, error 2; 0.001/2 = 0.0005 < 2⁻¹⁰ → 0;
        // −6/2 = −3 exact.
        let mut x = [896.0, 34.0, 0.001, -6.0];
        let e = measured(&mut x, 4, Granularity::Row, ChannelAxis::Rows);
        assert_eq!(x, [896.0, 32.0, 0.0, -6.0]);
        assert_eq!(
            (e.n, e.amax, e.scale, e.saturated, e.underflow),
            (4, 896.0, 2.0, 0, 1)
        );
        let small = f64::from(0.001f32);
        let (signal, noise) = (
            896f64.powi(2) + 34f64.powi(2) + 36.0 + small.powi(2),
            4.0 + small.powi(2),
        );
        assert!((e.sum_sq_ref - signal).abs() < 1e-6 && (e.sum_sq_err - noise).abs() < 1e-12);
        assert_eq!(e.max_abs_err, 2.0);
        assert!((e.sqnr_channel_p50() - 10.0 * (signal / noise).log10()).abs() < 1e-9);
    }

    #[test]
    fn granularities_scale_their_own_groups() {
        // Row 0 has amax 448 (scale 1), row 1 4480 (scale 10): 17 is a tie at scale 1; 17/10 = 1.7 → 1.75 at scale 10.
        let base = [448.0, 17.0, 4480.0, 17.0];
        let keep = |g| {
            let mut x = base;
            quantize(Matrix::new(&mut x, 2).expect("whole rows"), g);
            x
        };
        assert_eq!(keep(Granularity::Row), [448.0, 16.0, 4480.0, 17.5]);
        assert_eq!(keep(Granularity::Tensor)[1], 17.5);
        // One column per tile: 17 is its group's amax and survives up to the rounding of the scale.
        let tiles = keep(Granularity::Block { rows: 1, columns: 1 });
        assert!((tiles[1] - 17.0).abs() < 1e-5, "{tiles:?}");
    }

    #[test]
    fn measuring_changes_values_exactly_as_plain_quantising() {
        let mut a: Vec<f32> = (0..1000u32)
            .map(|i| ((i * 7919 % 1000) as f32 - 500.0) * 0.37)
            .collect();
        let mut b = a.clone();
        for g in [
            Granularity::Tensor,
            Granularity::Row,
            Granularity::TILE_1X128,
            Granularity::TILE_128X128,
        ] {
            quantize(Matrix::new(&mut a, 250).expect("whole rows"), g);
            measured(&mut b, 250, g, ChannelAxis::Columns);
            assert_eq!(a, b, "{}", g.name());
        }
    }

    #[test]
    fn the_largest_value_never_counts_as_saturated() {
        let mut bits = 1u32;
        for _ in 0..100_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let amax = f32::from_bits(bits >> 1);
            if amax.is_finite() {
                assert!(amax / scale_for(amax) <= MAX, "{amax:e}");
            }
        }
    }

    #[test]
    fn non_finite_values_are_counted_and_left_out() {
        let mut x = [f32::NAN, f32::INFINITY, -1.0, 0.0];
        let e = measured(&mut x, 2, Granularity::Tensor, ChannelAxis::Columns);
        assert_eq!((e.n, e.nonfinite, e.amax, e.sum_sq_ref), (4, 2, 1.0, 1.0));
        assert!(x[0].is_nan() && x[1].is_finite() && x[3] == 0.0);
    }

    #[test]
    fn merging_is_measuring_both() {
        let mut a = [1.0f32, 2.0, 3.3, 4.7];
        let mut b = [5.1f32, -2.9, 0.3, 9.9];
        let mut both: Vec<f32> = a.iter().chain(&b).copied().collect();
        let mut sum = measured(&mut a, 2, Granularity::Row, ChannelAxis::Columns);
        sum.merge(&measured(&mut b, 2, Granularity::Row, ChannelAxis::Columns));
        let whole = measured(&mut both, 2, Granularity::Row, ChannelAxis::Columns);
        assert_eq!(sum.n, whole.n);
        assert!((sum.sum_sq_err - whole.sum_sq_err).abs() < 1e-12);
        assert!((sum.sqnr_channel_p50() - whole.sqnr_channel_p50()).abs() < 1e-9);
    }

    #[test]
    fn gaussian_values_lose_about_31_5_db_whatever_the_scale() {
        // Sums of four uniform numbers; the format's relative error is about 2.65 % for any bell shape.
        let mut state = 1u64;
        let mut x: Vec<f32> = (0..262_144)
            .map(|_| {
                (0..12)
                    .map(|_| {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        (state >> 40) as f32 / 16_777_216.0 - 0.5
                    })
                    .sum()
            })
            .collect();
        let e = measured(&mut x, 1024, Granularity::Row, ChannelAxis::Rows);
        let db = 10.0 * (e.sum_sq_ref / e.sum_sq_err).log10();
        assert!((db - 31.5).abs() < 0.2, "{db}");
    }
}
