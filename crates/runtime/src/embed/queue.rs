//! Who waits for the turn of an operation.

use std::collections::HashSet;
use std::ptr;
use std::task::Waker;

/// Wakers of those that wait. Whoever is polled while it waits leaves a copy each time, and all
/// stay for as long as an operation is called off and begins anew. So copies are sorted out
/// whenever there are twice as many wakers as were left the last time.
#[derive(Default)]
pub(super) struct Queue {
    wakers: Vec<Waker>,
    /// There were so many when copies were sorted out last.
    known: usize,
}

impl Queue {
    /// So many are not looked through.
    const FEW: usize = 16;

    /// Gives back what is there more than once. Dropped, it may call code of the program's.
    pub(super) fn push(&mut self, waker: Waker) -> Vec<Waker> {
        self.wakers.push(waker);
        if self.wakers.len() <= Queue::FEW.max(2 * self.known) {
            return Vec::new();
        }
        let mut seen = HashSet::new();
        let mut twins = Vec::new();
        for waker in std::mem::take(&mut self.wakers) {
            // Alike, they wake the same: see `Waker::will_wake`.
            let is_new = seen.insert((waker.data(), ptr::from_ref(waker.vtable())));
            match is_new {
                true => self.wakers.push(waker),
                false => twins.push(waker),
            }
        }
        self.known = self.wakers.len();
        twins
    }

    pub(super) fn is_empty(&self) -> bool {
        self.wakers.is_empty()
    }

    pub(super) fn into_wakers(self) -> Vec<Waker> {
        self.wakers
    }
}
