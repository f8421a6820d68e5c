//! Deferred coalescing: freed blocks that are still cut off for their class.
//!
//! A block that does not fit its cache is not coalesced with the free granules around it. Its
//! region goes to a list of its class, and the granule where the block starts is recorded as free
//! *and* as a start, which no other granule is. So to take such a block back is to set a bit, to
//! hand it out again is to clear it, neither looks at its neighbours, and the list may grow as it
//! likes.
//!
//! A class takes its deferred blocks first, from the newest region. They are coalesced, and their
//! region goes back to the list of its grade, oldest first:
//! - one region, when another class finds no room on its level, and one on each level above before
//!   more memory is asked for;
//! - some regions, when [pages](crate::heap::idle_pages) without memory come into use, and when the
//!   first block of a region is deferred while much memory is idle;
//! - all, when there is no memory, when a quiet heap is tidied, and when it ends.
//!
//! A region has deferred blocks of one class only; blocks of other classes freed there are
//! coalesced at once. Blocks of a page or more are never deferred: their idle pages can be given
//! back.

use core::sync::atomic::Ordering;

use crate::ground::faults::{Checked, Fault};
use crate::ground::geometry::{
    Class, GRANULES_MAX, RegionId, granule_bytes, granule_shift, region_shift,
};
use crate::ground::os::PAGE;
use crate::ground::{harden, meter, real_time, words};
use crate::heap::cache::filled_at_once;
use crate::heap::state::{DEFERRED, Heap, is_claimed};
use crate::store::region::{KIB_SHIFT, Kind, PAGE_LEVEL};

/// Bytes beyond a multiple of those in use from which memory counts as much: then each full cache
/// that gives blocks back has others coalesced. With 4 MiB, runs of recurring sizes (`in-runs`, 10
/// MiB) took an eighth more instructions. With four regions, shifting sizes (`fragment 64 42`) had
/// 2.26 times what was live resident instead of 2.22.
const MUCH_BEYOND: usize = 16 << 20;
const COALESCED_BEYOND: u32 = 8;
/// Regions that an allocation takes blocks from, at most.
const TAKEN_FROM: u32 = 4;

/// Whether a heap with caches may defer blocks. Not where every block is checked; nor in real-time
/// mode, which has no more memory, so that coalescing could not wait.
pub(crate) fn is_wanted() -> bool {
    !harden::is_checking() && !real_time::is_on()
}

/// Blocks that begin in one region.
struct Run {
    /// An offset in the region.
    within: usize,
    /// The granules where they begin.
    begins: u64,
    count: u32,
}

impl Heap {
    /// Whether a class has deferred blocks.
    #[inline]
    pub(crate) fn has_deferred(&self, class: Class) -> bool {
        class.level() < PAGE_LEVEL && self.deferred.get() >> class.number() & 1 == 1
    }

    /// Takes back a block that does not fit its cache, and up to `more` that were freed before it
    /// and are still in the cache: most often they share a region, and its words are changed once.
    #[inline]
    pub(crate) fn defer(&self, class: Class, block: usize, more: u32) -> Checked {
        match class.level() {
            0 if self.defers.get() => self.defer_on::<0>(class, block, more),
            1 if self.defers.get() => self.defer_on::<1>(class, block, more),
            2 if self.defers.get() && class.bytes() < PAGE => {
                self.defer_on::<2>(class, block, more)
            }
            _ => self.restore_one(class, block),
        }
    }

    #[inline(always)]
    fn defer_on<const LEVEL: usize>(&self, class: Class, block: usize, more: u32) -> Checked {
        let data = self.data.get();
        let mut others = self.caches.of(Kind::pure(class)).shed(more);
        let mut run = Run {
            within: block - data,
            begins: 0,
            count: 0,
        };
        let mut wrong = None;
        let mut next = block;
        loop {
            let offset = next - data;
            if (offset ^ run.within) >> region_shift(LEVEL) != 0 {
                wrong = wrong.or(self.defer_run::<LEVEL>(&run, class));
                (run.begins, run.count) = (0, 0);
            }
            run.within = offset;
            let begin = 1u64 << (offset >> granule_shift(LEVEL) & 63);
            if run.begins & begin == 0 && offset & (granule_bytes(LEVEL) - 1) == 0 {
                run.begins |= begin;
                run.count += 1;
            } else {
                wrong = wrong.or(Some(next));
            }
            let Some(other) = others.next() else {
                break;
            };
            next = other;
        }
        match wrong.or(self.defer_run::<LEVEL>(&run, class)) {
            None => Ok(()),
            Some(wrong) => Err((wrong, Fault::NotABlock)),
        }
    }

    /// Takes back blocks of one region. Returns an address where no block begins, if there is one.
    #[inline(always)]
    fn defer_run<const LEVEL: usize>(&self, run: &Run, class: Class) -> Option<usize> {
        let region = RegionId::at(LEVEL, run.within);
        let words = self.region(region);
        let (free, starts) = (words.free.get(), words.starts.get());
        let (blocks, mut count) = (run.begins & starts & !free, run.count);
        let mut wrong = None;
        if blocks != run.begins {
            (wrong, count) = self.first_wrong(region, run.begins & !blocks, blocks);
        }
        let grade = self.grade(region).get();
        let own = DEFERRED + class.number() as u8;
        if is_claimed(grade) && grade != own {
            // Cut from now, or with deferred blocks of another class.
            words
                .free
                .set(free | words::spread(blocks, class.granules()));
            words.starts.set(starts & !blocks);
        } else {
            words.free.set(free | blocks);
            if grade != own {
                self.unlink(region, LEVEL, grade);
                self.link_deferred(region, class);
            }
        }
        let bytes = (class.number() + 1 - LEVEL * GRANULES_MAX) << granule_shift(LEVEL);
        self.used.set(self.used.get() - count as usize * bytes);
        wrong
    }

    /// The address of the first of some granules, and how many blocks there are beside them.
    #[cold]
    fn first_wrong(&self, region: RegionId, wrong: u64, blocks: u64) -> (Option<usize>, u32) {
        let first = (wrong.trailing_zeros() as usize) << granule_shift(region.level());
        let address = self.data.get() + region.offset() + first;
        (Some(address), blocks.count_ones())
    }

    /// Whether blocks of a region, all of one class, may become deferred.
    pub(crate) fn can_defer(&self, region: RegionId, class: Class) -> bool {
        let grade = self.grade(region).get();
        let is_claimed_by_others = is_claimed(grade) && grade != DEFERRED + class.number() as u8;
        !is_claimed_by_others && self.defers.get()
    }

    /// The class of all blocks that start in a region, as far as its kinds tell.
    pub(crate) fn class_of_all(&self, region: RegionId) -> Option<Class> {
        let offset = region.offset();
        let first = Kind(self.kind(offset).load(Ordering::Relaxed));
        let class = first.class()?;
        let kibs = match region.level() {
            level @ (0 | 1) => 1usize << (2 * level),
            _ => return None,
        };
        let is_same = |kib: usize| {
            self.kind(offset + (kib << KIB_SHIFT))
                .load(Ordering::Relaxed)
                == first.0
        };
        (class.level() == region.level() && (1..kibs).all(is_same)).then_some(class)
    }

    /// Defers blocks of a region that are of one class and not free yet. The region [may have
    /// deferred blocks](Heap::can_defer).
    pub(crate) fn defer_some(&self, region: RegionId, class: Class, begins: u64) {
        let words = self.region(region);
        words.free.set(words.free.get() | begins);
        let bytes = begins.count_ones() as usize * class.bytes();
        self.used.set(self.used.get() - bytes);
        let grade = self.grade(region).get();
        if grade != DEFERRED + class.number() as u8 {
            self.unlink(region, class.level(), grade);
            self.link_deferred(region, class);
        }
    }

    /// Moves some deferred blocks of a class to its empty cache, and returns another; 0 if there
    /// are none.
    #[inline]
    pub(crate) fn take_deferred(&self, class: Class) -> usize {
        if !self.has_deferred(class) {
            return 0;
        }
        // Makes all that depends on the level constant.
        match class.level() {
            0 => self.take_deferred_on::<0>(class),
            1 => self.take_deferred_on::<1>(class),
            _ => self.take_deferred_on::<2>(class),
        }
    }

    #[inline(never)]
    fn take_deferred_on<const LEVEL: usize>(&self, class: Class) -> usize {
        self.make_cache(class);
        let cache = self.caches.of(Kind::pure(class));
        let most = filled_at_once(LEVEL).min(cache.room().max(1));
        let mut refill = cache.refill();
        for _ in 0..TAKEN_FROM {
            meter::step();
            let region = RegionId(cache.newest.get());
            if region.is_none() {
                break;
            }
            let words = self.region(region);
            let (free, starts) = (words.free.get(), words.starts.get());
            let deferred = free & starts;
            let start = self.data.get() + region.offset_on(LEVEL);
            let mut rest = deferred;
            while rest != 0 && refill.count() < most {
                // The highest first, so that the lowest ends on top.
                let first = 63 - rest.leading_zeros();
                rest ^= 1 << first;
                refill.add(start + ((first as usize) << granule_shift(LEVEL)));
            }
            words.free.set(free & !deferred | rest);
            if rest != 0 {
                break;
            }
            self.unlink_deferred(region, class);
            match free & !deferred {
                0 => self.grade(region).set(words::FULL),
                holes => self.link(region, LEVEL, words::grade(holes)),
            }
        }
        let granules = refill.count() as usize * class.granules() as usize;
        let bytes = granules << granule_shift(LEVEL);
        self.used.set(self.used.get() + bytes);
        refill.end()
    }

    /// Coalesces some deferred blocks if much memory is idle.
    #[inline]
    pub(crate) fn coalesce_some(&self) {
        if self.has_idle(MUCH_BEYOND) {
            self.coalesce_any(COALESCED_BEYOND);
        }
    }

    /// Coalesces the deferred blocks of the oldest regions of a level; returns how many regions.
    pub(crate) fn coalesce_level(&self, level: usize, regions: u32) -> u32 {
        if level >= PAGE_LEVEL {
            return 0;
        }
        self.coalesce_of(0xffff << (level * GRANULES_MAX), regions)
    }

    /// The same on all levels.
    pub(crate) fn coalesce_any(&self, regions: u32) -> u32 {
        self.coalesce_of(u64::MAX, regions)
    }

    #[inline]
    fn coalesce_of(&self, classes: u64, regions: u32) -> u32 {
        let mut coalesced = 0;
        while coalesced < regions {
            let some = self.deferred.get() & classes;
            if some == 0 {
                break;
            }
            meter::step();
            // Round robin over the classes.
            let later = some & u64::MAX << self.next_coalesced.get();
            let next = if later != 0 { later } else { some }.trailing_zeros();
            self.next_coalesced.set((next + 1) & 63);
            self.coalesce(Class::from_number(next as usize));
            coalesced += 1;
        }
        coalesced
    }

    fn coalesce(&self, class: Class) {
        let level = class.level();
        let region = RegionId(self.caches.of(Kind::pure(class)).oldest.get());
        self.unlink_deferred(region, class);
        let words = self.region(region);
        let (free, starts) = (words.free.get(), words.starts.get());
        let free = free | words::spread(free & starts, class.granules());
        words.free.set(free);
        words.starts.set(starts & !free);
        if free == u64::MAX {
            self.release(region);
        } else {
            self.link(region, level, words::grade(free));
        }
    }

    /// Puts a region at the head of a class's list. It is in no list.
    fn link_deferred(&self, region: RegionId, class: Class) {
        self.grade(region).set(DEFERRED + class.number() as u8);
        let cache = self.caches.of(Kind::pure(class));
        let next = RegionId(cache.newest.replace(region.0));
        let words = self.region(region);
        words.previous.set(0);
        words.next.set(next.0);
        if next.is_none() {
            cache.oldest.set(region.0);
            self.deferred.set(self.deferred.get() | 1 << class.number());
        } else {
            self.region(next).previous.set(region.0);
        }
    }

    fn unlink_deferred(&self, region: RegionId, class: Class) {
        let cache = self.caches.of(Kind::pure(class));
        let words = self.region(region);
        let (previous, next) = (RegionId(words.previous.get()), RegionId(words.next.get()));
        match previous {
            RegionId::NONE => cache.newest.set(next.0),
            previous => self.region(previous).next.set(next.0),
        }
        match next {
            RegionId::NONE => cache.oldest.set(previous.0),
            next => self.region(next).previous.set(previous.0),
        }
        if cache.newest.get() == 0 {
            self.deferred
                .set(self.deferred.get() & !(1 << class.number()));
        }
    }
}
