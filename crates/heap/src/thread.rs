//! The heap of a thread: one pointer in thread-local storage of the initial-exec model, as the code
//! that asks for it must neither call nor allocate. Stable Rust has no other way to it than assembly.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::heap::Heap;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
core::arch::global_asm!(
    ".pushsection .tbss.hearth_thread_heap, \"awT\", @nobits",
    ".hidden hearth_thread_heap",
    ".globl hearth_thread_heap",
    ".type hearth_thread_heap, @object",
    ".size hearth_thread_heap, 8",
    ".p2align 3",
    "hearth_thread_heap:",
    ".zero 8",
    ".popsection",
);

#[cfg(all(target_arch = "aarch64", target_os = "linux"))]
core::arch::global_asm!(
    ".pushsection .tbss.hearth_thread_heap, \"awT\", %nobits",
    ".hidden hearth_thread_heap",
    ".globl hearth_thread_heap",
    ".type hearth_thread_heap, %object",
    ".size hearth_thread_heap, 8",
    ".p2align 3",
    "hearth_thread_heap:",
    ".zero 8",
    ".popsection",
);

/// The heap of this thread, null if it has none yet.
#[inline(always)]
pub(crate) fn heap() -> *const Heap {
    let heap: *const Heap;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads this thread's own pointer.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr [rip + hearth_thread_heap@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) heap,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads this thread's own pointer.
    unsafe {
        core::arch::asm!(
            "adrp {0}, :gottprel:hearth_thread_heap",
            "ldr {0}, [{0}, :gottprel_lo12:hearth_thread_heap]",
            "mrs {1}, tpidr_el0",
            "ldr {0}, [{0}, {1}]",
            out(reg) heap,
            out(reg) _,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    heap
}

/// Sets it.
pub(crate) fn set_heap(heap: *const Heap) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: writes this thread's own pointer.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr [rip + hearth_thread_heap@GOTTPOFF]",
            "mov qword ptr fs:[{0}], {1}",
            out(reg) _,
            in(reg) heap,
            options(nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: writes this thread's own pointer.
    unsafe {
        core::arch::asm!(
            "adrp {0}, :gottprel:hearth_thread_heap",
            "ldr {0}, [{0}, :gottprel_lo12:hearth_thread_heap]",
            "mrs {1}, tpidr_el0",
            "str {2}, [{0}, {1}]",
            out(reg) _,
            out(reg) _,
            in(reg) heap,
            options(nostack, preserves_flags),
        );
    }
}

/// One more than the key whose destructor runs at a thread's end; 0 if there is none.
static KEY: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn at_end(heap: *mut libc::c_void) {
    if !heap.is_null() {
        crate::global::thread_ends();
    }
}

/// Makes the key. Early, as the C library keeps the first 32 without allocating.
pub(crate) fn make_key() {
    let mut key = 0;
    // SAFETY: the key is written, and the destructor is a function of this crate.
    if unsafe { libc::pthread_key_create(&mut key, Some(at_end)) } == 0 {
        KEY.store(key + 1, Ordering::Release);
    }
}

/// Sees to it that the heap is parked when this thread ends.
pub(crate) fn watch_end(heap: *const Heap) {
    let key = KEY.load(Ordering::Acquire);
    if key != 0 {
        // SAFETY: the key was made. Should it be refused, the heap stays with its blocks, unused.
        unsafe { libc::pthread_setspecific(key - 1, heap.cast()) };
    }
}

/// A heap in which there is nothing, for which no block is its own: nothing is ever written to it.
struct Nothing(Heap);

// SAFETY: nobody writes to it.
unsafe impl Sync for Nothing {}

// SAFETY: a heap may be zero, as it is before it is made.
static NOTHING: Nothing = Nothing(unsafe { core::mem::MaybeUninit::zeroed().assume_init() });

/// What a thread has in place of a heap when its end has been told. It may allocate and free yet, in
/// destructors that run later; the C library itself does.
pub(crate) const ENDED: *const Heap = &raw const NOTHING.0;
