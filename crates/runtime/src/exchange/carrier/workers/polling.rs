//! Waiting for the outside: one of the idle workers does it for all.
//!
//! It sleeps in the poller instead of at its own word, and is woken for its inbox by the poller's
//! bell. Who that is, the token says: `TAKEN` while some worker waits for the outside, or is about
//! to again. Invariant: while there is anything to wait for and the token is free, no worker sleeps
//! elsewhere. Whoever gives the token away, or brings the first thing to wait for, wakes one that
//! does ([`offer`]); whoever is about to sleep looks whether it is free ([`is_open`]). Both pass a
//! fence between what they write and what they read of the other.
//!
//! While all workers are busy the token is free, and they look at the poller in passing; so does
//! the monitor, for those whose components compute for long.

use std::ptr;
use std::sync::atomic::AtomicBool;

use super::runner::Runner;
use super::{Worker, all};
use crate::ground::runtime::{self, Part};
use crate::ground::sync::{Ordering, fence};
use crate::outside::idle::{self, Visit};
use crate::outside::poller::{self, Ready};

/// `asleep` of a worker that sleeps at that word.
pub(super) const AT_ITS_WORD: u32 = 1;
/// `asleep` of the worker that waits for the outside.
const IN_THE_POLLER: u32 = 2;

static TAKEN: Part<AtomicBool> = Part::new(AtomicBool::default);

/// Is there something to wait for, and nobody who does?
pub(super) fn is_open() -> bool {
    poller::is_needed() && !TAKEN.load(Ordering::Relaxed)
}

/// Takes the token if it is of use.
fn take() -> bool {
    is_open() && !TAKEN.swap(true, Ordering::Acquire)
}

/// The calling worker has something better to do.
fn give_away() {
    TAKEN.store(false, Ordering::Release);
    // With the one in `rest`.
    fence(Ordering::SeqCst);
    offer();
}

/// Has a worker that sleeps at its word wait for the outside instead, if nobody does. Others find
/// out by themselves when they have nothing to do.
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

/// Wakes a sleeper whose `asleep` was this.
pub(super) fn rouse(worker: &Worker, was: u32) {
    match was {
        IN_THE_POLLER => poller::ring(),
        _ => worker.shared.asleep.ring(),
    }
}

impl Worker {
    /// Nothing is ready: waits for the outside, unless somebody does already. True if that was so,
    /// and something may be ready now.
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

    /// Is anything in the queue or the inbox?
    fn has_ready(&self) -> bool {
        !self.next.get().is_null() || !self.first.get().is_null() || self.empty_inbox()
    }

    /// Sleeps until the worker has something to run or the outside to serve. False if it did not
    /// come to that.
    fn sleep_in_poller(&self, ready: &mut Ready) -> bool {
        let asleep = &self.shared.asleep;
        if !self.falls_asleep(IN_THE_POLLER) {
            return false;
        }
        while asleep.load(Ordering::Acquire) == IN_THE_POLLER && !poller::has_come(ready) {
            poller::wait(ready);
        }
        // What has come enters from outside. A poster has counted this thread in before.
        idle::enter();
        if asleep.swap(0, Ordering::Acquire) == 0 {
            idle::leave();
        } else {
            super::threads::notice();
        }
        true
    }

    /// A look in passing, between two components.
    pub(super) fn look_outside(&self, runner: &Runner) {
        if poller::is_time() {
            // What is done here, no component does.
            runner.current.store(ptr::null_mut(), Ordering::Relaxed);
            poller::look();
        }
    }
}
