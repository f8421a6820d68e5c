//! memcached's protocols: bytes in, bytes out. Nothing here knows of sockets.

mod classic;
mod meta;
mod session;
mod statistics;
mod words;
#[cfg(test)]
mod tests;

pub use session::{Served, Session, Then};
pub use statistics::About;
