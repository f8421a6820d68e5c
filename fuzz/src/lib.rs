//! Targets of the fuzzers and the loops that drive them.
//!
//! [`texts`] feeds broken texts to the compiler's stages ([`targets`]); [`programs`] runs random
//! correct programs and compares their output with the oracle's; [`heap`] runs random sequences of
//! operations on heaps; [`sessions`] talks to cachet.
#![forbid(unsafe_code)]

pub mod heap;
pub mod programs;
pub mod sessions;
pub mod targets;
pub mod texts;
