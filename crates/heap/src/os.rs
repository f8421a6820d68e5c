//! The few system calls that a heap makes, without the standard library: a malloc may not
//! allocate, and what `hearth-sys` tells of a refusal does.

use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

/// The smallest page. A larger one would only make advice coarser: what is asked for here is a
/// multiple of 64 KiB, or rounded outwards.
pub(crate) const PAGE: usize = 4096;

/// Does something of which a refusal is nobody's business: the thread's error number stays.
fn quietly<T>(operation: impl FnOnce() -> T) -> T {
    // SAFETY: the place of this thread's error number, which lives as long as the thread.
    unsafe {
        let place = libc::__errno_location();
        let before = *place;
        let result = operation();
        *place = before;
        result
    }
}

/// Reserves addresses without memory behind them; 0 if there are not so many.
pub(crate) fn reserve(bytes: usize) -> usize {
    map(bytes, libc::PROT_NONE)
}

/// Maps zeroed memory; 0 if there is none.
pub(crate) fn map_memory(bytes: usize) -> usize {
    map(bytes, libc::PROT_READ | libc::PROT_WRITE)
}

fn map(bytes: usize, protection: i32) -> usize {
    // SAFETY: a new private mapping at an address of the system's choice disturbs nobody.
    let start = quietly(|| unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            protection,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    });
    if start == libc::MAP_FAILED {
        return 0;
    }
    start.expose_provenance()
}

/// Gives a mapping back.
///
/// # Safety
/// The range is a mapping of this crate's, and nobody uses it any more.
pub(crate) unsafe fn unmap(start: usize, bytes: usize) {
    // SAFETY: as the caller promises.
    unsafe { libc::munmap(ptr::with_exposed_provenance_mut(start), bytes) };
}

/// Gives a mapping another length, perhaps elsewhere; 0 if the system refuses.
///
/// # Safety
/// The range is a mapping of this crate's; if it moves, nobody uses the old place any more.
pub(crate) unsafe fn remap(start: usize, bytes: usize, wanted: usize) -> usize {
    // SAFETY: as the caller promises.
    let place = quietly(|| unsafe {
        libc::mremap(
            ptr::with_exposed_provenance_mut(start),
            bytes,
            wanted,
            libc::MREMAP_MAYMOVE,
        )
    });
    if place == libc::MAP_FAILED {
        return 0;
    }
    place.expose_provenance()
}

/// So much address space the process may have, as far as there is a limit.
pub(crate) fn addresses_max() -> Option<usize> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the limit is written.
    let told = quietly(|| unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) }) == 0;
    (told && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur as usize)
}

/// What a page allows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// To read. Nothing has been written: all of it is zero.
    Read,
    /// To read and write.
    Write,
}

/// Makes pages accessible that were reserved; those that a range touches. False if the system refuses.
///
/// # Safety
/// The range lies in what was reserved by this crate.
pub(crate) unsafe fn allow(start: usize, bytes: usize, access: Access) -> bool {
    let first = start & !(PAGE - 1);
    let end = (start + bytes).next_multiple_of(PAGE);
    let protection = match access {
        Access::Read => libc::PROT_READ,
        Access::Write => libc::PROT_READ | libc::PROT_WRITE,
    };
    // SAFETY: as the caller promises.
    quietly(|| unsafe {
        libc::mprotect(
            ptr::with_exposed_provenance_mut(first),
            end - first,
            protection,
        ) == 0
    })
}

/// Gives the memory behind whole pages back to the system; they read as zero afterwards. False if
/// it did not.
///
/// # Safety
/// The pages are of this crate's own reservation, writable, and hold nothing.
pub(crate) unsafe fn forget(start: usize, bytes: usize) -> bool {
    // SAFETY: as the caller promises. Memory that is locked is not given back.
    quietly(|| unsafe {
        libc::madvise(
            ptr::with_exposed_provenance_mut(start),
            bytes,
            libc::MADV_DONTNEED,
        ) == 0
    })
}

/// Starts a thread that outlives everything, has a small stack and takes no signals; and has `forked`
/// called in the children of forks. False if the system refuses.
pub(crate) fn start_thread(
    run: extern "C" fn(*mut libc::c_void) -> *mut libc::c_void,
    forked: extern "C" fn(),
) -> bool {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    const STACK_BYTES: usize = 256 << 10;
    // SAFETY: everything that is pointed to lives until the call returns; the set of signals is
    // restored. `forked` may be called at any time.
    quietly(|| unsafe {
        if !IS_TOLD.swap(true, Ordering::Relaxed) {
            let forked: unsafe extern "C" fn() = forked;
            libc::pthread_atfork(None, None, Some(forked));
        }
        let mut attributes: libc::pthread_attr_t = core::mem::zeroed();
        if libc::pthread_attr_init(&mut attributes) != 0 {
            return false;
        }
        libc::pthread_attr_setstacksize(&mut attributes, STACK_BYTES);
        libc::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
        let mut all: libc::sigset_t = core::mem::zeroed();
        let mut before: libc::sigset_t = core::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let mut thread = core::mem::zeroed();
        let result = libc::pthread_create(&mut thread, &attributes, run, ptr::null_mut());
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        libc::pthread_attr_destroy(&mut attributes);
        result == 0
    })
}

/// Sleeps for less than a second.
pub(crate) fn sleep_ns(ns: i64) {
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: ns,
    };
    // SAFETY: the time is there; what is left of it is not asked for.
    unsafe { libc::nanosleep(&time, ptr::null_mut()) };
}

/// Sleeps while a word has a value, until it is woken or for no reason.
pub(crate) fn wait(word: *mut u32, value: u32) {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word is alive, and the kernel only reads it.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word,
            operation,
            value,
            ptr::null::<libc::timespec>(),
        )
    };
}

/// Wakes a thread that sleeps on a word.
pub(crate) fn wake(word: *mut u32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel only compares the address.
    unsafe { libc::syscall(libc::SYS_futex, word, operation, 1) };
}

/// Lets another thread run.
pub(crate) fn pause() {
    // SAFETY: the call takes nothing.
    unsafe { libc::sched_yield() };
}

/// Writes a line to standard error and ends the process: for what must not go on.
#[cold]
pub(crate) fn die(parts: &[&[u8]]) -> ! {
    let mut line = [0u8; 512];
    let mut length = 0;
    for part in parts {
        for &byte in *part {
            if length < line.len() {
                line[length] = byte;
                length += 1;
            }
        }
    }
    // SAFETY: the buffer is as long as said; abort takes nothing.
    unsafe {
        libc::write(2, line.as_ptr().cast(), length);
        libc::abort();
    }
}

/// A number in hexadecimal, for a line.
pub(crate) fn hexadecimal(number: usize) -> [u8; 18] {
    let mut text = *b"0x0000000000000000";
    for (i, digit) in text[2..].iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[number >> (60 - 4 * i) & 15];
    }
    text
}
