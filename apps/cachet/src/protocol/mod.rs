//! memcached's protocols: bytes in, bytes out. Nothing here knows of sockets.

mod classic;
mod meta;
mod session;
mod statistics;
mod survey;
#[cfg(test)]
mod tests;
mod words;

pub use session::{LINE_OF_KEYS_MAX, Served, Session, Then};
pub use statistics::{About, Say};
