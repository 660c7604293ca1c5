//! State per phase and layer, as most collectors of operator events keep it.

use crate::kinds::NO_LAYER;

/// Known phases, and one place for all codes of later contract versions.
const PHASES: usize = 5;
const UNKNOWN: u8 = 4;

/// One `T` per phase and layer: found in constant time, visited by phase, then layer, so that sums over it have the
/// same bits each time. Phases that this version does not know share one place, named `unknown`.
#[derive(Clone, Debug)]
pub struct PhaseLayers<T> {
    phases: [Layers<T>; PHASES],
}

#[derive(Clone, Debug)]
struct Layers<T> {
    inside: Vec<Option<Box<T>>>,
    outside: Option<Box<T>>,
}

impl<T> Default for PhaseLayers<T> {
    fn default() -> Self {
        Self {
            phases: std::array::from_fn(|_| Layers {
                inside: Vec::new(),
                outside: None,
            }),
        }
    }
}

impl<T> PhaseLayers<T> {
    /// The state of a phase and layer, made by `new` when it is asked for the first time.
    pub fn entry(&mut self, phase: u8, layer: u16, new: impl FnOnce() -> T) -> &mut T {
        let layers = &mut self.phases[usize::from(phase.min(UNKNOWN))];
        let slot = if layer == NO_LAYER {
            &mut layers.outside
        } else {
            let index = usize::from(layer);
            if index >= layers.inside.len() {
                layers.inside.resize_with(index + 1, || None);
            }
            &mut layers.inside[index]
        };
        slot.get_or_insert_with(|| Box::new(new()))
    }

    /// The phases that have any state, ascending.
    pub fn phases(&self) -> impl Iterator<Item = u8> {
        (0..=UNKNOWN).filter(|&phase| self.layers(phase).next().is_some())
    }

    /// The layers of a phase, ascending; [`NO_LAYER`] comes last.
    pub fn layers(&self, phase: u8) -> impl Iterator<Item = (u16, &T)> {
        let layers = &self.phases[usize::from(phase.min(UNKNOWN))];
        let inside = (0..).zip(&layers.inside);
        inside
            .chain(std::iter::once((NO_LAYER, &layers.outside)))
            .filter_map(|(layer, state)| Some((layer, state.as_deref()?)))
    }

    /// All states to change, by phase, then layer.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.phases
            .iter_mut()
            .flat_map(|layers| {
                layers
                    .inside
                    .iter_mut()
                    .chain(std::iter::once(&mut layers.outside))
            })
            .filter_map(Option::as_deref_mut)
    }
}

/// The text for a layer in the label `layer`: its number, or `outside` for [`NO_LAYER`].
pub fn layer_label(layer: u16) -> String {
    if layer == NO_LAYER {
        "outside".to_owned()
    } else {
        layer.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_visited_by_phase_then_layer_with_the_outside_last() {
        let mut states = PhaseLayers::<u32>::default();
        for (phase, layer) in [(1, 2), (0, NO_LAYER), (1, 0), (0, 7), (1, 2)] {
            *states.entry(phase, layer, || 0) += 1;
        }
        let seen: Vec<_> = states
            .phases()
            .flat_map(|phase| states.layers(phase).map(move |(layer, n)| (phase, layer, *n)))
            .collect();
        assert_eq!(seen, [(0, 7, 1), (0, NO_LAYER, 1), (1, 0, 1), (1, 2, 2)]);
    }

    #[test]
    fn phases_of_later_versions_share_one_place() {
        let mut states = PhaseLayers::<u32>::default();
        *states.entry(77, 0, || 0) += 1;
        *states.entry(200, 0, || 0) += 1;
        assert_eq!(states.phases().collect::<Vec<_>>(), [UNKNOWN]);
        assert_eq!(states.layers(UNKNOWN).next(), Some((0, &2)));
        assert_eq!(crate::kinds::phase::name(UNKNOWN), "unknown");
    }
}
