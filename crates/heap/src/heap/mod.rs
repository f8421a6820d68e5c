//! A heap and its owner: how blocks are cut, cached, freed from elsewhere and given back, and how
//! heaps begin and end.
//!
//! It must never know the functions that a process exports, its helper thread, or how it starts.
//!
//! In reading order: `state` is the heap itself, `cache` its fastest part, and `table` the part
//! that other threads use: `remote` marks, `batch`es of marks kept back, `custody` of orphans.
//! `carve` cuts blocks from `regions` and takes them back, `deferred` puts coalescing off.
//! `handshake` lets the helper in, `idle_pages` lends pages, `upkeep` gives them back. `marks`
//! sends and adopts remote frees. `thread` and `threads` find a thread's heap; a `component`'s
//! begins with `pieces` from a `nursery`, may `migrate` or be `destroy`ed, and ends at once,
//! all blocks being `home`, or among the `orphans`. `checks` asserts all invariants.
#![cfg_attr(loom, allow(dead_code, reason = "a model uses a part of it"))]

pub(crate) mod batch;
#[cfg(not(loom))]
pub(crate) mod cache;
#[cfg(not(loom))]
pub(crate) mod carve;
#[cfg(all(any(test, feature = "checks"), not(loom)))]
pub(crate) mod checks;
#[cfg(not(loom))]
pub(crate) mod component;
pub(crate) mod custody;
#[cfg(not(loom))]
pub(crate) mod deferred;
#[cfg(not(loom))]
pub(crate) mod destroy;
pub(crate) mod handshake;
#[cfg(not(loom))]
pub(crate) mod home;
#[cfg(not(loom))]
pub(crate) mod idle_pages;
#[cfg(not(loom))]
pub(crate) mod marks;
#[cfg(not(loom))]
pub(crate) mod migrate;
#[cfg(not(loom))]
pub(crate) mod nursery;
#[cfg(not(loom))]
pub(crate) mod orphans;
#[cfg(not(loom))]
pub(crate) mod pieces;
#[cfg(not(loom))]
pub(crate) mod regions;
pub(crate) mod remote;
#[cfg(not(loom))]
pub(crate) mod state;
#[cfg(not(loom))]
pub(crate) mod table;
#[cfg(not(loom))]
pub(crate) mod thread;
#[cfg(not(loom))]
pub(crate) mod threads;
#[cfg(not(loom))]
pub(crate) mod upkeep;
