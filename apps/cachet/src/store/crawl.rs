//! What looks at all items: the crawler, which frees those whose time has come, and who lists them.
//!
//! There may be a hundred million, so whoever does it does it in pieces, each with one part locked for some ten
//! microseconds, and others have their turn between two.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{Store, Worker};
use crate::items::{Entry, Place};

/// In so many seconds the crawler looks at everything once, if that is not too much.
const CRAWL_SECONDS: usize = 10;
/// It looks at so many items in a second at most: about a tenth of a core's time, at 100 ns for an item that is in no
/// cache.
const CRAWLED_MAX: usize = 1 << 20;
/// And at so many with one part locked, which others wait for meanwhile.
const PIECE: usize = 256;
/// So many items go in one entry of the section where the limit was lowered.
const SHRINK: usize = 64;

/// How far somebody has come who looks at all items: in which part, and where in it. The default is the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    part: usize,
    place: Place,
}

impl Walk {
    /// Goes on at a place of the same part, or with the next one.
    fn go_on(&mut self, place: Option<Place>) {
        match place {
            Some(place) => self.place = place,
            None => {
                *self = Walk {
                    part: self.part + 1,
                    place: Place::default(),
                }
            }
        }
    }
}

/// How far the crawler has come, and what it is told.
#[derive(Debug, Default)]
pub(super) struct Crawl {
    /// Locked by who crawls, which is one thread but for tests.
    walk: Mutex<Walk>,
    is_off: AtomicBool,
    /// So many parts are to be looked at as soon as may be, as somebody asked for it.
    urgent: AtomicUsize,
    reclaimed: AtomicU64,
    looked_at: AtomicU64,
    /// When everything is to be forgotten; 0 if not.
    forgets_at: AtomicU64,
}

impl Crawl {
    pub(super) fn reset(&self) {
        self.reclaimed.store(0, Ordering::Relaxed);
        self.looked_at.store(0, Ordering::Relaxed);
    }
}

/// What is left to do of a second's work.
#[derive(Clone, Copy, Debug)]
pub struct Chores {
    /// Parts and items that the crawler may look at yet.
    parts: usize,
    items: usize,
    /// There may be more than the limit allows.
    shrinks: bool,
}

impl Store {
    /// How many items the crawler has freed, and how many it looked at.
    #[must_use]
    pub fn crawled(&self) -> (u64, u64) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (read(&self.crawl.reclaimed), read(&self.crawl.looked_at))
    }

    /// Shall expired items be looked for?
    pub fn set_crawler(&self, is_on: bool) {
        self.crawl.is_off.store(!is_on, Ordering::Relaxed);
    }

    /// Are they?
    #[must_use]
    pub fn crawls(&self) -> bool {
        !self.crawl.is_off.load(Ordering::Relaxed)
    }

    /// Has everything looked at as soon as may be, by who has the clock.
    pub fn ask_for_crawl(&self) {
        self.crawl
            .urgent
            .store(self.stripes.count(), Ordering::Relaxed);
    }

    /// Forgets everything that is stored now; or, after so many seconds, everything that is stored then.
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

    /// What must be done every second in time: the clock, and what is to be forgotten. What may be late is
    /// [`Store::work`].
    pub fn tick(&self) {
        self.clock.follow();
        let forgets_at = self.crawl.forgets_at.load(Ordering::Relaxed);
        if forgets_at != 0 && forgets_at <= u64::from(self.clock.now()) {
            self.forget(0);
        }
    }

    /// What may be done in a second besides.
    #[must_use]
    pub fn chores(&self) -> Chores {
        Chores {
            parts: self.stripes.count().div_ceil(CRAWL_SECONDS),
            items: CRAWLED_MAX,
            shrinks: true,
        }
    }

    /// Does a piece of it, which takes some ten microseconds. False if there is no more to do.
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
            // If more was asked for meanwhile that stays.
            let _ = self.crawl.urgent.compare_exchange(
                urgent,
                urgent - 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
        true
    }

    /// Frees what has expired in a piece of a part. How many items it looked at, and whether the part is done with.
    fn crawl_piece(&self, worker: &mut Worker) -> (usize, bool) {
        let mut walk = self
            .crawl
            .walk
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        walk.part %= self.stripes.count();
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

    /// Frees everything that has expired.
    #[cfg(test)]
    pub fn crawl_all(&self, worker: &mut Worker) {
        self.ask_for_crawl();
        let mut chores = self.chores();
        while self.work(worker, &mut chores) {}
    }

    /// Looks at all items that are alive.
    #[cfg(test)]
    pub fn for_each(&self, mut each: impl FnMut(Entry<'_>)) {
        let mut walk = Walk::default();
        while self.look(&mut walk, PIECE, &mut each).1 {}
    }

    /// Looks at a piece of the items: at those that are alive, about so many at most, all of one part, which is locked
    /// meanwhile. How many it looked at, dead or alive; false at the end.
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
