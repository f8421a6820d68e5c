//! Tracks the usable cores, which change from outside: a control group or `taskset` takes some
//! away, a processor goes offline, or they come back.

use hearth_sys::affinity;

use crate::exchange::carrier;

/// The machine's usable cores.
pub(super) struct Cores {
    /// Ascending.
    allowed: Vec<usize>,
}

/// A change of the usable cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) lost: Vec<usize>,
    pub(super) found: Vec<usize>,
}

impl Change {
    pub(super) fn is_none(&self) -> bool {
        self.lost.is_empty() && self.found.is_empty()
    }
}

impl Cores {
    /// Reads the cores of the calling thread, which must not be pinned.
    pub(super) fn look() -> Cores {
        Cores {
            allowed: affinity::allowed(),
        }
    }

    pub(super) fn allowed(&self) -> &[usize] {
        &self.allowed
    }

    /// Reads them again. Workers whose core is usable stay pinned to it, whatever was done to their
    /// threads meanwhile.
    pub(super) fn look_again(&mut self) -> Change {
        let Ok(now) = affinity::try_allowed() else {
            return Change::default();
        };
        let change = difference(&self.allowed, &now);
        if !change.is_none() {
            self.allowed = now;
            carrier::pin_again(&self.allowed);
        }
        change
    }
}

fn difference(before: &[usize], now: &[usize]) -> Change {
    let without = |some: &[usize], others: &[usize]| {
        let is_new = |core: &&usize| others.binary_search(core).is_err();
        some.iter().filter(is_new).copied().collect()
    };
    Change {
        lost: without(before, now),
        found: without(now, before),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_go_both_ways() {
        let change = difference(&[0, 1, 2], &[1, 2, 5]);
        assert_eq!((change.lost, change.found), (vec![0], vec![5]));
        assert!(difference(&[3], &[3]).is_none());
    }
}
