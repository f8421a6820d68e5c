//! Nodes, programs on this machine that know of each other, and channels between them.
//!
//! A program becomes a [`node`](crate::services::node) by showing itself in the network's
//! directory. Other nodes find its [`published`] channels there too, and connect to them through
//! its socket ([`listener`]). A connection is a [`link`] between two proxies, which speak
//! [`wire`]'s protocol. `docs/internals/remote.md` tells the whole story.

mod link;
mod listener;
pub mod natives;
mod published;
mod wire;

pub(crate) use link::{owes_answers, settle};
