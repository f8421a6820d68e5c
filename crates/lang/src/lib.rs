//! The Insense language: text in, C11 or diagnostics out.
#![forbid(unsafe_code)]

pub mod check;
pub mod codes;
pub mod compile;
pub mod core;
pub mod diagnostic;
pub mod emit;
pub mod format;
pub mod graph;
pub mod source;
pub mod symbol;
pub mod syntax;
pub mod tree;
pub mod types;
