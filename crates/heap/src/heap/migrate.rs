//! Migrates a component's heap pages to the node it now runs on.
//!
//! [`PrivateHeap::move_near_cpu`](crate::PrivateHeap::move_near_cpu) only decides where new memory
//! comes from. Existing pages stay in chunks of the old node until this module is asked to migrate
//! them.
//!
//! *Which pages.* A heap counts no accesses. What it knows for free is how much of a region from
//! the pool is in blocks: the fuller the region, the more of each copied page is used. So the
//! fullest come first, by sixteenths. That is an approximation: full regions may be cold.
//!
//! *Where they are then.* An address determines the node of its pages, and still does after a
//! migration: pages touched later come from there. So a chunk with migrated pages must not go back
//! to its pool as if it were at home. A bit for each chunk records that
//! ([`Arenas::has_migrated`](crate::store::pool::Arenas::has_migrated)), and the pool gives the
//! memory of such a chunk back to the system. Only the pool reads these bits.
//!
//! *Huge pages* move as a whole. Where there may be some, the bits of all chunks in the same two
//! megabytes are set, whoever has them.
//!
//! These stay where they are: pages of nurseries, which several heaps share; blocks of more than
//! 256 KiB, which belong to no heap; and metadata.

use crate::ground::geometry::RegionId;
use crate::ground::os::{self, PagePlace};
use crate::ground::{meter, real_time};
use crate::heap::idle_pages::{PAGE_SHIFT, unit_shift};
use crate::heap::state::Heap;
use crate::store::nodes;
use crate::store::space::{PageState, SPACE};

/// Pages per system call.
const TOGETHER: usize = 64;
/// Degrees of how full a region is, in sixteenths.
const HEATS: usize = 17;

/// Bytes that a call may still migrate, and those that it has.
struct Quota {
    bytes_left: usize,
    migrated: usize,
    /// The system refuses, for lack of memory or permission.
    is_refused: bool,
}

impl Heap {
    /// Migrates pages of regions from the pool to the heap's node, up to `bytes_max`; returns the
    /// bytes that have come.
    pub(crate) fn migrate(&self, bytes_max: usize) -> usize {
        if SPACE.nodes() < 2 || real_time::is_on() {
            return 0;
        }
        let mut waiting = [0; HEATS];
        self.each_of_ring(|region| {
            waiting[self.heat(region)] += self.bytes_elsewhere(region);
        });
        let mut quota = Quota {
            bytes_left: bytes_max,
            migrated: 0,
            is_refused: false,
        };
        // All regions above some heat fit the quota, and a part of those at it. Regions without
        // blocks are cold.
        let mut least = HEATS - 1;
        let mut bytes = waiting[least];
        while least > 1 && bytes < bytes_max {
            least -= 1;
            bytes += waiting[least];
        }
        for is_hotter in [true, false] {
            self.each_of_ring(|region| {
                let heat = self.heat(region);
                if is_hotter && heat > least || !is_hotter && heat == least {
                    self.migrate_region(region, &mut quota);
                }
            });
        }
        quota.migrated
    }

    fn each_of_ring(&self, mut each: impl FnMut(RegionId)) {
        let first = RegionId(self.ring.get());
        let mut region = first;
        while !region.is_none() {
            meter::step();
            let behind = RegionId(self.page_state(region).behind.get());
            if self.page_state(region).is_root.get() {
                each(region);
            }
            region = if behind == first {
                RegionId::NONE
            } else {
                behind
            };
        }
    }

    /// Share of a region that is in blocks, in sixteenths, rounded up.
    fn heat(&self, region: RegionId) -> usize {
        let in_blocks = self.region(region).free.get().count_zeros();
        in_blocks.div_ceil(4) as usize
    }

    /// Units of a region from the pool with memory on another node than the heap.
    fn units_elsewhere(&self, region: RegionId) -> u64 {
        let (whole, node) = (self.page_state(region), self.node.get() as usize);
        let is_there = whole.migrated_to.get() as usize == node;
        if SPACE.node_of_chunk(region.chunk()) == node {
            return whole.migrated.get();
        }
        let there = if is_there { whole.migrated.get() } else { 0 };
        whole.touched.get() & !there
    }

    fn bytes_elsewhere(&self, region: RegionId) -> usize {
        let units = self.units_elsewhere(region).count_ones();
        (units as usize) << unit_shift(region.level())
    }

    /// Migrates units of a region, as far as the quota allows.
    fn migrate_region(&self, region: RegionId, quota: &mut Quota) {
        let (shift, whole) = (unit_shift(region.level()), self.page_state(region));
        let node = self.node.get() as usize;
        let is_home = SPACE.node_of_chunk(region.chunk()) == node;
        let mut units = self.units_elsewhere(region);
        if units == 0 || quota.is_refused || quota.bytes_left >> shift == 0 {
            return;
        }
        if !is_home {
            whole.aim_at(node);
            // Before the pages move: a neighbour in the same huge page may be given back at any
            // time.
            SPACE.mark_migrated(region);
        }
        while units != 0 && quota.bytes_left >> shift != 0 && !quota.is_refused {
            let some = lowest(
                units,
                (TOGETHER >> (shift - PAGE_SHIFT)).min(quota.bytes_left >> shift),
            );
            units &= !some;
            quota.bytes_left -= (some.count_ones() as usize) << shift;
            let start = self.data.get() + region.offset();
            let asked = migrate_units(start, shift, some, node, quota);
            let migrated = whole.migrated.get();
            whole.migrated.set(if is_home {
                migrated & !asked
            } else {
                migrated | asked
            });
        }
        if is_home && whole.migrated.get() == 0 && !whole.is_astray.get() {
            SPACE.unmark_migrated(region);
        }
    }
}

/// The lowest bits of a word, up to `count`.
fn lowest(word: u64, count: usize) -> u64 {
    let mut rest = word;
    for _ in 0..count {
        rest &= rest.wrapping_sub(1);
    }
    word & !rest
}

/// Moves the pages of units, up to [`TOGETHER`]. Returns those that are done: they have come, or
/// had no memory.
fn migrate_units(start: usize, shift: u32, units: u64, node: usize, quota: &mut Quota) -> u64 {
    let mut pages = [0; TOGETHER];
    let mut count = 0;
    let mut rest = units;
    while rest != 0 {
        let unit = start + ((rest.trailing_zeros() as usize) << shift);
        for page in (unit..unit + (1 << shift)).step_by(os::PAGE) {
            pages[count] = page;
            count += 1;
        }
        rest &= rest - 1;
    }
    let mut places = [PagePlace::Unknown; TOGETHER];
    let (pages, places) = (&pages[..count], &mut places[..count]);
    // SAFETY: pages of this heap's chunks; contents stay.
    quota.is_refused = !unsafe { os::move_pages(pages, nodes::number(node), places) };
    let mut asked = units;
    for (page, place) in pages.iter().zip(places) {
        match place {
            PagePlace::There => quota.migrated += os::PAGE,
            // Nothing was copied.
            PagePlace::Nowhere => quota.bytes_left += os::PAGE,
            PagePlace::Unknown => asked &= !(1 << ((page - start) >> shift)),
        }
    }
    asked
}

impl PageState {
    /// Sets the target node. Pages that migrated to an earlier target are not found again, should
    /// the heap return.
    fn aim_at(&self, node: usize) {
        if self.migrated_to.get() as usize == node {
            return;
        }
        if self.migrated.replace(0) != 0 {
            self.is_astray.set(true);
        }
        self.migrated_to.set(node as u8);
    }

    /// Records that the pages of a new region from the pool are where they belong.
    pub(crate) fn begin_at_home(&self) {
        self.migrated.set(0);
        self.is_astray.set(false);
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::PrivateHeap;
    use crate::ground::geometry::CHUNK_SHIFT;
    use crate::store::pool::Arenas;
    use crate::store::space::SPACE;

    #[test]
    fn the_lowest_bits_are_taken() {
        assert_eq!(lowest(0b1011_0100, 2), 0b1_0100);
        assert_eq!(lowest(0b11, 64), 0b11);
        assert_eq!(lowest(u64::MAX, 64), u64::MAX);
        assert_eq!(lowest(7, 0), 0);
    }

    /// With one node there is nothing to migrate, and no bit is set.
    #[test]
    fn one_node_brings_nothing() {
        let own = PrivateHeap::new().expect("there is memory");
        let block = own.allocate(200_000);
        if SPACE.nodes() == 1 {
            assert_eq!(own.bring(usize::MAX), 0);
        }
        // SAFETY: allocated above, and not used any more.
        unsafe { own.free(block) };
    }

    /// A chunk with migrated pages loses its memory when it goes back to the pool, and is at home
    /// again.
    #[test]
    fn what_was_brought_is_forgotten_when_it_goes_back() {
        let own = PrivateHeap::new().expect("there is memory");
        let blocks: Vec<_> = (0..6).map(|_| own.allocate(200_000)).collect();
        let chunks: Vec<usize> = blocks
            .iter()
            .map(|block| (block.expose_provenance() - SPACE.data()) >> CHUNK_SHIFT)
            .collect();
        for (chunk, block) in chunks.iter().zip(&blocks) {
            // SAFETY: alive, and this long.
            unsafe { block.write_bytes(7, 200_000) };
            SPACE.mark_migrated(RegionId::at(5, chunk << CHUNK_SHIFT));
        }
        let has_migrated = |chunk: usize| SPACE.has_migrated(chunk >> 6, 1 << (chunk & 63));
        assert!(chunks.iter().all(|chunk| has_migrated(*chunk)));
        // SAFETY: nobody has kept a block.
        unsafe { own.destroy() };
        for chunk in chunks {
            assert!(!has_migrated(chunk), "it is at home again");
        }
    }
}
