//! Nodes: programs on this machine that know of each other, and channels between them.
//!
//! A program is a [`node`](crate::services::node) once it has shown itself in the network's
//! directory. What it has [`published`] others find there too, and connect to through its socket
//! ([`listener`]). A connection is a [`link`] between two proxies, which speak as [`wire`] says.
//! `docs/internals/remote.md` tells the whole story.

mod link;
mod listener;
pub mod natives;
mod published;
mod wire;

pub(crate) use link::{owes_answers, settle};
