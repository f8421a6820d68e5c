//! Components among themselves: the same cases under each carrier.

#![allow(clippy::duplicate_mod, reason = "the same cases under each carrier")]

use hearth::{Carrier, Hearth};

#[path = "cases/mod.rs"]
mod by_one_worker;
#[path = "cases/mod.rs"]
mod by_threads;
#[path = "cases/mod.rs"]
mod by_two_workers;

/// Starts a runtime for a case of this module.
fn start(module: &str) -> Hearth {
    let builder = match module.rsplit("::").next() {
        Some("by_one_worker") => Hearth::builder().workers(1),
        Some("by_threads") => Hearth::builder().carrier(Carrier::Threads),
        _ => Hearth::builder().workers(2),
    };
    builder.start().unwrap()
}
