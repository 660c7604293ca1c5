//! FP8 quantisation of activations on their way into a projection.

use crate::engine::fp8::{ChannelAxis, Granularity, Matrix, QuantError, quantize, quantize_measured};
use crate::engine::marks::{Marks, QuantSubject};

/// Quantises activations, or leaves them alone.
pub(super) struct ActivationQuant(pub(super) Option<Granularity>);

impl ActivationQuant {
    /// Quantises `x`, rows of `width`, and records the error if this step is sampled.
    pub(super) fn apply(
        &self,
        x: &mut [f32],
        width: usize,
        subject: (usize, &'static str),
        marks: &mut Marks<'_>,
    ) {
        let mut error = None;
        self.accumulate(x, width, (&mut error, marks.wants_quant()));
        self.report(error.as_ref(), subject, marks);
    }

    /// Quantises `x`, rows of `width`, and adds the error to `total` if `measure`.
    pub(super) fn accumulate(
        &self,
        x: &mut [f32],
        width: usize,
        (total, measure): (&mut Option<QuantError>, bool),
    ) {
        let (Some(granularity), Some(matrix)) = (self.0, Matrix::new(x, width)) else {
            return;
        };
        if !measure {
            quantize(matrix, granularity);
            return;
        }
        let error = quantize_measured(matrix, granularity, ChannelAxis::Columns);
        total.get_or_insert_default().merge(&error);
    }

    /// Records what [`Self::accumulate`] summed up.
    pub(super) fn report(
        &self,
        error: Option<&QuantError>,
        (layer, tensor): (usize, &'static str),
        marks: &mut Marks<'_>,
    ) {
        if let (Some(error), Some(granularity)) = (error, self.0) {
            marks.quant(
                layer,
                &QuantSubject {
                    tensor,
                    granularity,
                    error,
                },
            );
        }
    }
}
