//! Loose blocks: freed, and still cut off for their class.
//!
//! A block that finds no place in front is not joined with what is free around it. Its region goes to a list of
//! its class, and the granule where the block starts is noted as free *and* as a start: two words that
//! are there anyway, of which no other block has both. So to give such a block back is to set a bit, to give it
//! out again is to clear it, neither looks at the blocks around, and the list may become as long as it likes.
//!
//! A class takes its loose blocks first, from the region that came last. They are joined, and their region
//! goes back to the list of its grade, the oldest of a list first:
//! - when another class finds no room on its level, and on the levels above before more memory is asked for: of a
//!   region each;
//! - when [pages](crate::pages) begin to be used that had no memory, and when the first block of a region becomes
//!   loose where much has memory that is not in use: of some regions;
//! - when there is no memory, when a quiet heap is tidied up, and when it ends: all.
//!
//! A region has loose blocks of one class only. What is freed there of another class is joined at once. Blocks
//! of a page or more are never loose: what is idle there can be given back.

use core::sync::atomic::Ordering;

use crate::faults::Told;
use crate::front::filled_at_once;
use crate::geometry::{Class, GRANULES_MAX, RegionId, granule_bytes, granule_shift};
use crate::harden;
use crate::heap::{Fault, Heap, Home};
use crate::meter;
use crate::os::PAGE;
use crate::real_time;
use crate::region::{KIB_SHIFT, Kind, WHOLE_LEVEL};
use crate::words;

/// Instead of a grade, with the number of a class: the region is in the list of that class. What is less is a
/// grade; what is more, [`TAKEN`](crate::heap::TAKEN).
pub(crate) const LOOSE: u8 = 64;
const _: () = assert!(words::ROOM < LOOSE && WHOLE_LEVEL * GRANULES_MAX <= 64);

/// Where much more than is in use has memory, and so many bytes beyond that, loose blocks of so many regions are
/// joined for each region that gets its first. With 4 MiB runs of sizes that come again (`in-runs`, 10 MiB) took an
/// eighth more instructions; with two regions sizes that shift ended at 2.20 times what was live, with four at 2.17
/// (`./x bench heap --only frag`).
const MUCH_BEYOND: usize = 16 << 20;
const JOINED_BEYOND: u32 = 4;
/// An allocation takes blocks from so many regions at most.
const TAKEN_FROM: u32 = 4;

/// May a heap that has fronts keep loose blocks? Not where every block is looked at; and in real-time mode there
/// is no more memory, so that joining could not be put off.
pub(crate) fn is_wanted() -> bool {
    !harden::looks() && !real_time::is_on()
}

/// The region is in the list of a class, or is used by one.
#[inline]
pub(crate) const fn is_claimed(grade: u8) -> bool {
    grade >= LOOSE
}

impl Heap {
    /// Are there loose blocks of a class?
    #[inline]
    pub(crate) fn has_loose(&self, class: Class) -> bool {
        class.level() < WHOLE_LEVEL && self.loose.get() >> class.number() & 1 == 1
    }

    /// Takes a block of a class back that finds no place in front.
    #[inline]
    pub(crate) fn loosen(&self, home: Home<'_>, class: Class, block: usize) -> Told {
        match class.level() {
            0 => self.loosen_on::<0>(home, class, block),
            1 => self.loosen_on::<1>(home, class, block),
            2 if class.bytes() < PAGE => self.loosen_on::<2>(home, class, block),
            _ => self.restore_one(home, class, block),
        }
    }

    #[inline]
    fn loosen_on<const LEVEL: usize>(&self, home: Home<'_>, class: Class, block: usize) -> Told {
        let offset = block - self.data.get();
        let region = RegionId::at(LEVEL, offset);
        let grade = self.grade(region).get();
        let own = LOOSE + class.number() as u8;
        if is_claimed(grade) && grade != own {
            let is_done = self.join_one::<LEVEL>(region, class, offset);
            return if is_done {
                Ok(())
            } else {
                Err((block, Fault::NotABlock))
            };
        }
        if !self.keeps_loose.get() {
            return self.restore_one(home, class, block);
        }
        if !self.note_loose::<LEVEL>(region, class, offset) {
            return Err((block, Fault::NotABlock));
        }
        if grade != own {
            self.unlink(region, LEVEL, grade);
            self.enter_loose(region, class);
        }
        Ok(())
    }

    /// The same if the region has loose blocks of the class already. False if it has none, or if there is no such
    /// block.
    #[inline(always)]
    pub(crate) fn try_loosen(&self, class: Class, offset: usize) -> bool {
        // What depends on the level is constants then.
        match class.level() {
            0 => self.try_loosen_on::<0>(class, offset, false),
            1 => self.try_loosen_on::<1>(class, offset, false),
            2 => self.try_loosen_on::<2>(class, offset, false),
            _ => false,
        }
    }

    /// `is_pure`: all blocks of the region are of the class.
    #[inline(always)]
    pub(crate) fn try_loosen_on<const LEVEL: usize>(
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
            self.grade(region).get() == LOOSE + class.number() as u8
        };
        is_listed && self.note_loose::<LEVEL>(region, class, offset)
    }

    /// Sets the bit of a block. False if there is none, or it is loose already.
    #[inline(always)]
    fn note_loose<const LEVEL: usize>(
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

    /// Takes a block back to a region that is in no list of grades. False if there is none, or it is loose.
    #[inline]
    fn join_one<const LEVEL: usize>(&self, region: RegionId, class: Class, offset: usize) -> bool {
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

    /// May blocks of a region become loose that are all of a class?
    pub(crate) fn can_loosen(&self, region: RegionId, class: Class) -> bool {
        let grade = self.grade(region).get();
        let is_claimed_by_others = is_claimed(grade) && grade != LOOSE + class.number() as u8;
        !is_claimed_by_others && self.keeps_loose.get()
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

    /// Blocks of a region, of one class and not free yet, are loose from now on. It may
    /// [become so](Heap::can_loosen).
    pub(crate) fn loosen_some(&self, region: RegionId, class: Class, begins: u64) {
        let words = self.region(region);
        words.free.set(words.free.get() | begins);
        let bytes = begins.count_ones() as usize * class.bytes();
        self.used.set(self.used.get() - bytes);
        let grade = self.grade(region).get();
        if grade != LOOSE + class.number() as u8 {
            self.unlink(region, class.level(), grade);
            self.enter_loose(region, class);
        }
    }

    /// Some loose blocks of a class to the front, which is empty, and one that is given out; 0 if there are none.
    #[inline]
    pub(crate) fn take_loose(&self, class: Class) -> usize {
        if !self.has_loose(class) {
            return 0;
        }
        // What depends on the level is constants then.
        match class.level() {
            0 => self.take_loose_on::<0>(class),
            1 => self.take_loose_on::<1>(class),
            _ => self.take_loose_on::<2>(class),
        }
    }

    #[inline(never)]
    fn take_loose_on<const LEVEL: usize>(&self, class: Class) -> usize {
        self.make_front(class);
        let front = self.fronts.of(Kind::pure(class));
        let most = filled_at_once(LEVEL).min(front.room().max(1));
        let mut refill = front.refill();
        for _ in 0..TAKEN_FROM {
            meter::step();
            let region = RegionId(front.newest.get());
            if region.is_none() {
                break;
            }
            let words = self.region(region);
            let (free, starts) = (words.free.get(), words.starts.get());
            let loose = free & starts;
            let start = self.data.get() + region.offset_on(LEVEL);
            let mut rest = loose;
            while rest != 0 && refill.count() < most {
                // The highest first, so that the lowest is on top.
                let first = 63 - rest.leading_zeros();
                rest ^= 1 << first;
                refill.add(start + ((first as usize) << granule_shift(LEVEL)));
            }
            words.free.set(free & !loose | rest);
            if rest != 0 {
                break;
            }
            self.leave_loose(region, class);
            match free & !loose {
                0 => self.grade(region).set(words::FULL),
                holes => self.link(region, LEVEL, words::grade(holes)),
            }
        }
        let granules = refill.count() as usize * class.granules() as usize;
        let bytes = granules << granule_shift(LEVEL);
        self.used.set(self.used.get() + bytes);
        refill.end()
    }

    /// Joins some loose blocks if there is much memory that is not in use.
    #[inline]
    pub(crate) fn join_some(&self, home: Home<'_>) {
        if self.has_idle(MUCH_BEYOND) {
            self.join_any(home, JOINED_BEYOND);
        }
    }

    /// Joins the loose blocks of some regions of a level, the oldest, with what is free around them. How many
    /// there were.
    pub(crate) fn join_level(&self, home: Home<'_>, level: usize, regions: u32) -> u32 {
        if level >= WHOLE_LEVEL {
            return 0;
        }
        self.join_of(home, 0xffff << (level * GRANULES_MAX), regions)
    }

    /// The same of all levels.
    pub(crate) fn join_any(&self, home: Home<'_>, regions: u32) -> u32 {
        self.join_of(home, u64::MAX, regions)
    }

    #[inline]
    fn join_of(&self, home: Home<'_>, classes: u64, regions: u32) -> u32 {
        let mut joined = 0;
        while joined < regions {
            let some = self.loose.get() & classes;
            if some == 0 {
                break;
            }
            meter::step();
            // The next one, and after the last the first.
            let later = some & u64::MAX << self.joining.get();
            let next = if later != 0 { later } else { some }.trailing_zeros();
            self.joining.set((next + 1) & 63);
            self.join(home, Class::from_number(next as usize));
            joined += 1;
        }
        joined
    }

    fn join(&self, home: Home<'_>, class: Class) {
        let level = class.level();
        let region = RegionId(self.fronts.of(Kind::pure(class)).oldest.get());
        self.leave_loose(region, class);
        let words = self.region(region);
        let (free, starts) = (words.free.get(), words.starts.get());
        let free = free | words::spread(free & starts, class.granules());
        words.free.set(free);
        words.starts.set(starts & !free);
        if free == u64::MAX {
            self.release(home, region);
        } else {
            self.link(region, level, words::grade(free));
        }
    }

    /// Puts a region before all others of a class. It is in no list.
    fn enter_loose(&self, region: RegionId, class: Class) {
        self.grade(region).set(LOOSE + class.number() as u8);
        let front = self.fronts.of(Kind::pure(class));
        let next = RegionId(front.newest.replace(region.0));
        let words = self.region(region);
        words.previous.set(0);
        words.next.set(next.0);
        if next.is_none() {
            front.oldest.set(region.0);
            self.loose.set(self.loose.get() | 1 << class.number());
        } else {
            self.region(next).previous.set(region.0);
        }
    }

    fn leave_loose(&self, region: RegionId, class: Class) {
        let front = self.fronts.of(Kind::pure(class));
        let words = self.region(region);
        let (previous, next) = (RegionId(words.previous.get()), RegionId(words.next.get()));
        match previous {
            RegionId::NONE => front.newest.set(next.0),
            previous => self.region(previous).next.set(next.0),
        }
        match next {
            RegionId::NONE => front.oldest.set(previous.0),
            next => self.region(next).previous.set(previous.0),
        }
        if front.newest.get() == 0 {
            self.loose.set(self.loose.get() & !(1 << class.number()));
        }
    }
}
