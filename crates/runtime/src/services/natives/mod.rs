//! The C functions that prelude procedures name as `native`.
//!
//! Each is called as `include/hearth.h` says: the component that runs it first, then borrowed
//! arguments; a reference it returns is the caller's. Only compiled code calls them.

pub mod arrays;
pub mod devices;
pub mod numbers;
pub mod print;
pub mod radio;
pub mod strings;
