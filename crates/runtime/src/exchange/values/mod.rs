//! Values: the heaps they lie in, counting, copying and releasing them.

pub(crate) mod heap;
pub(crate) mod object;
