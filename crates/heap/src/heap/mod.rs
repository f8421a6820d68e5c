//! A heap and its owner: how blocks are cut, kept, freed from elsewhere and given back.
//!
//! It must never know who asks for blocks: the process's interface, its helper thread, or its settings.
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
