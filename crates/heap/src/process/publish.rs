//! Publishes the directory of this process, for tools that read its heaps from outside.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::ground::directory::{Directory, MAGIC, VERSION};
use crate::ground::geometry::{ARENA_SHIFT, CHUNK_SHIFT};
use crate::ground::os;
use crate::heap::pieces::HEADER_BYTES;
use crate::heap::table::TABLE;
use crate::heap::{cache, state};
use crate::store::pool::POOLS;
use crate::store::space::SPACE;
use crate::store::{large, nodes};

/// [`NAME`](crate::inspect::NAME) with the zero that the kernel needs.
const NAME_ENDED: &[u8] = b"hearth-heap\0";

/// Publishes the directory, once all is made. Without memory for it, nobody can inspect the
/// process; nothing else is lost.
pub(crate) fn publish() {
    let place = os::map_memory(os::PAGE);
    if place == 0 {
        return;
    }
    let mut words = of_process().to_words();
    // The magic number comes last: whoever finds it finds the rest.
    words[0] = 0;
    let cells: *const AtomicU64 = core::ptr::with_exposed_provenance(place);
    for (nth, word) in words.iter().enumerate() {
        // SAFETY: inside of the page, aligned, and zero at first.
        unsafe { &*cells.add(nth) }.store(*word, Ordering::Relaxed);
    }
    // SAFETY: as above.
    unsafe { &*cells }.store(MAGIC, Ordering::Release);
    // SAFETY: a page of this function's own, only read from now on.
    unsafe {
        os::allow(place, os::PAGE, os::Access::Read);
        os::name(place, os::PAGE, NAME_ENDED);
    }
}

fn of_process() -> Directory {
    let mut directory = Directory {
        magic: MAGIC,
        version: VERSION,
        words: Directory::WORDS as u64,
        page_bytes: os::PAGE as u64,
        chunk_shift: u64::from(CHUNK_SHIFT),
        arena_shift: u64::from(ARENA_SHIFT),
        private_header_bytes: HEADER_BYTES as u64,
        ..Directory::default()
    };
    SPACE.describe(&mut directory);
    nodes::describe(&mut directory);
    POOLS.describe(&mut directory);
    TABLE.describe(&mut directory);
    state::describe(&mut directory);
    cache::describe(&mut directory);
    large::describe(&mut directory);
    directory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_is_told() {
        crate::begin();
        let directory = of_process();
        let may_be_zero = [
            core::mem::offset_of!(Directory, regions_at),
            core::mem::offset_of!(Directory, region_free_at),
            core::mem::offset_of!(Directory, pool_begun_at),
            core::mem::offset_of!(Directory, entry_heap_at),
            core::mem::offset_of!(Directory, heap_fronts_at),
            core::mem::offset_of!(Directory, segment_mappings_at),
            core::mem::offset_of!(Directory, mapping_block_at),
        ];
        let words = directory.to_words();
        for (nth, word) in words.iter().enumerate() {
            let is_first_field = may_be_zero.contains(&(nth * 8));
            assert!(*word != 0 || is_first_field, "word {nth} of {directory:?}");
        }
    }
}
