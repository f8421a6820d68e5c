//! Idle pages: free pages inside of regions in use, given back to the system when the heap takes
//! new memory.
//!
//! A heap whose sizes shift ends up with many nearly empty chunks, and asks for new ones, as what
//! it needs now does not fit the holes. So when pages without memory come into use, and much more
//! memory is there than is in use, the heap goes around the ring of all regions of whole pages, a
//! few at a time, and lends idle pages to whoever [gives them back](crate::heap::upkeep). So what
//! is resident follows what is in use, without any search; and a heap that does not grow keeps what
//! it has.

use crate::ground::geometry::{CHUNK_BYTES, RegionId, granule_shift, region_shift};
use crate::ground::{harden, meter, os, words};
use crate::heap::state::{Heap, is_claimed};
use crate::store::idle::IDLE;
use crate::store::region::PAGE_LEVEL;
use crate::store::space::SPACE;

/// Memory is idle beyond this multiple of the bytes of blocks, plus a minimum. A heap whose blocks
/// come and go at random stays below, and keeps its pages; a larger factor would not keep resident
/// memory below 2.2 times what is live (`./x bench heap --only frag`).
const TOUCHED_OF_USED: usize = 2;
const TOUCHED_MIN: usize = 1 << 20;
/// A quiet heap keeps this fraction more than what is in use, plus the minimum.
const QUIET_PART: usize = 4;
/// Regions taken back and searched at once in the owner's place: some 50 µs.
const TIDIED: usize = 256;
/// Regions coalesced at once in the owner's place, which is quicker.
const COALESCED_QUIETLY: u32 = 1024;
/// Shares of one step of an owner without a helper: regions taken back, regions searched, pieces
/// lent, regions coalesced.
const ADOPTED_A_LITTLE: usize = 4;
const TIDIED_A_LITTLE: usize = 2;
const LENT_A_LITTLE: usize = 4;
const COALESCED_A_LITTLE: u32 = 1;
/// Regions searched for each page that comes into use. With fewer, the ring is not done while sizes
/// shift: with one, `./x bench heap --only frag` ended at 2.5 times what was live, with two at 2.2.
const LOOKS_A_PAGE: usize = 2;
/// Regions coalesced for each page that comes into use, as many as a page may have.
const COALESCES_A_PAGE: u32 = 16;
const COALESCES_MAX: u32 = 1 << 16;
/// The most searches saved up.
const LOOKS_MAX: usize = 1 << 16;
/// Regions searched after a cut: more for a large block, which brings more pages in.
const fn looks_for(level: usize) -> usize {
    1 << level.saturating_sub(1)
}
const fn pieces_for(level: usize) -> usize {
    2 << level
}
pub(crate) const PAGE_SHIFT: u32 = 12;
const _: () = assert!(1 << PAGE_SHIFT == os::PAGE);

/// log2 of the bytes of a unit: what a bit of `touched` stands for.
pub(crate) fn unit_shift(level: usize) -> u32 {
    granule_shift(level).max(PAGE_SHIFT)
}

/// All units of a region.
fn all_units(level: usize) -> u64 {
    words::ones(1 << (region_shift(level) - unit_shift(level)))
}

/// Gathers every fourth bit into the lower sixteen.
fn gather(word: u64) -> u64 {
    let word = word & 0x1111_1111_1111_1111;
    let word = (word | word >> 3) & 0x0303_0303_0303_0303;
    let word = (word | word >> 6) & 0x000f_000f_000f_000f;
    let word = (word | word >> 12) & 0x0000_00ff_0000_00ff;
    (word | word >> 24) & 0xffff
}

/// The place where a region of level 2 or above records lent blocks: the region of whole pages, and
/// the bits there. Only a block that starts a page has one.
fn place_of_lent(region: RegionId, level: usize, blocks: u64) -> (RegionId, u64) {
    match level {
        2 => {
            let chunk = RegionId::at(PAGE_LEVEL, region.offset());
            let first = (region.offset() - chunk.offset()) >> PAGE_SHIFT;
            let pages = (0..4).fold(0, |pages, page| pages | (blocks >> (16 * page) & 1) << page);
            (chunk, pages << (16 + first))
        }
        PAGE_LEVEL => (region, gather(blocks)),
        _ => (region, blocks),
    }
}

impl Heap {
    /// Records that granules of a region of level 2 or above come into use.
    #[inline]
    pub(crate) fn touch(&self, region: RegionId, level: usize, granules: u64) {
        let (whole, units) = match level {
            // The nursery counts its own pages.
            2 if self.is_in_nursery(region) => return,
            2 => {
                // Sixteen of its granules make a page of the chunk.
                let chunk = RegionId::at(PAGE_LEVEL, region.offset());
                let first = (region.offset() - chunk.offset()) >> PAGE_SHIFT;
                let pages = [0, 16, 32, 48]
                    .iter()
                    .enumerate()
                    .filter(|(_, shift)| granules >> *shift & 0xffff != 0)
                    .fold(0u64, |pages, (page, _)| pages | 1 << page);
                (chunk, pages << first)
            }
            PAGE_LEVEL => {
                let any = granules | granules >> 1;
                (region, gather(any | any >> 2))
            }
            _ => (region, granules),
        };
        let touched = &self.page_state(whole).touched;
        let new = units & !touched.get();
        if new != 0 {
            touched.set(touched.get() | new);
            let pages = (new.count_ones() as usize) << (unit_shift(level) - PAGE_SHIFT);
            self.grown.set(self.grown.get() + pages);
            self.touched.set(self.touched.get() + (pages << PAGE_SHIFT));
            if self.deferred.get() != 0 {
                let coalesces = self.coalesces.get() + COALESCES_A_PAGE * pages as u32;
                self.coalesces.set(coalesces.min(COALESCES_MAX));
            }
            if self.has_idle_pages() {
                let looks = self.looks.get() + LOOKS_A_PAGE * pages;
                self.looks.set(looks.min(LOOKS_MAX));
            }
        }
    }

    /// Units of a region that are free and may have memory.
    fn idle(&self, region: RegionId) -> u64 {
        let level = region.level();
        let free = self.region(region).free.get();
        let mut idle = free;
        if level == PAGE_LEVEL {
            let two = free & free >> 1;
            idle = gather(two & two >> 2);
            // Regions of level 2 in use have free pages, too.
            for part in 0..CHUNK_BYTES >> region_shift(2) {
                let inner = RegionId::at(2, region.offset() + (part << region_shift(2)));
                let words = self.region(inner);
                let free = words.free.get() & !words.starts.get();
                let rooms = words::runs(free, 16) & words::ALIGNED;
                for page in 0..4 {
                    idle |= (rooms >> (16 * page) & 1) << (4 * part + page);
                }
            }
        }
        idle & self.page_state(region).touched.get()
    }

    /// Searches for idle pages if others have come into use: once for a small block that was cut,
    /// more often for a large one.
    #[inline]
    pub(crate) fn balance(&self, level: usize) {
        if self.looks.get() != 0 || self.coalesces.get() != 0 {
            self.balance_slow(level);
        }
    }

    #[cold]
    fn balance_slow(&self, level: usize) {
        if !IDLE.stage.is_allowed() || harden::fills() {
            self.looks.set(0);
            self.coalesces.set(0);
            return;
        }
        let coalesces = self.coalesces.get().min(looks_for(level) as u32);
        self.coalesces.set(self.coalesces.get() - coalesces);
        self.coalesce_any(coalesces);
        let pages = self.grown.replace(0);
        if pages != 0 {
            IDLE.report_grown(pages as u32);
        }
        let looks = self.looks.get().min(looks_for(level));
        self.looks.set(self.looks.get() - looks);
        if self.lend_idle(looks, pieces_for(level)) > 0 && pages == 0 {
            // Searches were left from pages reported before, and upkeep has been since.
            IDLE.call();
        }
    }

    /// Searches `looks` regions of the ring and lends up to `most` pieces; returns how many.
    fn lend_idle(&self, looks: usize, most: usize) -> usize {
        let mut pieces = most;
        for _ in 0..looks {
            meter::step();
            let region = RegionId(self.ring.get());
            if region.is_none() || pieces == 0 {
                break;
            }
            self.ring.set(self.page_state(region).behind.get());
            self.visit(region, &mut pieces);
        }
        most - pieces
    }

    /// Whether much more memory is there than is in use.
    #[inline]
    pub(crate) fn has_idle_pages(&self) -> bool {
        self.has_idle(TOUCHED_MIN)
    }

    /// The same, by a given number of bytes.
    #[inline]
    pub(crate) fn has_idle(&self, beyond: usize) -> bool {
        self.touched.get() > TOUCHED_OF_USED * self.used.get() + beyond
    }

    /// Tidies the heap of a quiet owner, for the helper: takes back remote frees and lends idle
    /// pages. Returns how much it has done, searches included; 0 if nothing is left to do.
    pub(crate) fn tidy(&self) -> usize {
        let mut adopted = 0;
        while adopted < TIDIED && self.entry().queue.has_some(&SPACE) {
            let _ = self.adopt();
            adopted += 1;
        }
        let kept = self.used.get() + self.used.get() / QUIET_PART + TOUCHED_MIN;
        // The patterns in free blocks must stay.
        if self.touched.get() <= kept || harden::fills() {
            return adopted;
        }
        let coalesced = self.coalesce_any(COALESCED_QUIETLY) as usize;
        let lent = self.lend_idle(TIDIED, TIDIED);
        // Not before the ring was searched in vain: as many regions as chunks, and those of
        // several.
        let looked = if coalesced + lent > 0 {
            0
        } else {
            self.looked.get() + TIDIED
        };
        self.looked.set(looked);
        adopted + coalesced + lent + usize::from(looked < 2 * self.chunks.get())
    }

    /// Does a little of the same, for an owner without a helper: so little that it may come at the
    /// end of any slow step. After a vain search of the ring it waits until an eighth of what was
    /// in use is free.
    pub(crate) fn tidy_a_little(&self) {
        let used = self.used.get();
        if !self.has_idle_pages() || harden::fills() || used >= self.tidied_at.get() {
            return;
        }
        // What was lent before is free now, and may be the last of its chunk.
        for _ in 0..ADOPTED_A_LITTLE {
            if self.entry().queue.has_some(&SPACE) {
                let _ = self.adopt();
            }
        }
        let coalesced = self.coalesce_any(COALESCED_A_LITTLE) as usize;
        let lent = self.lend_idle(TIDIED_A_LITTLE, LENT_A_LITTLE);
        let looked = if coalesced + lent > 0 {
            0
        } else {
            self.looked.get() + TIDIED_A_LITTLE
        };
        self.looked.set(looked);
        let is_in_vain = looked >= 2 * self.chunks.get();
        let again_at = if is_in_vain {
            used - used / 8
        } else {
            usize::MAX
        };
        self.tidied_at.set(again_at);
    }

    /// Lends up to `pieces` idle pieces of a region.
    fn visit(&self, region: RegionId, pieces: &mut usize) {
        let (level, whole) = (region.level(), self.page_state(region));
        let mut units = self.idle(region);
        while units != 0 && *pieces > 0 {
            meter::step();
            *pieces -= 1;
            let first = units.trailing_zeros();
            // A block has at most 16 granules; one of a chunk, no more than one of its regions.
            let most = if level == PAGE_LEVEL { 4 } else { 16 };
            let limit = most - first % most;
            let count = (!(units >> first)).trailing_zeros().min(limit);
            let count = self.lend(region, level, first, count);
            if count == 0 {
                return;
            }
            let lent = words::ones(count) << first;
            units &= !lent;
            self.forget_units(level, whole.touched.get() & lent);
            whole.touched.set(whole.touched.get() & !lent);
            // Their next pages come from the node of their address.
            whole.migrated.set(whole.migrated.get() & !lent);
        }
    }

    fn count_units(&self, level: usize, units: u64) {
        let bytes = (units.count_ones() as usize) << unit_shift(level);
        self.touched.set(self.touched.get() + bytes);
    }

    fn forget_units(&self, level: usize, units: u64) {
        let bytes = (units.count_ones() as usize) << unit_shift(level);
        self.touched.set(self.touched.get() - bytes);
    }

    /// Adds a new region of whole pages. Pages of a part of another region are counted there.
    pub(crate) fn begin_pages(&self, region: RegionId, is_touched: bool) {
        let (level, whole) = (region.level(), self.page_state(region));
        let units = if is_touched { all_units(level) } else { 0 };
        whole.touched.set(units);
        if whole.is_root.get() {
            whole.begin_at_home();
            self.count_units(level, units);
        }
        self.enter_ring(region);
    }

    /// Removes a region of whole pages.
    pub(crate) fn end_pages(&self, region: RegionId) {
        let (level, whole) = (region.level(), self.page_state(region));
        debug_assert_eq!(whole.lent.get(), 0, "what is lent is a block");
        if whole.is_root.get() {
            self.forget_units(level, whole.touched.get());
        } else {
            self.count_units(level, all_units(level) & !whole.touched.get());
        }
        self.leave_ring(region);
    }

    /// Cuts idle units off as a block and lends it. Returns how many: all, one, or none.
    fn lend(&self, region: RegionId, level: usize, first: u32, count: u32) -> u32 {
        let shift = unit_shift(level);
        let offset = region.offset_on(level) + ((first as usize) << shift);
        let bytes = (count as usize) << shift;
        if level > PAGE_LEVEL {
            return count * u32::from(self.lend_block(region, level, first, count, offset, bytes));
        }
        // Four granules of a chunk make a page.
        let granules = words::ones(4 * count) << (4 * first);
        if self.region(region).free.get() & granules == granules {
            let lent = self.lend_block(region, level, 4 * first, 4 * count, offset, bytes);
            return count * u32::from(lent);
        }
        // The page lies in a region of level 2, where it is the longest block.
        let inner = RegionId::at(2, offset);
        let place = ((offset - inner.offset_on(2)) >> granule_shift(2)) as u32;
        let granules = words::ones(16) << place;
        if is_claimed(self.grade(inner).get())
            || self.region(inner).free.get() & granules != granules
        {
            return 0;
        }
        u32::from(self.lend_block(inner, 2, place, 16, offset, os::PAGE))
    }

    fn lend_block(
        &self,
        region: RegionId,
        level: usize,
        first: u32,
        granules: u32,
        offset: usize,
        bytes: usize,
    ) -> bool {
        let grade = self.grade(region).get();
        if is_claimed(grade) {
            return false;
        }
        self.unlink(region, level, grade);
        self.cut(region, level, 1 << first, granules);
        self.link(region, level, words::grade(self.region(region).free.get()));
        if IDLE.lend(offset, bytes) {
            self.note_lent(region, level, 1 << first);
            self.used.set(self.used.get() + bytes);
            return true;
        }
        // The ring is full. Undo the cut; the pages stay, and count as in use until they are.
        let words = self.region(region);
        let free = words.free.get() | words::ones(granules) << first;
        words.free.set(free);
        words.starts.set(words.starts.get() & !(1 << first));
        self.unlink(region, level, self.grade(region).get());
        self.link(region, level, words::grade(free));
        false
    }

    /// Records a lent block of a component's heap: if the heap is destroyed, the block is still to
    /// come home.
    fn note_lent(&self, region: RegionId, level: usize, block: u64) {
        if self.is_private.get() {
            let (whole, bits) = place_of_lent(region, level, block);
            let lent = &self.page_state(whole).lent;
            lent.set(lent.get() | bits);
        }
    }

    /// Clears the record of blocks that have come home.
    #[inline]
    pub(crate) fn clear_lent(&self, region: RegionId, blocks: u64) {
        let level = region.level();
        if level < 2 || !self.is_private.get() || self.is_in_nursery(region) {
            return;
        }
        let (whole, bits) = place_of_lent(region, level, blocks);
        let lent = &self.page_state(whole).lent;
        if lent.get() & bits != 0 {
            lent.set(lent.get() & !bits);
        }
    }

    /// Records what a region of whole pages has lent as its starts, and as those of its regions of
    /// level 2: see [`destroy`](crate::heap::destroy).
    pub(crate) fn await_lent(&self, region: RegionId) {
        let mut lent = self.page_state(region).lent.get();
        if region.level() > PAGE_LEVEL {
            return self.await_blocks(region, lent);
        }
        while lent != 0 {
            let bit = lent.trailing_zeros();
            lent &= lent - 1;
            let page = bit & 15;
            if bit < 16 {
                self.await_blocks(region, 1 << (4 * page));
            } else {
                let offset = region.offset() + ((page as usize) << PAGE_SHIFT);
                self.await_blocks(RegionId::at(2, offset), 1 << (16 * (page & 3)));
            }
        }
    }

    // ---- the ring ----------------------------------------------------------------------------

    /// Puts a region at the end of the ring.
    fn enter_ring(&self, region: RegionId) {
        let own = self.page_state(region);
        let first = RegionId(self.ring.get());
        if first.is_none() {
            own.before.set(region.0);
            own.behind.set(region.0);
            self.ring.set(region.0);
            return;
        }
        let last = RegionId(self.page_state(first).before.replace(region.0));
        self.page_state(last).behind.set(region.0);
        own.before.set(last.0);
        own.behind.set(first.0);
    }

    /// Takes a region out of the ring.
    fn leave_ring(&self, region: RegionId) {
        let own = self.page_state(region);
        let (before, behind) = (RegionId(own.before.get()), RegionId(own.behind.get()));
        if behind == region {
            self.ring.set(0);
            return;
        }
        self.page_state(before).behind.set(behind.0);
        self.page_state(behind).before.set(before.0);
        if self.ring.get() == region.0 {
            self.ring.set(behind.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The inverse, with each bit four times.
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
