//! Targets of the fuzzers and the loops that drive them.
#![forbid(unsafe_code)]

pub mod programs;
