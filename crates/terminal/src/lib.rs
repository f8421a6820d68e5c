//! The command's terminal: everything printed that is not a command's answer, and the ways to end.
//!
//! - [`failure`]: how a command ends other than well, each way with its exit code. [`crash`] is the
//!   page for mistakes of Hearth's own.
//! - [`diagnostics`] and [`render`]: a program's diagnostics, in colours on terminals.
//! - [`progress`]: a line or a bar while something takes long.
//! - [`output`]: standard output, and files that are never seen half written.
//! - [`interruption`]: Ctrl-C during work that can be left halfway.
//!
//! `hearth` and `hearth-study` use it; both call themselves `hearth` in messages, since that is the
//! word that users type. This crate must never know what a command does.
//!
//! ```
//! use hearth_terminal::Failure;
//!
//! let failure = Failure::input("there is no file of that name");
//! assert!(matches!(failure, Failure::Input(_)));
//! ```
#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, reason = "the crate that prints for the command")]

pub mod crash;
pub mod diagnostics;
pub mod failure;
pub mod interruption;
pub mod output;
pub mod progress;
pub mod render;

pub use diagnostics::DiagnosticPrinter;
pub use failure::Failure;
pub use interruption::Interruption;
