//! Nodes: programs on this machine that know of each other, and channels between them.
//!
//! `docs/internals/remote.md` has the protocol.

pub(crate) mod claims;
pub(crate) mod node;
