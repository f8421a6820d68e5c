//! The directory: where the heaps of a process lie, for tools that read them from outside.
//!
//! One page, written when the space is made and never again, holds addresses, strides and field
//! offsets. [`Watched`](crate::inspect::Watched) reads it from another process and finds all else
//! through it. So the watched process does nothing and counts nothing for its observers.
//!
//! ```text
//! | magic | version | words | … , 8 bytes each, as in [`Directory`] |
//! ```
//!
//! The kernel shows the page under its [`NAME`] in `/proc/PID/maps`, where it supports names;
//! otherwise the magic number identifies it. A process may have several: that of the preloaded
//! library, and that of a program linked with this crate.

use crate::ground::os;

/// The first word of a directory.
pub const MAGIC: u64 = u64::from_le_bytes(*b"hearth/D");
/// Changes whenever a field here, or what it leads to, changes its meaning or width.
pub const VERSION: u64 = 4;
/// The name of the mapping, without the kernel's `[anon:` around it.
pub const NAME: &str = "hearth-heap";

macro_rules! directory {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// The layout of a process's heaps. Addresses are the process's own; `_at` is an offset in
        /// bytes, `_stride` the bytes from one element to the next.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[repr(C)]
        pub struct Directory {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl Directory {
            /// The number of words.
            pub const WORDS: usize = [$(stringify!($field)),*].len();

            /// The words, in order.
            pub fn to_words(&self) -> [u64; Self::WORDS] {
                [$(self.$field),*]
            }

            /// Builds a directory from its words.
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
    /// Number of words here
    words,
    /// Bytes of a page, as the heap counts them
    page_bytes,
    /// log2 of the bytes in a chunk
    chunk_shift,
    /// log2 of the bytes in an arena
    arena_shift,

    /// The first byte of the data
    data,
    /// Arenas with reserved addresses
    arenas,
    /// log2 of the arenas per node
    node_shift,
    /// Tags of chunks, 4 bytes: four bits for the kind, then a number
    tags,
    tags_stride,
    /// Owners of pages of nurseries, 4 bytes
    owners,
    owners_stride,
    /// Kinds of KiB, 1 byte
    kinds,
    kinds_stride,
    /// Words of arenas: free chunks, used chunks, 8 bytes each
    arena_words,
    arena_words_stride,
    /// Words of arenas: chunks with pages that may lie on another node than their addresses say, 8
    /// bytes each
    arena_brought,
    arena_brought_stride,
    /// Remote marks, by chunk
    remote,
    remote_stride,
    /// Metadata of a chunk's regions
    meta,
    meta_stride,
    /// The regions therein, and in each region the words of free granules and of starts
    regions_at,
    regions_stride,
    region_free_at,
    region_starts_at,

    /// The system's node numbers, 2 bytes each
    node_numbers,
    node_numbers_stride,
    /// A pool per node: arenas begun, arenas open; 4 bytes
    pools,
    pools_stride,
    pool_begun_at,
    pool_open_at,

    /// The entries of heaps, by number
    entries,
    entries_stride,
    /// The address of the first number never given out, 4 bytes; and its maximum
    entries_next,
    entries_most,
    /// In an entry: the heap's address, 8 bytes; its custody and its thread's family, 4 bytes
    entry_heap_at,
    entry_custody_at,
    entry_family_at,

    /// Bytes of a heap; and in it, 4 bytes each:
    heap_bytes,
    heap_number_at,
    heap_node_at,
    heap_own_at,
    /// Regions of pages from nurseries
    heap_pages_at,
    heap_pages_count,
    /// 8 bytes each: bytes of blocks, bytes that may have memory behind them, chunks
    heap_used_at,
    heap_touched_at,
    heap_chunks_at,
    /// The address of its caches, 8 bytes; and their number, 4 bytes
    heap_fronts_at,
    heap_fronts_count_at,
    /// In a cache: its number of blocks, 4 bytes
    fronts_stride,
    front_count_at,
    /// Bytes that a component's heap itself takes, counted as used
    private_header_bytes,

    /// Segments of places for blocks with mappings of their own; in each the address of the places
    /// and their number, 8 bytes each; 0 if not made
    segments,
    segments_stride,
    segments_count,
    segment_mappings_at,
    segment_count_at,
    /// In a place: the block's address, or 0 or 1; and its bytes; 8 bytes
    mappings_stride,
    mapping_block_at,
    mapping_bytes_at,
}

const _: () = assert!(size_of::<Directory>() <= os::PAGE);

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
}
