//! Private heaps with bounded operations, and the allocator that a process makes of them.
//!
//! A heap has one owner. Its memory is a tree of words: regions of 64 granules, one bit each, from
//! 1 KiB of 16 bytes each up to 1 MiB, so that finding, cutting and coalescing are arithmetic on
//! one word and never a search. Free blocks are never written to; the metadata of a chunk lies
//! elsewhere. Blocks that other threads free are marked in a word of their own, and their owner
//! takes them back up to 64 at a time. Chunks come from lock-free pools, one per node.
//! `docs/internals/heap.md` walks one allocation and one remote free from end to end, and derives
//! the bounds.
//!
//! Every thread has a heap; [`Hearth`] makes it Rust's global allocator:
//!
//! ```
//! #[global_allocator]
//! static GLOBAL: hearth_heap::Hearth = hearth_heap::Hearth;
//!
//! let words: Vec<String> = (0..1000).map(|i| i.to_string()).collect();
//! assert_eq!(words.len(), 1000);
//! ```
//!
//! Programs in other languages preload `libhearth_malloc.so`, built by the crate `hearth-malloc`.
//!
//! The rooms, each of which uses only those before it:
//!
//! - `ground`: arithmetic, system calls, the settings read at start
//! - `store`: the machine's memory: nodes, arenas, chunks, blocks larger than a heap cuts
//! - `heap`: one heap: its caches, regions and remote frees, its owner and its end
//! - `process`: the whole process: start, public functions, helper thread, inspection
//!
//! This crate knows nothing of components, prints only what is wrong before it ends the process,
//! and uses neither the standard library nor anything that may allocate.

#![no_std]

#[cfg(any(test, miri, feature = "checks"))]
extern crate std;

mod ground;
mod heap;
#[cfg(not(loom))]
mod process;
mod store;

#[cfg(feature = "meter")]
pub use ground::meter::reading;
#[cfg(not(loom))]
pub use ground::os::CreateThread;
pub use ground::{geometry, words};
#[cfg(all(any(test, feature = "checks"), not(loom)))]
pub use heap::checks::Census;
#[cfg(all(any(test, feature = "checks"), not(loom)))]
pub use process::statistics::{check_this_nursery, check_this_thread, settle_this_thread};
#[cfg(not(loom))]
pub use process::{
    blocks::{
        allocate, allocate_aligned, allocate_zeroed, begin, flush, free, reallocate, usable_size,
    },
    helper::{be_single, keep_helper, start_helper, thread_begins, thread_ended, watch_forks},
    inspect,
    private_heap::{PrivateHeap, Room},
    rust::Hearth,
    statistics::{Figures, Totals, figures, totals, trim},
};
