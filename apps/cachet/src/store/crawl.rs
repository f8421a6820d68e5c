//! Walks over all items: the crawler, which frees dead ones, and lists.
//!
//! There may be a hundred million items, so a walk is done in pieces, each with one stripe locked
//! for some ten microseconds; others have their turn in between.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::watch::Topics;
use super::{Store, Worker};
use crate::items::{Entry, WalkPosition};

/// Seconds in which the crawler looks at everything once, if that is not too much.
const CRAWL_SECONDS: usize = 10;
/// Most items it looks at in a second: about a tenth of a core's time, at 100 ns for an item that
/// is in no cache.
const CRAWLED_MAX: usize = 1 << 20;
/// Items looked at with one stripe locked, for which others wait.
const PIECE: usize = 256;
/// Items evicted in one entry of the section after the limit was lowered.
const SHRINK: usize = 64;

/// A place in a walk over all items: the stripe, and the place in it. The default is the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    part: usize,
    place: WalkPosition,
}

impl Walk {
    /// Continues at a place of the same stripe, or with the next one.
    fn go_on(&mut self, place: Option<WalkPosition>) {
        match place {
            Some(place) => self.place = place,
            None => {
                *self = Walk {
                    part: self.part + 1,
                    place: WalkPosition::default(),
                }
            }
        }
    }
}

/// State of the crawler, and its orders.
#[derive(Debug, Default)]
pub(super) struct Crawl {
    /// Locked by the thread that crawls, which is one except in tests.
    walk: Mutex<Walk>,
    is_off: AtomicBool,
    /// Number of stripes to look at as soon as possible, by request.
    urgent: AtomicUsize,
    reclaimed: AtomicU64,
    looked_at: AtomicU64,
    /// Passes over all items that were begun.
    passes: AtomicU64,
    /// Time at which everything is to be flushed; 0 if not.
    forgets_at: AtomicU64,
}

impl Crawl {
    pub(super) fn reset(&self) {
        self.reclaimed.store(0, Ordering::Relaxed);
        self.looked_at.store(0, Ordering::Relaxed);
    }
}

/// The work left of a second.
#[derive(Clone, Copy, Debug)]
pub struct Chores {
    /// Stripes and items that the crawler may still look at.
    parts: usize,
    items: usize,
    /// There may be more than the limit allows.
    shrinks: bool,
}

impl Store {
    /// Number of items that the crawler has freed, and number it has looked at.
    #[must_use]
    pub fn crawled(&self) -> (u64, u64) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (read(&self.crawl.reclaimed), read(&self.crawl.looked_at))
    }

    /// True if the crawler was asked for a pass that is not over, and the number of passes begun.
    #[must_use]
    pub fn crawls_so_far(&self) -> (bool, u64) {
        let is_running = self.crawl.urgent.load(Ordering::Relaxed) > 0;
        (is_running, self.crawl.passes.load(Ordering::Relaxed))
    }

    /// Switches the crawler on or off.
    pub fn set_crawler(&self, is_on: bool) {
        self.crawl.is_off.store(!is_on, Ordering::Relaxed);
    }

    /// True if the crawler is on.
    #[must_use]
    pub fn crawls(&self) -> bool {
        !self.crawl.is_off.load(Ordering::Relaxed)
    }

    /// Asks the clock's thread to look at everything as soon as possible.
    pub fn ask_for_crawl(&self) {
        self.crawl
            .urgent
            .store(self.stripes.count(), Ordering::Relaxed);
    }

    /// Flushes everything stored now; or, after this many seconds, everything stored then.
    pub fn forget(&self, seconds: u32) {
        if seconds > 0 {
            let at = u64::from(self.clock.now()) + u64::from(seconds);
            self.crawl.forgets_at.store(at, Ordering::Relaxed);
            return;
        }
        self.crawl.forgets_at.store(0, Ordering::Relaxed);
        for part in 0..self.stripes.count() {
            self.stripes.lock_one(part).forget();
        }
    }

    /// Does each second's punctual work: the clock, and flushes. Other work is [`Store::work`].
    pub fn tick(&self) {
        self.clock.follow();
        let forgets_at = self.crawl.forgets_at.load(Ordering::Relaxed);
        if forgets_at != 0 && forgets_at <= u64::from(self.clock.now()) {
            self.forget(0);
        }
    }

    /// Maintenance to do in a second, besides [`Store::tick`].
    #[must_use]
    pub fn chores(&self) -> Chores {
        Chores {
            parts: self.stripes.count().div_ceil(CRAWL_SECONDS),
            items: CRAWLED_MAX,
            shrinks: true,
        }
    }

    /// Does a piece of the maintenance, some ten microseconds. False if nothing is left to do.
    pub fn work(&self, worker: &mut Worker, chores: &mut Chores) -> bool {
        if chores.shrinks {
            let now = self.clock.now();
            chores.shrinks = self
                .section
                .enter(|allocation| allocation.shrink(now, SHRINK));
            return true;
        }
        if !self.crawls() {
            return false;
        }
        let urgent = self.crawl.urgent.load(Ordering::Relaxed);
        if urgent == 0 && (chores.parts == 0 || chores.items == 0) {
            return false;
        }
        let (looked, is_whole) = self.crawl_piece(worker);
        chores.items = chores.items.saturating_sub(looked);
        chores.parts = chores.parts.saturating_sub(usize::from(is_whole));
        if is_whole && urgent > 0 {
            // A request made meanwhile stays.
            let _ = self.crawl.urgent.compare_exchange(
                urgent,
                urgent - 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
        true
    }

    /// Frees the dead items in a piece of a stripe. Returns the number of items looked at, and
    /// whether the stripe is done.
    fn crawl_piece(&self, worker: &mut Worker) -> (usize, bool) {
        let mut walk = self
            .crawl
            .walk
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        walk.part %= self.stripes.count();
        if *walk == Walk::default() {
            self.begin_pass();
        }
        let before = worker.out.len();
        let now = self.clock.now();
        let (looked, place) =
            self.stripes
                .lock_one(walk.part)
                .sweep(walk.place, PIECE, now, &mut worker.out);
        walk.go_on(place);
        let add = |counter: &AtomicU64, more: usize| {
            counter.fetch_add(more as u64, Ordering::Relaxed);
        };
        add(&self.crawl.looked_at, looked);
        add(&self.crawl.reclaimed, worker.out.len() - before);
        self.free_kept(worker);
        (looked, place.is_none())
    }

    /// Counts a pass, and tells watchers of the one before it.
    fn begin_pass(&self) {
        let pass = self.crawl.passes.fetch_add(1, Ordering::Relaxed);
        if pass > 0 && self.watch.wants(Topics::SYSEVENTS) {
            let (reclaimed, looked_at) = self.crawled();
            self.watch.tell(Topics::SYSEVENTS, |out| {
                let facts = format!(
                    "lru_crawler crawler={pass} lru=all examined={looked_at} reclaimed={reclaimed}"
                );
                out.extend_from_slice(facts.as_bytes());
            });
        }
    }

    /// Frees everything that has expired.
    #[cfg(test)]
    pub fn crawl_all(&self, worker: &mut Worker) {
        self.ask_for_crawl();
        let mut chores = self.chores();
        while self.work(worker, &mut chores) {}
    }

    /// Looks at all living items.
    #[cfg(test)]
    pub fn for_each(&self, mut each: impl FnMut(Entry<'_>)) {
        let mut walk = Walk::default();
        while self.look(&mut walk, PIECE, &mut each).1 {}
    }

    /// Looks at a piece of the items: about `most` living ones of one stripe, which is locked
    /// meanwhile. Returns the number looked at, dead or alive; false at the end.
    pub fn look(
        &self,
        walk: &mut Walk,
        most: usize,
        mut look: impl FnMut(Entry<'_>),
    ) -> (usize, bool) {
        if walk.part >= self.stripes.count() {
            return (0, false);
        }
        let now = self.clock.now();
        let stripe = self.stripes.lock_one(walk.part);
        let (looked, place) = stripe.chains.look_at_some(walk.place, most, |entry| {
            if stripe.numbers.is_gone(entry, now).is_none() {
                look(entry);
            }
        });
        walk.go_on(place);
        (looked, walk.part < self.stripes.count())
    }
}
