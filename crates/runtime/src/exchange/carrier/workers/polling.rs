//! Waiting for the outside: one of the idle workers does it for all.
//!
//! It sleeps in the poller instead of at its own word, and the poller's bell wakes it for its
//! inbox. The token names it: `TAKEN` while some worker waits for the outside, or is about to
//! again. Invariant: while there is anything to wait for and the token is free, no worker sleeps
//! elsewhere. A thread that gives the token away, or brings the first thing to wait for, wakes a
//! worker that sleeps elsewhere ([`offer`]); a worker about to sleep checks whether the token is
//! free ([`is_open`]). Both pass a fence between their write and their read of the other.
//!
//! While all workers are busy the token is free, and they check the poller in passing; the monitor
//! does so for those whose components compute for long.

use std::ptr;
use std::sync::atomic::AtomicBool;

use super::runner::Runner;
use super::{Worker, all};
use crate::ground::runtime::{self, Part};
use crate::ground::sync::{Ordering, fence};
use crate::ground::without::Mechanism;
use crate::outside::idle::{self, Visit};
use crate::outside::poller::{self, Ready};

/// `asleep` of a worker that sleeps at that word.
pub(super) const AT_ITS_WORD: u32 = 1;
/// `asleep` of the worker that waits for the outside.
const IN_THE_POLLER: u32 = 2;

static TAKEN: Part<AtomicBool> = Part::new(AtomicBool::default);

/// Whether there is something to wait for, and no worker that waits.
pub(super) fn is_open() -> bool {
    poller::is_needed() && !TAKEN.load(Ordering::Relaxed) && !Mechanism::Poller.is_off()
}

/// Takes the token if it is of use.
fn take() -> bool {
    is_open() && !TAKEN.swap(true, Ordering::Acquire)
}

/// Gives the token away: the calling worker has something better to do.
fn give_away() {
    TAKEN.store(false, Ordering::Release);
    // Pairs with the fence in `rest`.
    fence(Ordering::SeqCst);
    offer();
}

/// Makes a worker that sleeps at its word wait for the outside instead, if none does. Awake workers
/// find out by themselves when they go idle.
pub(crate) fn offer() {
    if !is_open() {
        return;
    }
    let workers = all();
    let sleeps = |worker: &&Worker| worker.shared.asleep.load(Ordering::Relaxed) == AT_ITS_WORD;
    if let Some(sleeper) = workers.iter().find(sleeps) {
        let _visit = Visit::begin();
        sleeper.wake();
        return;
    }
    let is_started = |worker: &Worker| worker.shared.started.load(Ordering::Relaxed);
    if !workers.iter().any(is_started) && !workers[0].shared.started.swap(true, Ordering::Relaxed) {
        let _visit = Visit::begin();
        workers[0].start();
    }
}

/// Wakes a sleeper whose `asleep` had this value.
pub(super) fn rouse(worker: &Worker, was: u32) {
    match was {
        IN_THE_POLLER => poller::ring(),
        _ => worker.shared.asleep.ring(),
    }
}

impl Worker {
    /// Waits for the outside when nothing is ready, unless another worker already does. True if it
    /// waited, and something may be ready now.
    pub(super) fn waits_for_outside(&'static self) -> bool {
        if !take() {
            return false;
        }
        let mut ready = Ready::new();
        while !self.has_ready() && !runtime::current().is_over() {
            if !self.sleep_in_poller(&mut ready) {
                break;
            }
            poller::serve(&mut ready);
        }
        give_away();
        true
    }

    /// Whether anything is in the queue or the inbox.
    fn has_ready(&self) -> bool {
        !self.next.get().is_null() || !self.first.get().is_null() || self.empty_inbox()
    }

    /// Sleeps until the worker has something to run or the outside to serve. False if it did not
    /// sleep.
    fn sleep_in_poller(&self, ready: &mut Ready) -> bool {
        let asleep = &self.shared.asleep;
        if !self.falls_asleep(IN_THE_POLLER) {
            return false;
        }
        while asleep.load(Ordering::Acquire) == IN_THE_POLLER && !poller::has_come(ready) {
            poller::wait(ready);
        }
        // Outside events enter here. A poster has counted this thread in before.
        idle::enter();
        if asleep.swap(0, Ordering::Acquire) == 0 {
            idle::leave();
        } else {
            super::threads::notice();
        }
        true
    }

    /// Checks the outside in passing, between two components.
    pub(super) fn look_outside(&self, runner: &Runner) {
        if poller::is_time() {
            // No component does the work here.
            runner.current.store(ptr::null_mut(), Ordering::Relaxed);
            poller::look();
        }
    }
}
