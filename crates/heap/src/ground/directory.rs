//! What a process tells of its heaps to whoever looks from outside: where everything lies.
//!
//! A page of its own, written once when the space is made and never again, holds addresses, strides and the
//! places of the fields that are shown. [`inspect`](crate::process::inspect) reads it from another process, and
//! all the rest by it. So the process that is watched does nothing for it and counts nothing.
//!
//! ```text
//! | magic | version | words | … , 8 bytes each, as in [`Directory`] |
//! ```
//!
//! The kernel shows the page by its [`NAME`] in `/proc/PID/maps`, where it knows names of mappings; else it
//! is known by its magic number. A process may have several: that of the library that is preloaded, and that of
//! a program that is linked with this crate.

use crate::ground::os;

/// The first word of a directory.
pub const MAGIC: u64 = u64::from_le_bytes(*b"hearth/D");
/// Another one wherever a field here or what it leads to has another meaning or another width.
pub const VERSION: u64 = 4;
/// The name of the mapping, without the kernel's `[anon:` around it.
pub const NAME: &str = "hearth-heap";

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
    /// Where its caches are, 8 bytes; and how many, 4 bytes
    heap_fronts_at,
    heap_fronts_count_at,
    /// In a cache: how many blocks it holds, 4 bytes
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
