//! FP8 quantisation of activations on their way into a projection.

use crate::engine::fp8::{ChannelAxis, Granularity, Matrix, QuantError, quantize, quantize_measured};
use crate::engine::marks::{Marks, QuantSubject};

/// Quantises activations, or leaves them alone.
pub(super) struct ActivationQuant(pub(super) Option<Granularity>);

/// Activations of one operator as they were before they were quantised, kept until the operator has ended: what
/// quantisation did to them is measured then. Empty in steps that are not sampled.
#[derive(Default)]
pub(super) struct Originals {
    matrices: Vec<Vec<f32>>,
    width: usize,
}

impl ActivationQuant {
    /// Quantises `x`, rows of `width`; keeps a copy in `originals` if this step is sampled.
    pub(super) fn apply(
        &self,
        (x, width): (&mut [f32], usize),
        originals: &mut Originals,
        marks: &mut Marks<'_>,
    ) {
        let Some(granularity) = self.0 else {
            return;
        };
        if marks.wants_quant() {
            marks.aside(|_, _| originals.keep(x, width));
        }
        if let Some(matrix) = Matrix::new(x, width) {
            quantize(matrix, granularity);
        }
    }

    /// Measures what quantisation did to `originals`, and records it.
    pub(super) fn report(
        &self,
        originals: Originals,
        (layer, tensor): (usize, &'static str),
        marks: &mut Marks<'_>,
    ) {
        let Some(granularity) = self.0.filter(|_| !originals.matrices.is_empty()) else {
            return;
        };
        marks.aside(|marks, _| {
            let subject = QuantSubject {
                tensor,
                granularity,
                error: &originals.error(granularity),
            };
            marks.quant(layer, &subject);
        });
    }
}

impl Originals {
    fn keep(&mut self, x: &[f32], width: usize) {
        self.width = width;
        self.matrices.push(x.to_vec());
    }

    /// All matrices together.
    fn error(mut self, granularity: Granularity) -> QuantError {
        let mut total = QuantError::default();
        for values in &mut self.matrices {
            if let Some(matrix) = Matrix::new(values, self.width) {
                total.merge(&quantize_measured(matrix, granularity, ChannelAxis::Columns));
            }
        }
        total
    }
}
