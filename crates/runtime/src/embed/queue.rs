//! Wakers of futures that wait for their turn to begin an operation.

use std::collections::HashSet;
use std::ptr;
use std::task::Waker;

/// The waiting futures' wakers. A future polled while it waits leaves a copy each time, and all
/// stay for as long as an operation is called off and begins again. So copies are removed whenever
/// there are twice as many wakers as were left the last time.
#[derive(Default)]
pub(super) struct Queue {
    wakers: Vec<Waker>,
    /// Number of wakers after copies were last removed.
    known: usize,
}

impl Queue {
    /// Number up to which copies are not looked for.
    const FEW: usize = 16;

    /// Adds a waker and returns the copies removed. Dropping them may call user code.
    pub(super) fn push(&mut self, waker: Waker) -> Vec<Waker> {
        self.wakers.push(waker);
        if self.wakers.len() <= Queue::FEW.max(2 * self.known) {
            return Vec::new();
        }
        let mut seen = HashSet::new();
        let mut twins = Vec::new();
        for waker in std::mem::take(&mut self.wakers) {
            // Equal pointers wake the same: see `Waker::will_wake`.
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
