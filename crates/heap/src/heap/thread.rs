//! The heap of a thread: one pointer in [its own storage](own).

use crate::ground::os;
use crate::heap::state::Heap;

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

/// A heap in which there is nothing, for which no block is its own: nothing is ever written to it.
struct Nothing(Heap);

// SAFETY: nobody writes to it.
unsafe impl Sync for Nothing {}

static NOTHING: Nothing = Nothing(Heap::nothing());

/// What a thread has in place of a heap when its end has been told. It may allocate and free yet, in
/// destructors that run later; the C library itself does.
pub(crate) const ENDED: *const Heap = &raw const NOTHING.0;
