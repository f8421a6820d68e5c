//! Values: the heaps they are in, and counting, copying and releasing them.

pub(crate) mod heap;
pub(crate) mod object;
