//! Servers that run on the worker of their caller, and servers that run where measurements say.

#![allow(clippy::duplicate_mod, reason = "the same cases in each way")]

use hearth::Servers;

#[path = "serving/mod.rs"]
mod auto;
#[path = "serving/mod.rs"]
mod synchronous;

/// Tells where servers run in the cases of this module.
fn way(module: &str) -> Servers {
    match module.rsplit("::").next() {
        Some("synchronous") => Servers::Synchronous,
        _ => Servers::Auto,
    }
}
