//! The heap of a thread: one pointer in [its own storage](own).

use core::sync::atomic::{AtomicU32, Ordering};

use crate::heap::Heap;
use crate::os;

#[cfg(not(miri))]
mod own;
#[cfg(miri)]
#[path = "thread/own_miri.rs"]
mod own;

pub(crate) use own::{begin_cpu, cpu, heap, only_heap, set_heap};

/// The CPU that this thread runs on, asked of the system.
pub(crate) fn ask_cpu() -> u32 {
    // SAFETY: the call takes nothing. It need not go to the kernel, so it does not go through the door.
    let cpu = os::quietly(|| unsafe { libc::sched_getcpu() });
    cpu.max(0) as u32
}

/// One more than the key whose destructor runs at a thread's end; 0 if there is none.
static KEY: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn at_end(heap: *mut libc::c_void) {
    if !heap.is_null() {
        crate::threads::ends();
    }
}

/// Makes the key, unless there is one. Early, as the C library keeps the first 32 without allocating. One more
/// than the key; 0 if it is refused.
pub(crate) fn make_key() -> u32 {
    let before = KEY.load(Ordering::Acquire);
    if before != 0 {
        return before;
    }
    let mut key = 0;
    // SAFETY: the key is written, and the destructor is a function of this crate.
    let result = os::quietly(|| unsafe { libc::pthread_key_create(&mut key, Some(at_end)) });
    if result != 0 {
        return 0;
    }
    let made = KEY.compare_exchange(0, key + 1, Ordering::AcqRel, Ordering::Acquire);
    let Err(other) = made else { return key + 1 };
    // SAFETY: another thread was first, and nobody has seen this one.
    unsafe { libc::pthread_key_delete(key) };
    other
}

/// Sees to it that the heap is parked when this thread ends. False if the C library refuses: it would stay with
/// its blocks, unused.
#[must_use]
pub(crate) fn watch_end(heap: *const Heap) -> bool {
    let key = make_key();
    key != 0 && {
        // SAFETY: the key was made. It may allocate.
        os::quietly(|| unsafe { libc::pthread_setspecific(key - 1, heap.cast()) }) == 0
    }
}

/// A heap in which there is nothing, for which no block is its own: nothing is ever written to it.
struct Nothing(Heap);

// SAFETY: nobody writes to it.
unsafe impl Sync for Nothing {}

static NOTHING: Nothing = Nothing(Heap::nothing());

/// What a thread has in place of a heap when its end has been told. It may allocate and free yet, in
/// destructors that run later; the C library itself does.
pub(crate) const ENDED: *const Heap = &raw const NOTHING.0;
