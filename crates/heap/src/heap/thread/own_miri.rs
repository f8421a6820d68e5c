//! The same for Miri, which runs no assembly: a thread's heap is a thread-local of the standard
//! library, and there is one CPU.

use core::cell::Cell;
use core::ptr;

use crate::heap::state::Heap;

std::thread_local! {
    static HEAP: Cell<*const Heap> = const { Cell::new(ptr::null()) };
}

pub(crate) fn heap() -> *const Heap {
    HEAP.with(Cell::get)
}

pub(crate) fn only_heap() -> *const Heap {
    heap()
}

pub(crate) fn set_heap(heap: *const Heap) {
    HEAP.with(|place| place.set(heap));
}

pub(crate) fn cpu() -> u32 {
    0
}

pub(crate) fn begin_cpu(_: bool) -> bool {
    true
}
