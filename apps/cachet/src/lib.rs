//! A key-value server that speaks the memcached protocols, with its items on Hearth's heaps.
//!
//! [`protocol`] is a function from bytes to bytes over a [`store`], and knows nothing of sockets;
//! the store keeps [`items`], the one place with unsafe code; the [`server`] moves bytes between
//! sockets and the protocol, encrypted by [`tls`] if asked to.

pub mod items;
pub mod options;
pub mod protocol;
pub mod server;
pub mod store;
pub mod tls;
