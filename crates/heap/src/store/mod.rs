//! The store: the machine's memory, divided into nodes, arenas and chunks, and what belongs to nobody.
//!
//! It must never know what a heap does with its chunks.
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
