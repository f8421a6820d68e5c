//! memcached's protocols: bytes in, bytes out. Nothing here knows of sockets.

mod classic;
mod command;
mod meta;
mod session;
mod statistics;
mod survey;
#[cfg(test)]
mod tests;
mod words;

pub use command::{About, Say};
pub use session::{LINE_OF_KEYS_MAX, Served, Session, Then};
