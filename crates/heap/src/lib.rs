//! Private heaps of bounded time, and what a process makes of them.
//!
//! A [heap] has one owner. Its memory is a tree of words: regions of 64 granules, one bit each,
//! from 1 KiB of 16 bytes each up to 1 MiB, so that finding, cutting and joining are arithmetic on one word and
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

mod batch;
#[cfg(not(loom))]
mod bring;
#[cfg(not(loom))]
mod directory;
#[cfg(not(any(loom, miri)))]
mod door;
#[cfg(not(loom))]
mod environment;
#[cfg(not(loom))]
mod faults;
#[cfg(not(loom))]
mod figures;
#[cfg(not(loom))]
mod front;
pub mod geometry;
#[cfg(not(loom))]
mod global;
#[cfg(not(loom))]
mod guarded;
#[cfg(not(loom))]
mod harden;
#[cfg(not(loom))]
mod heap;
#[cfg(not(loom))]
mod helper;
mod hints;
#[cfg(not(loom))]
pub mod inspect;
#[cfg_attr(loom, allow(dead_code, reason = "a model uses a part of it"))]
mod kept;
#[cfg(not(loom))]
mod large;
#[cfg_attr(loom, allow(dead_code, reason = "a model uses a part of it"))]
mod lent;
#[cfg(not(loom))]
mod loose;
#[cfg_attr(loom, allow(dead_code, reason = "a model uses a part of it"))]
mod mappings;
mod meter;
#[cfg(not(loom))]
mod nodes;
#[cfg_attr(loom, allow(dead_code, reason = "a model uses a part of it"))]
mod numbers;
mod orphan;
#[cfg(not(loom))]
mod os;
#[cfg(not(loom))]
mod pages;
#[cfg_attr(loom, allow(dead_code, reason = "a model uses a part of it"))]
mod pool;
#[cfg(not(loom))]
mod private;
#[cfg(not(loom))]
mod process;
#[cfg(not(loom))]
mod real_time;
#[cfg_attr(loom, allow(dead_code, reason = "a model uses a part of it"))]
mod region;
#[cfg(not(loom))]
mod regions;
mod remote;
#[cfg(not(loom))]
mod rust;
#[cfg(not(loom))]
mod space;
#[cfg_attr(loom, allow(dead_code, reason = "a model uses a part of it"))]
mod stage;
mod sync;
#[cfg(not(loom))]
mod table;
#[cfg(not(loom))]
mod thread;
#[cfg(not(loom))]
mod threads;
#[cfg_attr(loom, allow(dead_code, reason = "a model uses a part of it"))]
mod turn;
#[cfg(not(loom))]
mod whole;
pub mod words;

#[cfg(not(loom))]
pub use figures::{Figures, Totals, figures, totals, trim};
#[cfg(all(any(test, feature = "checks"), not(loom)))]
pub use figures::{check_this_nursery, check_this_thread, settle_this_thread};
#[cfg(not(loom))]
pub use global::{
    allocate, allocate_aligned, allocate_zeroed, flush, free, reallocate, usable_size,
};
#[cfg(all(any(test, feature = "checks"), not(loom)))]
pub use heap::checks::Census;
#[cfg(not(loom))]
pub use helper::{be_single, keep_helper, start_helper, thread_begins, thread_ended, watch_forks};
#[cfg(feature = "meter")]
pub use meter::reading;
#[cfg(not(loom))]
pub use os::CreateThread;
#[cfg(not(loom))]
pub use private::{PrivateHeap, Room};
#[cfg(not(loom))]
pub use rust::Hearth;
#[cfg(not(loom))]
pub use threads::begin;
