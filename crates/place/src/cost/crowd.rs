//! Components by slot.

use crate::slots::CpuSlot;

const NOBODY: u32 = u32::MAX;

/// Components of each slot, as lists linked through all components.
#[derive(Clone, Debug)]
pub(crate) struct Crowd {
    /// By slot, one of its components.
    first: Vec<u32>,
    /// By component, the ones before and after it on its slot.
    links: Vec<(u32, u32)>,
}

impl Crowd {
    pub(crate) fn new(slots: usize, at: &[CpuSlot]) -> Self {
        let mut crowd = Self {
            first: vec![NOBODY; slots],
            links: vec![(NOBODY, NOBODY); at.len()],
        };
        for (component, slot) in at.iter().enumerate().rev() {
            crowd.enter(component, *slot);
        }
        crowd
    }

    /// Moves a component.
    pub(crate) fn shift(&mut self, component: usize, from: CpuSlot, to: CpuSlot) {
        let (before, after) = self.links[component];
        match before {
            NOBODY => self.first[from.index()] = after,
            before => self.links[before as usize].1 = after,
        }
        if after != NOBODY {
            self.links[after as usize].0 = before;
        }
        self.enter(component, to);
    }

    fn enter(&mut self, component: usize, slot: CpuSlot) {
        let number = u32::try_from(component).expect("ids are of 32 bits");
        let after = std::mem::replace(&mut self.first[slot.index()], number);
        if after != NOBODY {
            self.links[after as usize].0 = number;
        }
        self.links[component] = (NOBODY, after);
    }

    /// The components of a slot.
    pub(crate) fn on(&self, slot: CpuSlot) -> impl Iterator<Item = usize> + '_ {
        let next = |component: u32| (component != NOBODY).then_some(component as usize);
        std::iter::successors(next(self.first[slot.index()]), move |component| {
            next(self.links[*component].1)
        })
    }
}
