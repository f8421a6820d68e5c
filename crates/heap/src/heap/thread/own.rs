//! Thread-local variables read without a call: the thread's heap, and its CPU. They use the
//! initial-exec model, as their readers must neither call nor allocate; in stable Rust only
//! assembly can do that.

use core::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use crate::heap::state::Heap;

core::arch::global_asm!(
    ".pushsection .tbss.hearth_thread_heap, \"awT\", %nobits",
    ".hidden hearth_thread_heap",
    ".globl hearth_thread_heap",
    ".type hearth_thread_heap, %object",
    ".size hearth_thread_heap, 8",
    ".p2align 3",
    "hearth_thread_heap:",
    ".zero 8",
    ".hidden hearth_only_heap",
    ".globl hearth_only_heap",
    "hearth_only_heap:",
    ".zero 8",
    ".hidden hearth_no_cpu",
    ".globl hearth_no_cpu",
    "hearth_no_cpu:",
    ".zero 8",
    ".popsection",
);

/// Reads a thread-local pointer to a heap.
macro_rules! read {
    ($name:literal) => {{
        let heap: *const Heap;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: reads this thread's own pointer.
        unsafe {
            core::arch::asm!(
                concat!("mov {0}, qword ptr [rip + ", $name, "@GOTTPOFF]"),
                "mov {0}, qword ptr fs:[{0}]",
                out(reg) heap,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: reads this thread's own pointer.
        unsafe {
            core::arch::asm!(
                concat!("adrp {0}, :gottprel:", $name),
                concat!("ldr {0}, [{0}, :gottprel_lo12:", $name, "]"),
                "mrs {1}, tpidr_el0",
                "ldr {0}, [{0}, {1}]",
                out(reg) heap,
                out(reg) _,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        heap
    }};
}

/// Writes a thread-local pointer to a heap.
macro_rules! write {
    ($name:literal, $heap:expr) => {{
        let heap: *const Heap = $heap;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: writes this thread's own pointer.
        unsafe {
            core::arch::asm!(
                concat!("mov {0}, qword ptr [rip + ", $name, "@GOTTPOFF]"),
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
                concat!("adrp {0}, :gottprel:", $name),
                concat!("ldr {0}, [{0}, :gottprel_lo12:", $name, "]"),
                "mrs {1}, tpidr_el0",
                "str {2}, [{0}, {1}]",
                out(reg) _,
                out(reg) _,
                in(reg) heap,
                options(nostack, preserves_flags),
            );
        }
    }};
}

/// This thread's heap; null if it has none yet.
#[inline(always)]
pub(crate) fn heap() -> *const Heap {
    read!("hearth_thread_heap")
}

/// This thread's heap if there is one node, so that the thread need not notice where it runs; else
/// null.
#[inline(always)]
pub(crate) fn only_heap() -> *const Heap {
    read!("hearth_only_heap")
}

/// Sets this thread's heap.
pub(crate) fn set_heap(heap: *const Heap) {
    write!("hearth_thread_heap", heap);
    if !WATCHES.load(Ordering::Relaxed) {
        write!("hearth_only_heap", heap);
    }
}

/// Whether threads must notice that they have moved; the machine decides it for all of them.
static WATCHES: AtomicBool = AtomicBool::new(false);

/// The offset of the CPU's number from the thread's base: in the C library's area for restartable
/// sequences, which the kernel updates, or a zero of our own.
static CPU: AtomicIsize = AtomicIsize::new(0);

/// The CPU that this thread runs on, or ran on a moment ago; 0 if nobody needs to know.
#[inline(always)]
pub(crate) fn cpu() -> u32 {
    let offset = CPU.load(Ordering::Relaxed);
    let cpu: u32;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads this thread's own area, or its own zero.
    unsafe {
        core::arch::asm!(
            "mov {0:e}, dword ptr fs:[{1}]",
            out(reg) cpu,
            in(reg) offset,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        core::arch::asm!(
            "mrs {2}, tpidr_el0",
            "ldr {0:w}, [{2}, {1}]",
            out(reg) cpu,
            in(reg) offset,
            out(reg) _,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    cpu
}

/// Sets up [`cpu`] before there is a heap: `watch` says whether threads must notice that they have
/// moved. False if they cannot, as the C library has no such area.
pub(crate) fn begin_cpu(watch: bool) -> bool {
    let none: isize;
    let area: *const isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads offsets that the linker and the loader have written. The area may be missing.
    unsafe {
        core::arch::asm!(
            ".weak __rseq_offset",
            "mov {0}, qword ptr [rip + hearth_no_cpu@GOTTPOFF]",
            "mov {1}, qword ptr [rip + __rseq_offset@GOTPCREL]",
            out(reg) none,
            out(reg) area,
            options(nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        core::arch::asm!(
            ".weak __rseq_offset",
            "adrp {0}, :gottprel:hearth_no_cpu",
            "ldr {0}, [{0}, :gottprel_lo12:hearth_no_cpu]",
            "adrp {1}, :got:__rseq_offset",
            "ldr {1}, [{1}, :got_lo12:__rseq_offset]",
            out(reg) none,
            out(reg) area,
            options(nostack, preserves_flags),
        );
    }
    WATCHES.store(watch, Ordering::Relaxed);
    CPU.store(none, Ordering::Relaxed);
    if !watch || area.is_null() {
        return !watch;
    }
    // SAFETY: the C library's constant. The CPU's number is the second word of the area.
    CPU.store(unsafe { *area } + 4, Ordering::Relaxed);
    // Without the kernel's support it is a number that no CPU has.
    if cpu() > u32::MAX / 2 {
        CPU.store(none, Ordering::Relaxed);
        return false;
    }
    true
}
