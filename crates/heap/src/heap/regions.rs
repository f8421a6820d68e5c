//! Regions of a heap: cut into blocks, listed by what they can still give, taken from the level
//! above or the pool, and given back there.
//!
//! Invariants, between operations:
//! - A start is free only if its block is [deferred](crate::heap::deferred). Every granule that is
//!   not free belongs to the block that starts at or last below it.
//! - A region is in the list of its grade, unless that is 0, a class has taken it, or it has
//!   deferred blocks. The grade is at most what the region can give, and more than half of it.
//! - A region that is all free is spare, taken, or gone.
//! - A KiB's kind gives the class of every block that starts there, or at least its level.

use core::sync::atomic::Ordering;

use crate::ground::faults::{Checked, Fault};
use crate::ground::geometry::{
    CHUNK_SHIFT, CLASSES, GRANULES_MAX, LEVELS, RegionId, granule_shift, region_shift,
};
use crate::ground::{harden, meter, words};
use crate::heap::state::{Heap, TAKEN, is_claimed};
use crate::store::idle::IDLE;
use crate::store::pool::POOLS;
use crate::store::region::PAGE_LEVEL;
use crate::store::space::{ChunkTag, SPACE};

/// Granules that a region of the level below takes up.
const REGION_GRANULES: u32 = GRANULES_MAX as u32;
/// Regions whose deferred blocks are coalesced on each higher level without room.
const COALESCED_ABOVE: u32 = 1;
/// Turns of shrinking caches for each return of chunks.
const SHRINK_TURNS: usize = 4;
/// The most such turns saved up.
const SHRINK_MAX: usize = 64 * CLASSES;

impl Heap {
    /// Cuts blocks off a region at places that are free.
    #[inline(always)]
    pub(crate) fn cut(&self, region: RegionId, level: usize, begins: u64, granules: u32) {
        let start = region.offset_on(level);
        let kind_of = |first: u32| self.kind(start + ((first as usize) << granule_shift(level)));
        self.region(region).cut(level, begins, granules, kind_of);
        if level >= 2 {
            self.touch(region, level, words::spread(begins, granules));
        }
    }

    /// Takes back blocks of one size in one region. Refuses, and takes none, if one of them is not
    /// a block.
    #[inline]
    pub(crate) fn restore(
        &self,
        region: RegionId,
        level: usize,
        begins: u64,
        granules: u32,
    ) -> Checked {
        let words = self.region(region);
        let (free, starts) = (words.free.get(), words.starts.get());
        let wrong = begins & !(starts & !free);
        if wrong != 0 {
            let first = wrong.trailing_zeros();
            return Err((self.address(region, first), Fault::NotABlock));
        }
        let covered = words::spread(begins, granules);
        let free = free | covered;
        words.free.set(free);
        let bytes = (covered.count_ones() as usize) << granule_shift(level);
        self.used.set(self.used.get() - bytes);
        words.starts.set(starts & !begins);
        let grade = self.grade(region).get();
        if is_claimed(grade) {
            return Ok(());
        }
        if free == u64::MAX {
            self.unlink(region, level, grade);
            self.release(region);
            return Ok(());
        }
        // With exact grades every second granule that comes back would mean another list. Of
        // several blocks each may have made the longest run.
        let grown = if begins & (begins - 1) == 0 {
            words::grade_around(free, begins.trailing_zeros())
        } else {
            words::grade(free)
        };
        if cfg!(feature = "canary-low-grade") && grade != words::FULL {
            return Ok(());
        }
        if grown >= 2 * grade || grown == words::ROOM && grade != words::ROOM {
            self.unlink(region, level, grade);
            self.link(region, level, grown);
        }
        Ok(())
    }

    /// Puts a region back into its list after its class has left it, or its words have changed.
    pub(crate) fn put_back(&self, region: RegionId) {
        let free = self.region(region).free.get();
        if free == u64::MAX {
            self.release(region);
        } else {
            self.link(region, region.level(), words::grade(free));
        }
    }

    /// The tightest region of a level with a run of this many granules. It stays in its list.
    pub(crate) fn find(&self, level: usize, granules: u32) -> Option<RegionId> {
        let grades = self.filled[level].get() >> granules << granules;
        if grades == 0 {
            return None;
        }
        let grade = grades.trailing_zeros() as usize;
        Some(RegionId(self.lists[level][grade].get()))
    }

    /// Takes a region off its list, for a class.
    pub(crate) fn take(&self, region: RegionId) {
        let grade = self.grade(region);
        self.unlink(region, region.level(), grade.get());
        grade.set(TAKEN);
    }

    pub(crate) fn link(&self, region: RegionId, level: usize, grade: u8) {
        self.grade(region).set(grade);
        if grade == words::FULL {
            return;
        }
        let list = &self.lists[level][grade as usize];
        let next = RegionId(list.replace(region.0));
        let words = self.region(region);
        words.previous.set(0);
        words.next.set(next.0);
        if next.is_none() {
            let filled = &self.filled[level];
            filled.set(filled.get() | 1 << grade);
        } else {
            self.region(next).previous.set(region.0);
        }
    }

    pub(crate) fn unlink(&self, region: RegionId, level: usize, grade: u8) {
        if grade == words::FULL || grade == TAKEN {
            return;
        }
        let words = self.region(region);
        let (previous, next) = (RegionId(words.previous.get()), RegionId(words.next.get()));
        if !next.is_none() {
            self.region(next).previous.set(previous.0);
        }
        if !previous.is_none() {
            self.region(previous).next.set(next.0);
            return;
        }
        self.lists[level][grade as usize].set(next.0);
        if next.is_none() {
            let filled = &self.filled[level];
            filled.set(filled.get() & !(1 << grade));
        }
    }

    // ---- from above, and back ----------------------------------------------------------------

    /// A free region of a level, in no list. Goes up to the first level that has room, or to the
    /// pool; then down again, making a region on each level.
    pub(crate) fn new_region(&self, level: usize) -> Option<RegionId> {
        let mut from = level;
        let mut region = loop {
            meter::step();
            let spare = RegionId(self.spare[from].replace(0));
            if !spare.is_none() {
                break spare;
            }
            if let Some(parent) = self.find_room(from + 1) {
                break self.divide(parent, from);
            }
            // A component's heap takes nothing more while it has room above: what it began with, or
            // what a large block has left.
            if self.is_private.get() && self.has_room_above(from) {
                from += 1;
                continue;
            }
            if from >= PAGE_LEVEL {
                break self.take_chunks(from)?;
            }
            if self.is_private.get()
                && let Some(region) = self.take_pages(from)
            {
                self.begin(region, true);
                break region;
            }
            from += 1;
        };
        while from > level {
            meter::step();
            from -= 1;
            region = self.divide(region, from);
        }
        Some(region)
    }

    /// A region with room for one of the level below.
    fn find_room(&self, level: usize) -> Option<RegionId> {
        if level >= LEVELS {
            return None;
        }
        let list = &self.lists[level][words::ROOM as usize];
        if list.get() == 0 {
            self.coalesce_level(level, COALESCED_ABOVE);
        }
        let region = RegionId(list.get());
        (!region.is_none()).then_some(region)
    }

    /// Whether a higher level has a spare region, or one with room for a region.
    fn has_room_above(&self, level: usize) -> bool {
        let with_room = words::ROOM as usize;
        (level + 1..LEVELS)
            .any(|above| self.spare[above].get() != 0 || self.lists[above][with_room].get() != 0)
    }

    /// Makes a region of the level below, out of one with room.
    fn divide(&self, parent: RegionId, level: usize) -> RegionId {
        let places = words::runs(self.region(parent).free.get(), REGION_GRANULES) & words::ALIGNED;
        debug_assert!(places != 0, "a region with room has room");
        let first = places.trailing_zeros();
        self.cut(parent, level + 1, 1 << first, REGION_GRANULES);
        let grade = self.grade(parent).get();
        let now = words::grade(self.region(parent).free.get());
        if grade != now {
            self.unlink(parent, level + 1, grade);
            self.link(parent, level + 1, now);
        }
        let offset = parent.offset() + ((first as usize) << granule_shift(level + 1));
        let region = RegionId::at(level, offset);
        self.begin(region, true);
        region
    }

    /// Sets the words of a new region.
    pub(crate) fn begin(&self, region: RegionId, is_touched: bool) {
        let words = self.region(region);
        words.starts.set(0);
        words.free.set(u64::MAX);
        self.grade(region).set(TAKEN);
        if region.level() >= PAGE_LEVEL {
            self.begin_pages(region, is_touched);
        }
    }

    pub(crate) fn take_chunks(&self, level: usize) -> Option<RegionId> {
        let chunks = 1 << (region_shift(level) - CHUNK_SHIFT);
        let taken = POOLS.take(&SPACE, self.node.get() as usize, chunks)?;
        self.chunks.set(self.chunks.get() + chunks as usize);
        IDLE.report_missed(chunks - taken.with_memory);
        for chunk in taken.chunk..taken.chunk + chunks as usize {
            self.tag(chunk).store(self.own.get(), Ordering::Relaxed);
        }
        // The kind is still meaningless. On a new page a read first would cost a second fault at
        // the write.
        let kind = SPACE.kind(taken.chunk << CHUNK_SHIFT);
        kind.store(0, Ordering::Relaxed);
        let region = RegionId::at(level, taken.chunk << CHUNK_SHIFT);
        self.page_state(region).is_root.set(true);
        let is_filled = harden::fills();
        if is_filled {
            harden::fill_new(self.data.get() + region.offset(), region_shift(level));
        }
        self.begin(region, is_filled || !taken.is_zero());
        Some(region)
    }

    /// Keeps a free region as a spare, or gives it back to the level above or to the pool.
    pub(crate) fn release(&self, region: RegionId) {
        let mut region = region;
        loop {
            meter::step();
            let level = region.level();
            let spare = &self.spare[level];
            if spare.get() == 0 && !self.is_ending.get() {
                self.grade(region).set(TAKEN);
                spare.set(region.0);
                return;
            }
            if level >= PAGE_LEVEL {
                self.end_pages(region);
                if self.page_state(region).is_root.replace(false) {
                    self.give_chunks(region);
                    return;
                }
            } else if self.is_private.get() && self.give_pages(region) {
                return;
            }
            // Only regions have free granules.
            self.region(region).free.set(0);
            let parent = RegionId::at(level + 1, region.offset());
            let first = (region.offset() - parent.offset()) >> granule_shift(level + 1);
            let words = self.region(parent);
            let free = words.free.get() | words::ones(REGION_GRANULES) << first;
            words.free.set(free);
            words.starts.set(words.starts.get() & !(1 << first));
            let grade = self.grade(parent).get();
            if is_claimed(grade) {
                return;
            }
            if free != u64::MAX {
                if grade != words::ROOM {
                    self.unlink(parent, level + 1, grade);
                    self.link(parent, level + 1, words::ROOM);
                }
                return;
            }
            self.unlink(parent, level + 1, grade);
            region = parent;
        }
    }

    /// Gives a region's chunks back to the pool.
    pub(crate) fn give_chunks(&self, region: RegionId) {
        let chunks = 1usize << (region_shift(region.level()) - CHUNK_SHIFT);
        for chunk in region.chunk()..region.chunk() + chunks {
            self.tag(chunk).store(ChunkTag::NONE, Ordering::Relaxed);
        }
        self.region(region).free.set(0);
        self.chunks.set(self.chunks.get() - chunks);
        POOLS.give(&SPACE, region.chunk(), chunks as u32, false);
        IDLE.report_idle(chunks as u32);
        let turns = self.shrink.get() + SHRINK_TURNS;
        self.shrink.set(turns.min(SHRINK_MAX));
    }
}
