//! The few system calls that a heap makes, without the standard library: a malloc may not
//! allocate, and what `hearth-sys` tells of a refusal does.

use core::ptr;

/// The smallest page. A larger one would only make advice coarser: what is asked for here is a
/// multiple of 64 KiB, or rounded outwards.
pub(crate) const PAGE: usize = 4096;

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
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            protection,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
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
    unsafe {
        libc::mprotect(
            ptr::with_exposed_provenance_mut(first),
            end - first,
            protection,
        ) == 0
    }
}

/// Gives the memory behind whole pages back to the system; they read as zero afterwards. False if
/// it did not.
///
/// # Safety
/// The pages are of this crate's own reservation, writable, and hold nothing.
pub(crate) unsafe fn forget(start: usize, bytes: usize) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        libc::madvise(
            ptr::with_exposed_provenance_mut(start),
            bytes,
            libc::MADV_DONTNEED,
        ) == 0
    }
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
