//! The study of data locality by message passing: a section of code under a lock, or by message to a proprietor.
//!
//! [`engine`] is the source's microbenchmark with its parameters, and its three experiments as lists of cells.

pub mod engine;
