//! Calls of the C library that show whether the process has threads: the heap's helper, which gives
//! idle memory back, runs exactly while it has some.
//!
//! `pthread_create` starts the helper: there the program starts a thread itself, and so holds no
//! lock of the C library. `malloc` and `free` never do, as the C library calls them under its
//! locks. `unshare` and `setns`, which the kernel refuses to processes of several threads, first
//! end the helper if the program has no thread left; so does a fork, see `hearth_heap::be_single`.
//!
//! Threads made by other calls (C11's `thrd_create`, timers with `SIGEV_THREAD`, `clone`) go
//! unseen. A program with only such threads has no helper.

use core::ffi::{c_int, c_long, c_void};
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use hearth_heap as heap;

/// A thread's start function.
type Start = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// The start function and argument of a program's thread.
#[repr(C)]
struct Begin {
    start: Start,
    argument: *mut c_void,
}

/// One more than the key of a value that each counted thread has; 0 before there is one.
static KEY: AtomicU32 = AtomicU32::new(0);

/// The C library's own `pthread_create`; 0 before it was looked up.
static CREATE: AtomicUsize = AtomicUsize::new(0);

fn create() -> Option<heap::CreateThread> {
    let mut address = CREATE.load(Ordering::Relaxed);
    if address == 0 {
        // SAFETY: the name ends with a zero.
        address = unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_create".as_ptr()) }.addr();
        CREATE.store(address, Ordering::Relaxed);
    }
    let place = ptr::with_exposed_provenance::<c_void>(address);
    // SAFETY: the function of that name, or none.
    unsafe { mem::transmute::<*const c_void, Option<heap::CreateThread>>(place) }
}

/// Prepares what the first thread would: looks the C library's function up where nobody can hold
/// the loader's lock while waiting for a thread.
pub(crate) fn begin() {
    create();
    key();
}

/// One more than the key whose destructor announces the end of a counted thread, made if there is
/// none: libraries loaded before this one has begun may start threads. 0 if the C library has no
/// key left: then no thread is counted, and there is no helper.
fn key() -> u32 {
    extern "C" fn ends(_: *mut c_void) {
        heap::thread_ended();
    }
    let before = KEY.load(Ordering::Acquire);
    if before != 0 {
        return before;
    }
    let mut key = 0;
    // SAFETY: the key is written, and the destructor takes what a thread has set.
    if unsafe { libc::pthread_key_create(&mut key, Some(ends)) } != 0 {
        return 0;
    }
    match KEY.compare_exchange(0, key + 1, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => key + 1,
        Err(other) => {
            // SAFETY: another thread was first, and nobody has seen this one.
            unsafe { libc::pthread_key_delete(key) };
            other
        }
    }
}

// Counts a thread of the program, then jumps to its start function. The jump leaves nothing of ours
// on the stack when the thread returns, calls `pthread_exit` or is cancelled; the latter two unwind
// the stack, which frames of Rust do not support.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".pushsection .text.hearth_counted_thread, \"ax\", @progbits",
    ".hidden hearth_counted_thread",
    ".globl hearth_counted_thread",
    ".type hearth_counted_thread, @function",
    "hearth_counted_thread:",
    ".cfi_startproc",
    "endbr64",
    "sub rsp, 8",
    ".cfi_adjust_cfa_offset 8",
    "call {begins}",
    "mov rdi, rdx",
    "add rsp, 8",
    ".cfi_adjust_cfa_offset -8",
    "jmp rax",
    ".cfi_endproc",
    ".size hearth_counted_thread, . - hearth_counted_thread",
    ".popsection",
    begins = sym begins,
);
#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".pushsection .text.hearth_counted_thread, \"ax\", %progbits",
    ".hidden hearth_counted_thread",
    ".globl hearth_counted_thread",
    ".type hearth_counted_thread, %function",
    "hearth_counted_thread:",
    ".cfi_startproc",
    "stp x29, x30, [sp, #-16]!",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset w29, -16",
    ".cfi_offset w30, -8",
    "bl {begins}",
    // With branch targets checked, a jump by this register may reach what a call may.
    "mov x16, x0",
    "mov x0, x1",
    "ldp x29, x30, [sp], #16",
    ".cfi_restore w29",
    ".cfi_restore w30",
    ".cfi_def_cfa_offset 0",
    "br x16",
    ".cfi_endproc",
    ".size hearth_counted_thread, . - hearth_counted_thread",
    ".popsection",
    begins = sym begins,
);

unsafe extern "C" {
    fn hearth_counted_thread(begin: *mut c_void) -> *mut c_void;
}

/// Counts this thread until its end, and returns its start function and argument in two registers.
///
/// # Safety
/// `begin` is what [`pthread_create`] made for this thread.
unsafe extern "C" fn begins(begin: *mut Begin) -> Begin {
    // SAFETY: as the caller promises; and the key was made.
    unsafe {
        let first = begin.read();
        heap::free(begin.cast());
        // If that fails, nobody will announce its end.
        if libc::pthread_setspecific(KEY.load(Ordering::Acquire) - 1, ptr::dangling()) != 0 {
            heap::thread_ended();
        }
        first
    }
}

/// POSIX's `pthread_create`: the C library's, plus the start of the helper.
///
/// # Safety
/// As POSIX says.
#[unsafe(no_mangle)]
#[allow(unreachable_pub, reason = "exported by its name")]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    let Some(create) = create() else {
        return libc::ENOSYS;
    };
    let begin: *mut Begin = heap::allocate(size_of::<Begin>()).cast();
    if begin.is_null() || key() == 0 {
        // SAFETY: as the caller promises; null, or just allocated. The thread is not counted.
        return unsafe {
            heap::free(begin.cast());
            create(thread, attributes, start, argument)
        };
    }
    // SAFETY: a block of its size.
    unsafe { begin.write(Begin { start, argument }) };
    // Before the thread exists, as it may end at once.
    heap::thread_begins();
    // Before it, and until the helper sleeps: the kernel would put the program's next thread beside
    // one of these.
    // SAFETY: the C library's.
    unsafe { heap::start_helper(create) };
    // SAFETY: as the caller promises; the block is the thread's.
    let begin_thread =
        || unsafe { create(thread, attributes, hearth_counted_thread, begin.cast()) };
    let mut result = begin_thread();
    if result == libc::EAGAIN {
        // If the system allows only one more thread, it is the program's.
        heap::thread_ended();
        heap::be_single();
        heap::thread_begins();
        result = begin_thread();
    }
    if result != 0 {
        heap::thread_ended();
        // SAFETY: no thread has it.
        unsafe { heap::free(begin.cast()) };
    }
    result
}

fn system_call(number: c_long, first: c_int, second: c_int) -> c_int {
    // The kernel takes whole registers, whose upper halves are undefined for shorter numbers.
    let (first, second) = (c_long::from(first), c_long::from(second));
    // SAFETY: the calls below take numbers only.
    unsafe { libc::syscall(number, first, second) as c_int }
}

/// Linux's `unshare`.
#[unsafe(no_mangle)]
#[allow(unreachable_pub, reason = "exported by its name")]
pub extern "C" fn unshare(flags: c_int) -> c_int {
    heap::be_single();
    system_call(libc::SYS_unshare, flags, 0)
}

/// Linux's `setns`.
#[unsafe(no_mangle)]
#[allow(unreachable_pub, reason = "exported by its name")]
pub extern "C" fn setns(descriptor: c_int, kind: c_int) -> c_int {
    heap::be_single();
    system_call(libc::SYS_setns, descriptor, kind)
}
