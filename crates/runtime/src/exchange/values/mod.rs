//! Values: the heaps they are in, and counting, copying, releasing and tracing them.

pub(crate) mod heap;
pub(crate) mod object;
pub(crate) mod trace;
