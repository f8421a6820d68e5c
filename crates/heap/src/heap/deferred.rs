//! Deferred blocks: freed, and still cut off for their class.
//!
//! A block that finds no place in cache is not coalesced with what is free around it. Its region goes to a list of
//! its class, and the granule where the block starts is noted as free *and* as a start: two words that
//! are there anyway, of which no other block has both. So to give such a block back is to set a bit, to give it
//! out again is to clear it, neither looks at the blocks around, and the list may become as long as it likes.
//!
//! A class takes its deferred blocks first, from the region that came last. They are coalesced, and their region
//! goes back to the list of its grade, the oldest of a list first:
//! - when another class finds no room on its level, and on the levels above before more memory is asked for: of a
//!   region each;
//! - when [pages](crate::heap::idle_pages) begin to be used that had no memory, and when the first block of a region becomes
//!   deferred where much has memory that is not in use: of some regions;
//! - when there is no memory, when a quiet heap is tidied up, and when it ends: all.
//!
//! A region has deferred blocks of one class only. What is freed there of another class is coalesced at once. Blocks
//! of a page or more are never deferred: what is idle there can be given back.

use core::sync::atomic::Ordering;

use crate::ground::faults::{Checked, Fault};
use crate::ground::geometry::{Class, GRANULES_MAX, RegionId, granule_bytes, granule_shift};
use crate::ground::harden;
use crate::ground::meter;
use crate::ground::os::PAGE;
use crate::ground::real_time;
use crate::ground::words;
use crate::heap::cache::filled_at_once;
use crate::heap::state::{DEFERRED, Heap, is_claimed};
use crate::store::region::{KIB_SHIFT, Kind, PAGE_LEVEL};

/// Where much more than is in use has memory, and so many bytes beyond that, deferred blocks of so many regions are
/// coalesced for each region that gets its first. With 4 MiB runs of sizes that come again (`in-runs`, 10 MiB) took an
/// eighth more instructions; with two regions sizes that shift ended at 2.20 times what was live, with four at 2.17
/// (`./x bench heap --only frag`).
const MUCH_BEYOND: usize = 16 << 20;
const COALESCED_BEYOND: u32 = 4;
/// An allocation takes blocks from so many regions at most.
const TAKEN_FROM: u32 = 4;

/// May a heap that has caches keep deferred blocks? Not where every block is looked at; and in real-time mode there
/// is no more memory, so that next_coalesced could not be put off.
pub(crate) fn is_wanted() -> bool {
    !harden::looks() && !real_time::is_on()
}

impl Heap {
    /// Are there deferred blocks of a class?
    #[inline]
    pub(crate) fn has_deferred(&self, class: Class) -> bool {
        class.level() < PAGE_LEVEL && self.deferred.get() >> class.number() & 1 == 1
    }

    /// Takes a block of a class back that finds no place in cache.
    #[inline]
    pub(crate) fn defer(&self, class: Class, block: usize) -> Checked {
        match class.level() {
            0 => self.defer_on::<0>(class, block),
            1 => self.defer_on::<1>(class, block),
            2 if class.bytes() < PAGE => self.defer_on::<2>(class, block),
            _ => self.restore_one(class, block),
        }
    }

    #[inline]
    fn defer_on<const LEVEL: usize>(&self, class: Class, block: usize) -> Checked {
        let offset = block - self.data.get();
        let region = RegionId::at(LEVEL, offset);
        let grade = self.grade(region).get();
        let own = DEFERRED + class.number() as u8;
        if is_claimed(grade) && grade != own {
            let is_done = self.coalesce_one::<LEVEL>(region, class, offset);
            return if is_done {
                Ok(())
            } else {
                Err((block, Fault::NotABlock))
            };
        }
        if !self.defers.get() {
            return self.restore_one(class, block);
        }
        if !self.note_deferred::<LEVEL>(region, class, offset) {
            return Err((block, Fault::NotABlock));
        }
        if grade != own {
            self.unlink(region, LEVEL, grade);
            self.link_deferred(region, class);
        }
        Ok(())
    }

    /// The same if the region has deferred blocks of the class already. False if it has none, or if there is no such
    /// block.
    #[inline(always)]
    pub(crate) fn try_defer(&self, class: Class, offset: usize) -> bool {
        // What depends on the level is constants then.
        match class.level() {
            0 => self.try_defer_on::<0>(class, offset, false),
            1 => self.try_defer_on::<1>(class, offset, false),
            2 => self.try_defer_on::<2>(class, offset, false),
            _ => false,
        }
    }

    /// `is_pure`: all blocks of the region are of the class.
    #[inline(always)]
    pub(crate) fn try_defer_on<const LEVEL: usize>(
        &self,
        class: Class,
        offset: usize,
        is_pure: bool,
    ) -> bool {
        let region = RegionId::at(LEVEL, offset);
        let is_listed = if is_pure {
            let words = self.region(region);
            words.starts.get() & words.free.get() != 0
        } else {
            self.grade(region).get() == DEFERRED + class.number() as u8
        };
        is_listed && self.note_deferred::<LEVEL>(region, class, offset)
    }

    /// Sets the bit of a block. False if there is none, or it is deferred already.
    #[inline(always)]
    fn note_deferred<const LEVEL: usize>(
        &self,
        region: RegionId,
        class: Class,
        offset: usize,
    ) -> bool {
        let words = self.region(region);
        let free = words.free.get();
        let begin = 1u64 << (offset >> granule_shift(LEVEL) & 63);
        if words.starts.get() & !free & begin == 0 || offset & (granule_bytes(LEVEL) - 1) != 0 {
            return false;
        }
        words.free.set(free | begin);
        let bytes = (class.number() + 1 - LEVEL * GRANULES_MAX) << granule_shift(LEVEL);
        self.used.set(self.used.get() - bytes);
        true
    }

    /// Takes a block back to a region that is in no list of grades. False if there is none, or it is deferred.
    #[inline]
    fn coalesce_one<const LEVEL: usize>(
        &self,
        region: RegionId,
        class: Class,
        offset: usize,
    ) -> bool {
        let words = self.region(region);
        let (free, starts) = (words.free.get(), words.starts.get());
        let begin = 1u64 << (offset >> granule_shift(LEVEL) & 63);
        if starts & !free & begin == 0 || offset & (granule_bytes(LEVEL) - 1) != 0 {
            return false;
        }
        words
            .free
            .set(free | words::spread(begin, class.granules()));
        words.starts.set(starts & !begin);
        self.used.set(self.used.get() - class.bytes());
        true
    }

    /// May blocks of a region become deferred that are all of a class?
    pub(crate) fn can_defer(&self, region: RegionId, class: Class) -> bool {
        let grade = self.grade(region).get();
        let is_claimed_by_others = is_claimed(grade) && grade != DEFERRED + class.number() as u8;
        !is_claimed_by_others && self.defers.get()
    }

    /// The class of all blocks that start in a region, as far as is known at a glance.
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

    /// Blocks of a region, of one class and not free yet, are deferred from now on. It may
    /// [become so](Heap::can_defer).
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

    /// Some deferred blocks of a class to the cache, which is empty, and one that is given out; 0 if there are none.
    #[inline]
    pub(crate) fn take_deferred(&self, class: Class) -> usize {
        if !self.has_deferred(class) {
            return 0;
        }
        // What depends on the level is constants then.
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
                // The highest first, so that the lowest is on top.
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

    /// Joins some deferred blocks if there is much memory that is not in use.
    #[inline]
    pub(crate) fn coalesce_some(&self) {
        if self.has_idle(MUCH_BEYOND) {
            self.coalesce_any(COALESCED_BEYOND);
        }
    }

    /// Joins the deferred blocks of some regions of a level, the oldest, with what is free around them. How many
    /// there were.
    pub(crate) fn coalesce_level(&self, level: usize, regions: u32) -> u32 {
        if level >= PAGE_LEVEL {
            return 0;
        }
        self.coalesce_of(0xffff << (level * GRANULES_MAX), regions)
    }

    /// The same of all levels.
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
            // The next one, and after the last the first.
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

    /// Puts a region before all others of a class. It is in no list.
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
