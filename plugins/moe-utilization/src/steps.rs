//! The worst layer of each step.

use std::collections::BTreeMap;

/// `MaxVio` of the worst layer, over the steps of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PhaseMaxima {
    pub(crate) steps: u64,
    weight: f64,
    sum: f64,
    pub(crate) max: f64,
}

impl PhaseMaxima {
    /// Weighted mean over steps; `None` without a complete step.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }

    fn add(&mut self, step: &Open) {
        self.steps += 1;
        self.weight += step.weight;
        self.sum += step.weight * step.max;
        self.max = self.max.max(step.max);
    }
}

#[derive(Clone, Copy, Debug)]
struct Open {
    step: u64,
    phase: u8,
    weight: f64,
    max: f64,
    complete: bool,
}

/// Takes each step's maximum over layers. Steps next to lost rows are left out: a layer may be missing from them.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepMaxima {
    phases: BTreeMap<u8, PhaseMaxima>,
    open: Option<Open>,
    after_loss: bool,
}

impl StepMaxima {
    /// Says that rows are missing between the last one and the next.
    pub(crate) fn rows_were_lost(&mut self) {
        if let Some(open) = &mut self.open {
            open.complete = false;
        }
        self.after_loss = true;
    }

    /// Adds one layer of the step and phase.
    pub(crate) fn add(&mut self, (step, phase): (u64, u8), weight: f64, max_vio: f64) {
        let after_loss = std::mem::take(&mut self.after_loss);
        match &mut self.open {
            Some(open) if (open.step, open.phase) == (step, phase) => open.max = open.max.max(max_vio),
            _ => {
                let next = Open {
                    step,
                    phase,
                    weight,
                    max: max_vio,
                    complete: !after_loss,
                };
                let ended = self.open.replace(next);
                Self::close(&mut self.phases, ended);
            }
        }
    }

    fn close(phases: &mut BTreeMap<u8, PhaseMaxima>, step: Option<Open>) {
        if let Some(step) = step.filter(|step| step.complete) {
            phases.entry(step.phase).or_default().add(&step);
        }
    }

    /// The steps of a phase, the one that is still open included.
    pub(crate) fn phase(&self, phase: u8) -> PhaseMaxima {
        let mut maxima = self.phases.get(&phase).copied().unwrap_or_default();
        if let Some(open) = self.open.filter(|open| open.phase == phase && open.complete) {
            maxima.add(&open);
        }
        maxima
    }
}
