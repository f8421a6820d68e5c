//! A result: the place of each component.

use crate::model::{Asil, System};

/// A component's core and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seat {
    /// Number into [`System::cores`].
    pub core: usize,
    /// Number into [`System::memories`].
    pub memory: usize,
}

/// A seat for each component, in the order of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping(pub Vec<Seat>);

impl Mapping {
    /// The unit of a component.
    #[must_use]
    pub fn unit(&self, system: &System, component: usize) -> usize {
        system.cores[self.0[component].core].unit
    }

    /// The components on a core, in order.
    pub fn on_core(&self, core: usize) -> impl Iterator<Item = usize> + '_ {
        let seats = self.0.iter().enumerate();
        seats
            .filter(move |(_, seat)| seat.core == core)
            .map(|(component, _)| component)
    }

    /// Units that have components, in order.
    #[must_use]
    pub fn units(&self, system: &System) -> Vec<usize> {
        let mut units: Vec<usize> = (0..self.0.len()).map(|c| self.unit(system, c)).collect();
        units.sort_unstable();
        units.dedup();
        units
    }

    /// Cores that have components, in order.
    #[must_use]
    pub fn cores(&self) -> Vec<usize> {
        let mut cores: Vec<usize> = self.0.iter().map(|seat| seat.core).collect();
        cores.sort_unstable();
        cores.dedup();
        cores
    }

    /// Cores that run in lock-step with another, because a component of the highest level is on
    /// them.
    #[must_use]
    pub fn locked(&self, system: &System) -> Vec<usize> {
        let mut locked: Vec<usize> = (self.0.iter().zip(&system.components))
            .filter(|(_, component)| component.asil == Asil::D)
            .map(|(seat, _)| seat.core)
            .collect();
        locked.sort_unstable();
        locked.dedup();
        locked
    }
}
