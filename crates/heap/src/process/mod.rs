//! The whole process: its start, the functions that it exports, its helper thread, and what it
//! shows of itself.
//!
//! It must never know the components or the programs that use it.
//!
//! In reading order: `start` makes the space, with real-time memory from `prepare`, and `publish`es
//! the directory; `blocks` allocates and frees; `private_heap` has the heaps of components; `rust`
//! the global allocator; `helper` the thread that gives idle memory back; `statistics` the totals;
//! `inspect` reads another process.

pub(crate) mod blocks;
pub(crate) mod helper;
pub mod inspect;
pub(crate) mod prepare;
pub(crate) mod private_heap;
pub(crate) mod publish;
pub(crate) mod rust;
pub(crate) mod start;
pub(crate) mod statistics;
