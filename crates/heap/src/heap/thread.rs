//! The heap of a thread: one pointer in [its own storage](own).

use crate::ground::os;
use crate::heap::state::Heap;

#[cfg(not(miri))]
mod own;
#[cfg(miri)]
#[path = "thread/own_miri.rs"]
mod own;

pub(crate) use own::{begin_cpu, cpu, heap, only_heap, set_heap};

/// The CPU that this thread runs on, by asking the system.
pub(crate) fn ask_cpu() -> u32 {
    // SAFETY: the call takes nothing. The C library answers mostly without a system call.
    let cpu = os::quietly(|| unsafe { libc::sched_getcpu() });
    cpu.max(0) as u32
}

/// A heap without blocks, never written to.
struct Nothing(Heap);

// SAFETY: nobody writes to it.
unsafe impl Sync for Nothing {}

static NOTHING: Nothing = Nothing(Heap::nothing());

/// The stand-in for the heap of a thread that has announced its end. The thread may still allocate
/// and free, in destructors that run later; the C library itself does.
pub(crate) const ENDED: *const Heap = &raw const NOTHING.0;
