//! Structures on top of transactions. Their functions take a `Tx`, so that several calls, on
//! several structures, are one transaction.

mod map;
mod queue;
mod red_black;
mod slab;
#[cfg(test)]
mod tests;
mod tree;

pub use map::Map;
pub use queue::Queue;
pub use red_black::{Memory, RedBlack};
pub use slab::Slab;
pub use tree::Tree;
