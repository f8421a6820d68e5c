//! The making of a component's heap: it begins with one page, at the start of which it lies itself.

use crate::ground::geometry::RegionId;
use crate::heap::pieces::{HEADER_BYTES, LEVEL_OF_PAGE, LEVEL_OF_PAGES};
use crate::heap::state::{Heap, WithSlimCaches};
use crate::heap::table::{TABLE, entry};
use crate::heap::{deferred, nursery, upkeep};
use crate::store::space::SPACE;
use core::ptr::{self, NonNull};

pub(crate) fn make(node: usize) -> Option<NonNull<Heap>> {
    let number = TABLE.number()?;
    let Some(offset) = nursery::take(node, LEVEL_OF_PAGE) else {
        TABLE.end(number);
        return None;
    };
    let address = SPACE.data() + offset;
    let place: *mut WithSlimCaches = ptr::with_exposed_provenance_mut(address);
    // SAFETY: the page has just been taken; all fields of a heap and its caches may be zero.
    let (heap, caches) = unsafe {
        place
            .cast::<u8>()
            .write_bytes(0, size_of::<WithSlimCaches>());
        (&(*place).heap, &raw const (*place).caches)
    };
    let entry = entry(number);
    heap.make(number, node);
    // SAFETY: zero, and in the heap's own page.
    unsafe { heap.caches.set_slim(caches) };
    heap.defers.set(deferred::is_wanted());
    heap.is_private.set(true);
    let region = RegionId::at(LEVEL_OF_PAGE, offset);
    heap.own_pages(region, LEVEL_OF_PAGE);
    heap.begin(region, true);
    heap.cut_header(region);
    heap.used.set(HEADER_BYTES);
    heap.put_back(region);
    entry.custody.begin(true);
    entry.set_heap(address);
    NonNull::new(place.cast())
}

/// Adds a free region of a level, unless there is no memory.
pub(crate) fn prepare(heap: &Heap, level: usize) {
    let region = if level <= LEVEL_OF_PAGES {
        let Some(offset) = nursery::take(heap.node.get() as usize, level) else {
            return;
        };
        let region = RegionId::at(level, offset);
        heap.own_pages(region, level);
        heap.begin(region, true);
        region
    } else {
        let Some(region) = heap.take_chunks(level) else {
            return;
        };
        region
    };
    // All free, so it is kept as a spare.
    heap.put_back(region);
    upkeep::keep_up_if_wanted(None);
}
