//! Free pages inside of regions in use: given back to the system when the heap takes new memory.
//!
//! A heap whose sizes shift ends up with many chunks that are nearly empty, and asks for
//! new ones, as what it needs now is too large for the holes. So for every page that begins to be
//! used and had no memory behind it, an idle one is given back elsewhere: the ring of all
//! regions of whole pages is gone around, a few at a time. What is resident then follows what is in
//! use, though nothing is searched.

use crate::geometry::{CHUNK_BYTES, LEVELS, RegionId, granule_shift, region_shift};
use crate::heap::{Heap, Home};
use crate::os;
use crate::space::WHOLE_LEVEL;
use crate::words;

/// Pages that may begin to be used before as many are given back.
const OWED_MAX: usize = 16;
/// Regions looked at then.
const LOOKED_AT: usize = 64;
const PAGE_SHIFT: u32 = 12;
const _: () = assert!(1 << PAGE_SHIFT == os::PAGE);

/// log2 of the bytes that a bit of `touched` stands for.
fn unit_shift(level: usize) -> u32 {
    granule_shift(level).max(PAGE_SHIFT)
}

/// Every fourth bit to the lower sixteen, in turn.
fn gather(word: u64) -> u64 {
    let word = word & 0x1111_1111_1111_1111;
    let word = (word | word >> 3) & 0x0303_0303_0303_0303;
    let word = (word | word >> 6) & 0x000f_000f_000f_000f;
    let word = (word | word >> 12) & 0x0000_00ff_0000_00ff;
    (word | word >> 24) & 0xffff
}

impl Heap {
    /// Granules of a region of level 2 or above are going to be used.
    #[inline]
    pub(crate) fn touch(&self, region: RegionId, level: usize, granules: u64) {
        let (whole, units) = match level {
            2 => {
                // Sixteen of its granules are a page of the chunk.
                let chunk = RegionId::at(WHOLE_LEVEL, region.offset());
                let first = (region.offset() - chunk.offset()) >> PAGE_SHIFT;
                let pages = [0, 16, 32, 48]
                    .iter()
                    .enumerate()
                    .filter(|(_, shift)| granules >> *shift & 0xffff != 0)
                    .fold(0u64, |pages, (page, _)| pages | 1 << page);
                (chunk, pages << first)
            }
            WHOLE_LEVEL => {
                let any = granules | granules >> 1;
                (region, gather(any | any >> 2))
            }
            _ => (region, granules),
        };
        let touched = &self.whole(whole).touched;
        let new = units & !touched.get();
        if new != 0 {
            touched.set(touched.get() | new);
            let pages = (new.count_ones() as usize) << (unit_shift(level) - PAGE_SHIFT);
            self.owed.set(self.owed.get() + pages);
        }
    }

    /// Pages of a region, or larger granules, that are free and may have memory.
    fn idle(&self, region: RegionId) -> u64 {
        let level = region.level();
        let free = self.region(region).free.get();
        let mut idle = free;
        if level == WHOLE_LEVEL {
            let two = free & free >> 1;
            idle = gather(two & two >> 2);
            // Regions of level 2 that are in use have free pages, too.
            for part in 0..CHUNK_BYTES >> region_shift(2) {
                let inner = RegionId::at(2, region.offset() + (part << region_shift(2)));
                let rooms = words::runs(self.region(inner).free.get(), 16) & words::ALIGNED;
                for page in 0..4 {
                    idle |= (rooms >> (16 * page) & 1) << (4 * part + page);
                }
            }
        }
        idle & self.whole(region).touched.get()
    }

    /// Gives idle pages back, about as many as have begun to be used, if they are found soon.
    #[inline]
    pub(crate) fn balance(&self, home: Home<'_>) {
        if self.owed.get() >= OWED_MAX {
            self.balance_slow(home);
        }
    }

    #[cold]
    fn balance_slow(&self, home: Home<'_>) {
        let mut owed = 2 * self.owed.replace(0);
        let node = self.node.get() as usize;
        let chunks = owed.div_ceil(CHUNK_BYTES >> PAGE_SHIFT) as u32;
        let forgotten = home.pools.forget_idle(home.space, node, chunks);
        owed = owed.saturating_sub((forgotten as usize) * (CHUNK_BYTES >> PAGE_SHIFT));
        for _ in 0..LOOKED_AT {
            let region = RegionId(self.ring.get());
            if region.is_none() || owed == 0 {
                return;
            }
            self.ring.set(self.whole(region).behind.get());
            let mut idle = self.idle(region);
            let shift = unit_shift(region.level());
            while idle != 0 {
                let first = idle.trailing_zeros();
                let count = (!(idle >> first)).trailing_zeros().min(64 - first);
                let units = words::ones(count) << first;
                idle &= !units;
                let start = self.address(region, 0) + ((first as usize) << shift);
                // SAFETY: these pages are this heap's, and no block is in them.
                if !unsafe { os::forget(start, (count as usize) << shift) } {
                    return;
                }
                let touched = &self.whole(region).touched;
                touched.set(touched.get() & !units);
                owed = owed.saturating_sub((count as usize) << (shift - PAGE_SHIFT));
            }
        }
    }

    // ---- the ring -------------------------------------------------------------------------------

    /// Puts a region into the ring, behind all others.
    pub(crate) fn enter_ring(&self, region: RegionId) {
        let own = self.whole(region);
        let first = RegionId(self.ring.get());
        if first.is_none() {
            own.before.set(region.0);
            own.behind.set(region.0);
            self.ring.set(region.0);
            return;
        }
        let last = RegionId(self.whole(first).before.replace(region.0));
        self.whole(last).behind.set(region.0);
        own.before.set(last.0);
        own.behind.set(first.0);
    }

    /// Takes a region out of the ring.
    pub(crate) fn leave_ring(&self, region: RegionId) {
        let own = self.whole(region);
        let (before, behind) = (RegionId(own.before.get()), RegionId(own.behind.get()));
        if behind == region {
            self.ring.set(0);
            return;
        }
        self.whole(before).behind.set(behind.0);
        self.whole(behind).before.set(before.0);
        if self.ring.get() == region.0 {
            self.ring.set(behind.0);
        }
    }
}

const _: () = assert!(LEVELS > WHOLE_LEVEL);

#[cfg(test)]
mod tests {
    use super::*;

    /// The reverse, each bit four times.
    fn scatter(pages: u64) -> u64 {
        let word = pages & 0xffff;
        let word = (word | word << 24) & 0x0000_00ff_0000_00ff;
        let word = (word | word << 12) & 0x000f_000f_000f_000f;
        let word = (word | word << 6) & 0x0303_0303_0303_0303;
        let word = (word | word << 3) & 0x1111_1111_1111_1111;
        word * 15
    }

    #[test]
    fn pages_are_every_fourth_granule() {
        for pages in 0..=0xffff {
            assert_eq!(gather(scatter(pages)), pages);
            assert_eq!(scatter(pages).count_ones(), 4 * pages.count_ones());
        }
    }
}
