//! The words of a region, and how a thread that does not own them learns the class of its block.
//!
//! A region has three words, with a bit for each granule: `free`, nobody has it; `starts`, a block
//! starts there; `ends`, a block ends there. The owner keeps the first two true at every cut and
//! return. To the owner `ends` adds nothing: a block extends to the next granule that is free or a
//! start. For other threads that pair of words is useless, as the owner may change both between two
//! loads: the granule behind a block can be free, then a start, then free again, and a reader that
//! loads `starts` in the first state and `free` in the second sees neither. So a reader takes a
//! block's length from one load of one word.
//!
//! *Reading.* A live block has these values for as long as it lives, whatever its neighbours do:
//!
//! ```text
//! starts   1 at its first granule
//! free     0 at its first granule; 1 means that the block is deferred
//! ends     1 at its last granule, 0 at those before: if it starts in a KiB of several classes
//! kind     of the KiB where it starts: its class, or its level and "mixed"
//! ```
//!
//! So each of a reader's loads returns what it would return at any other time, and the loads need
//! not be consistent with each other. A lookup takes three loads and no loop.
//!
//! *Writing.* Where all blocks that start in a KiB have one class, the kind gives it, and `ends` is
//! not read. So the owner updates `ends` only when it cuts a block in a KiB that becomes, or is,
//! mixed: the whole word at once, from `free` and `starts`. Bits of blocks that have gone stay
//! until then: they lie in free granules, or under blocks of KiBs with one class. A cut covers
//! granules with such bits only where the kind gives the new block's class, or the word is
//! rewritten.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `free`, `starts` | the owner | the owner; at a live block's first granule, its holder |
//! | `ends` | the owner | at a live block's granules, its holder |
//! | a KiB's kind | the owner, after `ends` | whoever has a live block that starts there |
//! | `previous`, `next` | the owner | the owner |
//!
//! *The owner* is the side whose turn it is, by the heap's handshake.

use core::cell::Cell;

use crate::ground::geometry::{CLASSES, Class, GRANULES_MAX, granule_shift};
use crate::ground::words;
use hearth_atomics::{AtomicU8, AtomicU64, Ordering, SingleWriter};

/// log2 of a KiB.
pub(crate) const KIB_SHIFT: u32 = 10;
/// From this level on a region consists of whole pages, and no two blocks start in one KiB.
pub(crate) const PAGE_LEVEL: usize = 3;
const _: () = assert!(granule_shift(PAGE_LEVEL) >= KIB_SHIFT);

/// A word that its owner changes with plain loads and stores, and that others may read.
#[repr(transparent)]
pub(crate) struct Word(AtomicU64);

impl Word {
    /// The value; for the owner.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load_own()
    }

    /// The value; for any thread.
    #[inline]
    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Stores a value; for the owner.
    #[inline]
    pub(crate) fn set(&self, word: u64) {
        self.0.store(word, Ordering::Relaxed);
    }
}

/// The words of a region, aligned to lie in one cache line.
#[repr(C, align(32))]
pub(crate) struct Region {
    /// Granules that nobody has.
    pub(crate) free: Word,
    /// First granules of blocks.
    pub(crate) starts: Word,
    /// Last granules of blocks, as far as the head of this module promises.
    ends: Word,
    /// Neighbours in the list of its grade.
    pub(crate) previous: Cell<u32>,
    pub(crate) next: Cell<u32>,
}

/// The blocks that start in a KiB: of one class, by its number, or of several classes of one level.
/// Meaningless where none starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(pub(crate) u8);

/// The number of kinds: the classes, and a mixture for each level with granules smaller than a KiB.
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

    /// The level of all blocks.
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
    /// Cuts blocks of one size at places that are free; for the owner. `kind_of` finds the kind of
    /// a granule's KiB; this sets the kinds of all KiBs where blocks begin.
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
            // The granules of this KiB: all of a region of level 0, at most one from level 3 on.
            let shift = KIB_SHIFT.saturating_sub(granule_shift(level));
            let granules_of_kib = words::ones(1 << shift) << (first >> shift << shift);
            let kind = kind_of(first);
            if kind.load_own() != class.0 {
                let now = if starts & granules_of_kib == 0 {
                    class
                } else {
                    if !is_told {
                        self.update_ends();
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

    /// Rewrites the ends of all blocks, deferred ones too; for the owner.
    #[inline]
    fn update_ends(&self) {
        let (free, starts) = (self.free.get(), self.starts.get());
        self.ends.set(words::ends(free, starts));
    }

    /// The class of a live block at an offset of the data that lies in this region; for any thread
    /// that has the block. None if no block starts there. Where no block is alive, the answer holds
    /// for the moment at best.
    ///
    /// The caller has loaded the kind with `Acquire`, or has a fence behind the load.
    #[inline(always)]
    pub(crate) fn class_of_live(&self, kind: Kind, level: usize, offset: usize) -> Option<Class> {
        let shift = granule_shift(level);
        let first = (offset >> shift) as u32 & 63;
        // Free and a start: deferred.
        let is_block = (self.starts.read() & !self.free.read()) >> first & 1 == 1;
        if !is_block || offset & ((1 << shift) - 1) != 0 {
            return None;
        }
        if let Some(class) = kind.class() {
            return Some(class);
        }
        let granules = (self.ends.read() >> first).trailing_zeros() as usize + 1;
        // A live block never has more.
        (granules <= GRANULES_MAX).then(|| Class::of(level, granules))
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
