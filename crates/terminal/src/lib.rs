//! How Hearth's commands speak to a terminal: what they write, how far they are, and how they end.
//!
//! - [`output`]: standard output, and files that are never seen half written.
//! - [`progress`]: a line or a bar while something takes long, on terminals only.
//! - [`interruption`]: Ctrl-C during work that can be left off halfway.
//! - [`failure`]: the ways a command ends badly, each with its exit code.
//! - [`crash`]: the page for mistakes of our own.
//!
//! The crate must never know what a command does. `hearth` and `hearth-study` use it; both call
//! themselves `hearth` in messages, since that is what people type.
//!
//! ```
//! use hearth_terminal::failure::Failure;
//!
//! fn study(name: &str) -> Result<(), Failure> {
//!     match name {
//!         "memcached" => hearth_terminal::output::write("memcached\n"),
//!         other => Err(Failure::input(format!("there is no study '{other}'"))),
//!     }
//! }
//! assert!(study("memcached").is_ok() && study("cache").is_err());
//! ```
#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, reason = "this crate prints for the commands")]

pub mod crash;
pub mod failure;
pub mod interruption;
pub mod output;
pub mod progress;
