//! The store: the machine's memory, divided into nodes, arenas and chunks; blocks larger than a
//! heap cuts; and idle memory on its way back to the system.
//!
//! It must never know what a heap does with its chunks.
//!
//! In reading order: `region` has the words of a region; `space` the addresses and the metadata of
//! all chunks; `nodes` the machine; `pool` the free chunks of each node, found by `hints`;
//! `numbers` reusable numbers; `idle` the account of idle memory, with the ring of `lent` pages and
//! the `stage` of giving back; `large` blocks of whole chunks and `mappings` of their own;
//! `guarded` blocks with guard pages, and their `quarantine`.
#![cfg_attr(loom, allow(dead_code, reason = "a model uses a part of it"))]

#[cfg(not(loom))]
pub(crate) mod guarded;
pub(crate) mod hints;
#[cfg(not(loom))]
pub(crate) mod idle;
#[cfg(not(loom))]
pub(crate) mod large;
pub(crate) mod lent;
pub(crate) mod mappings;
#[cfg(not(loom))]
pub(crate) mod nodes;
pub(crate) mod numbers;
pub(crate) mod pool;
pub(crate) mod quarantine;
pub(crate) mod region;
#[cfg(not(loom))]
pub(crate) mod space;
pub(crate) mod stage;
