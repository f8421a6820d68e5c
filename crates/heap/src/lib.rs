//! Private heaps of bounded time, and what a process makes of them.
//!
//! A [heap] has one owner. Its memory is a tree of words: regions of 64 granules, one bit each,
//! from 1 KiB of 16 bytes each up to 1 MiB, so that finding, cutting and next_coalesced are arithmetic on one word and
//! never a search. Nothing is written into free blocks, and what is known of a chunk lies elsewhere.
//! Blocks that others free are marked in a word of their own and taken back 64 at a time. Chunks come
//! from pools, one a node, which have no locks. `docs/internals/heap.md` walks one allocation and one
//! remote free from end to end, and derives the bounds.
//!
//! Every thread has a heap; [`Hearth`] is Rust's way to it:
//!
//! ```
//! #[global_allocator]
//! static GLOBAL: hearth_heap::Hearth = hearth_heap::Hearth;
//!
//! let words: Vec<String> = (0..1000).map(|i| i.to_string()).collect();
//! assert_eq!(words.len(), 1000);
//! ```
//!
//! For programs in other languages there is `libhearth_malloc.so`, made by the crate `hearth-malloc`.
//!
//! This crate knows nothing of components, prints nothing but what is wrong with a pointer before it
//! ends the process, and uses neither the standard library nor anything that may allocate.

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
#[cfg(not(loom))]
pub use process::blocks::{
    allocate, allocate_aligned, allocate_zeroed, begin, flush, free, reallocate, usable_size,
};
#[cfg(not(loom))]
pub use process::helper::{
    be_single, keep_helper, start_helper, thread_begins, thread_ended, watch_forks,
};
#[cfg(not(loom))]
pub use process::inspect;
#[cfg(not(loom))]
pub use process::private_heap::{PrivateHeap, Room};
#[cfg(not(loom))]
pub use process::rust::Hearth;
#[cfg(not(loom))]
pub use process::statistics::{Figures, Totals, figures, totals, trim};
#[cfg(all(any(test, feature = "checks"), not(loom)))]
pub use process::statistics::{check_this_nursery, check_this_thread, settle_this_thread};
