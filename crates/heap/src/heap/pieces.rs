//! Pieces: the pages that a component's heap has from nurseries, and the header in its first page.
//!
//! The [owner](crate::store::space::Space::owner) of each page of a nursery's chunk is recorded by
//! page.

use crate::ground::faults::report;
use crate::ground::geometry::{
    CHUNK_SHIFT, GRANULES_MAX, RegionId, granule_bytes, granule_shift, region_shift,
};
use crate::ground::os;
use crate::heap::marks::send_marks;
use crate::heap::state::{Heap, WithSlimCaches};
use crate::heap::thread;
use crate::heap::upkeep::in_turn;
use crate::store::space::{ChunkTag, SPACE};
use core::ptr;
use core::sync::atomic::Ordering;

/// Levels of pieces: a page, and four.
pub(crate) const LEVEL_OF_PAGE: usize = 1;
pub(crate) const LEVEL_OF_PAGES: usize = 2;

/// Granules of the first page that the heap itself takes up.
const HEADER: u32 = size_of::<WithSlimCaches>().div_ceil(granule_bytes(LEVEL_OF_PAGE)) as u32;
pub(crate) const HEADER_BYTES: usize = HEADER as usize * granule_bytes(LEVEL_OF_PAGE);
/// A heap leaves room in its page for a region of level 0, and a few larger blocks.
const _: () = assert!(HEADER <= 48 - 4);

/// The page in which a heap lies, as its region.
pub(crate) fn page_of(heap: &Heap) -> RegionId {
    RegionId::at(LEVEL_OF_PAGE, ptr::from_ref(heap).addr() - SPACE.data())
}

impl Heap {
    /// Cuts the heap itself off its first region: blocks of 16 granules, and a shorter one.
    pub(crate) fn cut_header(&self, region: RegionId) {
        const MOST: u32 = GRANULES_MAX as u32;
        let full = (0..HEADER / MOST).fold(0, |begins, nth| begins | 1 << (nth * MOST));
        self.cut(region, LEVEL_OF_PAGE, full, MOST);
        if !HEADER.is_multiple_of(MOST) {
            let begin = 1 << (HEADER / MOST * MOST);
            self.cut(region, LEVEL_OF_PAGE, begin, HEADER % MOST);
        }
    }

    /// Records pages as this heap's.
    pub(crate) fn own_pages(&self, region: RegionId, level: usize) {
        let offset = region.offset_on(level);
        let end = offset + (1 << region_shift(level));
        for page in (offset..end).step_by(os::PAGE) {
            SPACE
                .owner(page)
                .store(self.number.get(), Ordering::Relaxed);
        }
        if let Some(place) = self.pages.iter().find(|root| root.get() == 0) {
            place.set(region.0);
        }
    }

    /// Gives a free region back, if it came from a nursery.
    pub(crate) fn give_pages(&self, region: RegionId) -> bool {
        let Some(place) = self.pages.iter().find(|root| root.get() == region.0) else {
            return false;
        };
        place.set(0);
        self.region(region).free.set(0);
        give(region, region.level());
        true
    }

    /// Whether an offset lies in this heap's own pages or chunks.
    #[inline]
    pub(crate) fn is_own(&self, offset: usize) -> bool {
        let tag = self.tag(offset >> CHUNK_SHIFT).load(Ordering::Relaxed);
        tag == self.own.get()
            || ChunkTag(tag).kind() == ChunkTag::SHARED
                && SPACE.owner(offset).load(Ordering::Relaxed) == self.number.get()
    }

    /// Whether a region of level 2 lies in pages of a nursery.
    #[inline]
    pub(crate) fn is_in_nursery(&self, region: RegionId) -> bool {
        self.is_private.get() && self.tag(region.chunk()).load(Ordering::Relaxed) != self.own.get()
    }

    /// Bytes of pages from nurseries.
    pub(crate) fn bytes_of_pages(&self) -> usize {
        let bytes = |root: &core::cell::Cell<u32>| match RegionId(root.get()) {
            RegionId::NONE => 0,
            region => 1 << region_shift(region.level()),
        };
        self.pages.iter().map(bytes).sum()
    }
}

/// Gives pages back to their nursery: directly if it is this thread's, else as a remote free.
pub(crate) fn give(region: RegionId, level: usize) {
    let offset = region.offset_on(level);
    let end = offset + (1 << region_shift(level));
    for page in (offset..end).step_by(os::PAGE) {
        SPACE.owner(page).store(0, Ordering::Relaxed);
    }
    let number = ChunkTag(SPACE.tag(region.chunk()).load(Ordering::Relaxed)).number();
    let above = RegionId::at(level + 1, offset);
    let first = (offset - above.offset_on(level + 1)) >> granule_shift(level + 1);
    let own = thread::heap();
    if !own.is_null() && own != thread::ENDED {
        // SAFETY: this thread's heap, and its nursery.
        let (own, nursery) = unsafe { (&*own, (*own).nursery.get().as_ref()) };
        if let Some(nursery) = nursery
            && nursery.number.get() == number
            && own.handshake.begin()
        {
            let taken = in_turn(own, |_| {
                nursery.restore(above, level + 1, 1 << first, GRANULES_MAX as u32)
            });
            if let Err((address, fault)) = taken {
                report(address, fault, number);
            }
            return;
        }
    }
    send_marks(number, above, 1 << first);
}
