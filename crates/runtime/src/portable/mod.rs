//! Values as bytes, for the radio and for channels between nodes.
//!
//! A value is written by its type, without the type:
//!
//! ```text
//! integer, unsigned, real, enum   4 bytes, low byte first
//! bool, byte                      1 byte
//! string                          its length, its bytes
//! array                           its length, its elements
//! struct                          its fields in order
//! any                             its type code as a string, its value
//! ```
//!
//! A length takes as many bytes as it needs: seven bits each, low bits first, the high bit set in
//! all but the last. Channels, components and procedures belong to their node and stay there.
//!
//! Reading has two steps, so that bytes from outside are judged before any heap is touched:
//! [`read`] makes a [`Portable`] or refuses, [`Portable::place`] cannot fail.

mod codes;
mod reading;
mod writing;

pub(crate) use codes::{leave_no_node, type_of_code};
pub(crate) use reading::{Portable, read};
#[cfg(test)]
use writing::Stays;
pub(crate) use writing::write;

#[cfg(test)]
mod tests;
