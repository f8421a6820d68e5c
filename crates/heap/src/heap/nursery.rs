//! Nurseries: heaps of threads that lend pages to components' heaps, as regions.
//!
//! To a component's heap a lent page is no different from a region that it would have cut itself on
//! the next level; to the nursery it is a block, which comes back by a mark if need be.

use crate::ground::geometry::{Class, GRANULES_MAX, RegionId, region_shift};
use crate::heap::pieces::{LEVEL_OF_PAGE, LEVEL_OF_PAGES};
use crate::heap::state::{Heap, PAGES_MAX};
use crate::heap::table::{TABLE, entry};
use crate::heap::threads::with_heap_on;
use crate::store::space::{ChunkTag, SPACE};
use core::ptr;

/// Single pages that a heap takes, before it takes fours.
const SINGLE_PAGES: usize = 4;
/// A nursery, as a block of its thread's heap.
const OF_NURSERY: Class = Class::for_size(size_of::<Heap>());

/// The nursery of a thread's heap, made if there is none.
fn nursery(heap: &Heap) -> Option<&'static Heap> {
    if heap.nursery.get().is_null() {
        heap.nursery.set(make_nursery(heap)?);
    }
    // SAFETY: a nursery never ends, and is its thread's alone.
    Some(unsafe { &*heap.nursery.get() })
}

#[cold]
fn make_nursery(heap: &Heap) -> Option<*const Heap> {
    let number = TABLE.number()?;
    let mut block = heap.try_allocate(OF_NURSERY);
    if block == 0 {
        block = heap.carve(OF_NURSERY);
    }
    if block == 0 {
        TABLE.end(number);
        return None;
    }
    let place: *mut Heap = ptr::with_exposed_provenance_mut(block);
    // SAFETY: the block is this heap's for good; all fields of a heap may be zero.
    let nursery = unsafe {
        place.cast::<u8>().write_bytes(0, size_of::<Heap>());
        &*place
    };
    let entry = entry(number);
    nursery.make(number, heap.node.get() as usize);
    nursery.own.set(ChunkTag::of(ChunkTag::SHARED, number).0);
    entry.custody.begin(false);
    entry.set_heap(block);
    Some(place)
}

/// Takes pages that make a region of a level, from this thread's nursery on a node.
pub(crate) fn take(node: usize, level: usize) -> Option<usize> {
    let of_pages = Class::of(level + 1, GRANULES_MAX);
    let block = with_heap_on(node, |heap| match nursery(heap) {
        // Without looking for idle pages: if the nursery lent some, a run of the right length could
        // lie across two regions.
        Some(nursery) => nursery.carve_quietly(of_pages),
        None => 0,
    })?;
    debug_assert!(
        block & ((1 << region_shift(level)) - 1) == 0,
        "pages make a region"
    );
    (block != 0).then(|| block - SPACE.data())
}

impl Heap {
    /// A region of pages from the nursery, in no list and without words: single pages for a small
    /// heap, fours for a larger one. None if the heap is to take chunks, or there are no pages.
    pub(crate) fn take_pages(&self, level: usize) -> Option<RegionId> {
        let count = self.pages.iter().filter(|root| root.get() != 0).count();
        let is_right = match level {
            LEVEL_OF_PAGE => count < SINGLE_PAGES,
            LEVEL_OF_PAGES => count < PAGES_MAX,
            _ => false,
        };
        if !is_right {
            return None;
        }
        let region = RegionId::at(level, take(self.node.get() as usize, level)?);
        self.own_pages(region, level);
        Some(region)
    }
}
