//! The words of a region, and how a thread that does not own them learns the class of its block.
//!
//! A region has three words, a bit for each granule: `free`, nobody has it; `starts`, a block starts there;
//! `ends`, a block ends there. The owner keeps the first two true at every cut and return. `ends` says
//! nothing that they do not say, to the owner: the block goes on to the next granule that is free or a start.
//! For anybody else that sum of two words is worthless, as the owner may change both between two loads: the
//! granule behind a block can be free, then a start, then free again, and a reader that loads `starts` in the
//! first state and `free` in the second finds neither. So a reader takes a block's length from one load of
//! one word.
//!
//! *Reading.* A block that is alive has these for as long as it lives, whatever its neighbours do:
//!
//! ```text
//! starts   1 at its first granule
//! free     0 at its first granule; 1 means that the block is deferred
//! ends     1 at its last granule, 0 at those before: if it starts in a KiB with blocks of several classes
//! kind     of the KiB where it starts: its class, or its level and "mixed"
//! ```
//!
//! So each of a reader's loads gives what it would give at any other time, and no two of them have to fit each
//! other. The answer takes three loads and no loop.
//!
//! *Writing.* Where all blocks that start in a KiB have one class, the kind tells it, and `ends` is not
//! looked at. So the owner brings `ends` up to date only when it cuts a block in a KiB that is mixed from
//! then on: the whole word at once, from `free` and `starts`. Bits of blocks that have gone stay until then:
//! they lie in granules that are free, or belong to blocks of KiBs with one class. A cut covers granules with
//! such bits only where the kind tells the new block's class, or the word is written anew.
//!
//! | field | who writes | who reads |
//! |---|---|---|
//! | `free`, `starts` | the owner | the owner; of its own live block's first granule, anybody |
//! | `ends` | the owner | of its own live block's granules, anybody |
//! | a KiB's kind | the owner, after `ends` | whoever has a live block that starts there |
//! | `previous`, `next` | the owner | the owner |
//!
//! *The owner* is whose [turn](crate::heap::handshake) it is.

use core::cell::Cell;

use crate::ground::atomics::{AtomicU8, AtomicU64, Ordering, Owned};
use crate::ground::geometry::{CLASSES, Class, GRANULES_MAX, granule_shift};
use crate::ground::words;

/// log2 of a KiB.
pub(crate) const KIB_SHIFT: u32 = 10;
/// From this level on a region consists of whole pages, and no two blocks start in one KiB.
pub(crate) const PAGE_LEVEL: usize = 3;
const _: () = assert!(granule_shift(PAGE_LEVEL) >= KIB_SHIFT);

/// A word that its owner changes with plain loads and stores, and others may read.
#[repr(transparent)]
pub(crate) struct Word(AtomicU64);

impl Word {
    /// For the owner.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.own()
    }

    /// For anybody.
    #[inline]
    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// For the owner.
    #[inline]
    pub(crate) fn set(&self, word: u64) {
        self.0.store(word, Ordering::Relaxed);
    }
}

/// The words of a region. Aligned so that they lie in one cache line.
#[repr(C, align(32))]
pub(crate) struct Region {
    /// Granules that nobody has.
    pub(crate) free: Word,
    /// Granules where a block starts.
    pub(crate) starts: Word,
    /// Granules where a block ends: see above for when.
    ends: Word,
    /// Neighbours in the list of its grade.
    pub(crate) previous: Cell<u32>,
    pub(crate) next: Cell<u32>,
}

/// What starts in a KiB: blocks of one class, by its number; or blocks of several classes of one level.
/// Where nothing starts it means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(pub(crate) u8);

/// Kinds: classes, and a mixture on each level whose granules are smaller than a KiB.
pub(crate) const KINDS: usize = CLASSES + PAGE_LEVEL;

impl Kind {
    #[inline]
    pub(crate) const fn pure(class: Class) -> Kind {
        Kind(class.number() as u8)
    }

    #[inline]
    pub(crate) const fn mixed(level: usize) -> Kind {
        Kind((CLASSES + level) as u8)
    }

    /// The class of all blocks; None for a mixture.
    #[inline]
    pub(crate) const fn class(self) -> Option<Class> {
        if (self.0 as usize) < CLASSES {
            Some(Class::from_number(self.0 as usize))
        } else {
            None
        }
    }

    /// Its level.
    #[inline]
    pub(crate) const fn level(self) -> usize {
        let number = self.0 as usize;
        if number < CLASSES {
            number / GRANULES_MAX
        } else {
            number - CLASSES
        }
    }
}

impl Region {
    /// For the owner: cuts blocks of one size off at places that are free. `kind_of` finds the kind of the KiB of
    /// a granule; the kinds of those where blocks begin tell of them before this returns.
    #[inline(always)]
    pub(crate) fn cut<'a>(
        &self,
        level: usize,
        begins: u64,
        granules: u32,
        kind_of: impl Fn(u32) -> &'a AtomicU8,
    ) {
        let (free, starts) = (self.free.get(), self.starts.get());
        let is_short = cfg!(feature = "canary-short-cut") && level == 0 && granules == 7;
        let covered = words::spread(begins, granules - u32::from(is_short));
        self.starts.set(starts | begins);
        self.free.set(free & !covered);
        let class = Kind::pure(Class::of(level, granules as usize));
        let mut is_told = false;
        let mut left = begins;
        while left != 0 {
            let first = left.trailing_zeros();
            // The granules of this KiB: all of a region of level 0, one or less of level 3 and above.
            let shift = KIB_SHIFT.saturating_sub(granule_shift(level));
            let granules_of_kib = words::ones(1 << shift) << (first >> shift << shift);
            let kind = kind_of(first);
            if kind.own() != class.0 {
                let now = if starts & granules_of_kib == 0 {
                    class
                } else {
                    if !is_told {
                        self.tell_ends();
                        is_told = true;
                    }
                    Kind::mixed(level)
                };
                // Releases the ends; `class_of_live` acquires.
                kind.store(now.0, Ordering::Release);
            }
            left &= !granules_of_kib;
        }
    }

    /// For the owner: brings the ends of all blocks up to date, deferred ones too.
    #[inline]
    fn tell_ends(&self) {
        let (free, starts) = (self.free.get(), self.starts.get());
        self.ends.set(words::ends(free, starts));
    }

    /// The class of a block that is alive and starts at a place of the data, which is in this region of a level
    /// with this kind: for any thread that has the block. None if no block starts there; what is said of a
    /// place where none is alive is true or None for the moment at best.
    ///
    /// The caller has loaded the kind with `Acquire`, or has a fence behind the load.
    #[inline(always)]
    pub(crate) fn class_of_live(&self, kind: Kind, level: usize, offset: usize) -> Option<Class> {
        let shift = granule_shift(level);
        let first = (offset >> shift) as u32 & 63;
        // What is both is deferred.
        let is_block = (self.starts.read() & !self.free.read()) >> first & 1 == 1;
        if !is_block || offset & ((1 << shift) - 1) != 0 {
            return None;
        }
        if let Some(class) = kind.class() {
            return Some(class);
        }
        let granules = (self.ends.read() >> first).trailing_zeros() as usize + 1;
        // Never more of a block that is alive.
        (granules <= GRANULES_MAX).then(|| Class::of(level, granules))
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
