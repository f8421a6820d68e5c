//! Generators and oracles for Hearth's own tests, fuzzers and benchmarks.
//!
//! - [`generate`] makes random well-typed Insense programs as small typed trees ([`tree`]);
//! - [`beside`] makes random programs whose calls and loops may run at the same time;
//! - [`text`] prints a tree in many layouts;
//! - [`oracle`] computes a program's expected output, by an interpreter that shares nothing with
//!   the compiler;
//! - [`mutate`] breaks texts for the fuzzers, [`large`] writes long realistic ones;
//! - [`library`] builds libraries of the workspace for the tests that preload them.
//!
//! Everything follows from a seed. Nothing here knows the compiler's trees or the runtime: a
//! mistake made on both sides would go unseen. No shipped crate depends on this one.
//!
//! ```
//! let case = hearth_testing::generate::case(7);
//! assert!(!case.expected.stdout.is_empty());
//! println!("{}", case.text);
//! ```
#![forbid(unsafe_code)]

pub mod beside;
pub mod generate;
pub mod large;
pub mod library;
pub mod mutate;
pub mod oracle;
pub mod prune;
pub mod random;
pub mod text;
pub mod toolchain;
pub mod tree;
