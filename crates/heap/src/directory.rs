//! What a process tells of its heaps to whoever looks from outside: where everything lies.
//!
//! A page of its own, written once when the space is made and never again, holds addresses, strides and the
//! places of the fields that are shown. [`inspect`](crate::inspect) reads it from another process, and
//! all the rest by it. So the process that is watched does nothing for it and counts nothing.
//!
//! ```text
//! | magic | version | words | … , 8 bytes each, as in [`Directory`] |
//! ```
//!
//! The kernel shows the page by its [`NAME`] in `/proc/PID/maps`, where it knows names of mappings; else it
//! is known by its magic number. A process may have several: that of the library that is preloaded, and that of
//! a program that is linked with this crate.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::geometry::{ARENA_SHIFT, CHUNK_SHIFT};
use crate::os;
use crate::process::{POOLS, SPACE, TABLE};
use crate::{front, heap, large, nodes, private};

/// The first word of a directory.
pub const MAGIC: u64 = u64::from_le_bytes(*b"hearth/D");
/// Another one wherever a field here or what it leads to has another meaning or another width.
pub const VERSION: u64 = 4;
/// The name of the mapping, without the kernel's `[anon:` around it.
pub const NAME: &str = "hearth-heap";
/// The same for the kernel.
const NAME_ENDED: &[u8] = b"hearth-heap\0";

macro_rules! directory {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// Where everything lies. Addresses are the process's own; `_at` is a distance in bytes from the
        /// beginning of what it is in, `_stride` the bytes from one to the next.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[repr(C)]
        pub struct Directory {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl Directory {
            /// As many words as it has.
            pub const WORDS: usize = [$(stringify!($field)),*].len();

            /// Its words, in order.
            pub fn to_words(&self) -> [u64; Self::WORDS] {
                [$(self.$field),*]
            }

            /// From its words.
            pub fn from_words(words: [u64; Self::WORDS]) -> Directory {
                let [$($field),*] = words;
                Directory { $($field),* }
            }
        }
    };
}

directory! {
    /// [`MAGIC`]
    magic,
    /// [`VERSION`]
    version,
    /// As many as there are of these
    words,
    /// Bytes of what is taken for a page
    page_bytes,
    /// log2 of the bytes in a chunk
    chunk_shift,
    /// log2 of the bytes in an arena
    arena_shift,

    /// The first byte of the data
    data,
    /// Arenas that addresses are reserved for
    arenas,
    /// log2 of the arenas that a node has
    node_shift,
    /// Tags of chunks, 4 bytes: four bits that say what it is, then a number
    tags,
    tags_stride,
    /// Owners of pages of nurseries, 4 bytes
    owners,
    owners_stride,
    /// Kinds of KiB, one byte
    kinds,
    kinds_stride,
    /// Words of arenas: chunks that are free, chunks that were used, 8 bytes each
    arena_words,
    arena_words_stride,
    /// Words of arenas: chunks whose pages may lie on another node than their addresses say, 8 bytes each
    arena_brought,
    arena_brought_stride,
    /// What others have freed, by chunk
    remote,
    remote_stride,
    /// What is known of a chunk's regions
    meta,
    meta_stride,
    /// The regions in there, and in each of them the words of free granules and of starts
    regions_at,
    regions_stride,
    region_free_at,
    region_starts_at,

    /// The system's numbers of the nodes, 2 bytes each
    node_numbers,
    node_numbers_stride,
    /// What the pools know of each node: how many of its arenas are begun, and how many open; 4 bytes
    pools,
    pools_stride,
    pool_begun_at,
    pool_open_at,

    /// The entries of heaps, by number
    entries,
    entries_stride,
    /// Where the first number is that was never given out, 4 bytes; and the largest that it becomes
    entries_next,
    entries_most,
    /// In an entry: where the heap is, 8 bytes; whose it is, and which thread's, 4 bytes
    entry_heap_at,
    entry_custody_at,
    entry_family_at,

    /// Bytes of a heap; and in it, of 4 bytes:
    heap_bytes,
    heap_number_at,
    heap_node_at,
    heap_own_at,
    /// Regions that are pages of nurseries
    heap_pages_at,
    heap_pages_count,
    /// Of 8 bytes: bytes of blocks, bytes that may have memory behind them, chunks
    heap_used_at,
    heap_touched_at,
    heap_chunks_at,
    /// Where its fronts are, 8 bytes; and how many, 4 bytes
    heap_fronts_at,
    heap_fronts_count_at,
    /// In a front: how many blocks it holds, 4 bytes
    fronts_stride,
    front_count_at,
    /// Bytes of a component's heap that it takes itself, and are counted as used
    private_header_bytes,

    /// Segments of places for blocks that are mappings of their own; in each where the places are, or 0; and how
    /// many, or 0; 8 bytes each
    segments,
    segments_stride,
    segments_count,
    segment_mappings_at,
    segment_count_at,
    /// In a place where the block starts, or 0 or 1; and its bytes; 8 bytes
    mappings_stride,
    mapping_block_at,
    mapping_bytes_at,
}

const _: () = assert!(size_of::<Directory>() <= os::PAGE);

/// Tells it, once all is made. Where there is no memory for it, nobody can look; nothing else is lost.
pub(crate) fn publish() {
    let place = os::map_memory(os::PAGE);
    if place == 0 {
        return;
    }
    let mut words = of_process().to_words();
    // The magic comes last: who finds it finds the rest.
    words[0] = 0;
    let cells: *const AtomicU64 = core::ptr::with_exposed_provenance(place);
    for (nth, word) in words.iter().enumerate() {
        // SAFETY: inside of the page, aligned, and zero at first.
        unsafe { &*cells.add(nth) }.store(*word, Ordering::Relaxed);
    }
    // SAFETY: as above.
    unsafe { &*cells }.store(MAGIC, Ordering::Release);
    // SAFETY: a page of this function's own, which is read from now on, and by others.
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
        private_header_bytes: private::HEADER_BYTES as u64,
        ..Directory::default()
    };
    SPACE.describe(&mut directory);
    nodes::describe(&mut directory);
    POOLS.describe(&mut directory);
    TABLE.describe(&mut directory);
    heap::describe(&mut directory);
    front::describe(&mut directory);
    large::describe(&mut directory);
    directory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_fields_are_the_same() {
        let words = core::array::from_fn(|nth| nth as u64 * 3);
        let directory = Directory::from_words(words);
        assert_eq!(directory.to_words(), words);
        assert_eq!((directory.magic, directory.version), (0, 3));
    }

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
