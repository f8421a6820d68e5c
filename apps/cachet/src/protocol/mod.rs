//! memcached's protocols: bytes in, bytes out. Nothing here knows of sockets.

mod classic;
mod command;
mod control;
mod meta;
mod session;
mod statistics;
mod survey;
#[cfg(test)]
mod tests;
mod users;
mod words;

pub use command::{About, Say};
pub use session::{LINE_OF_KEYS_MAX, Served, Session, Then};
pub use users::{NoUsers, Users};
