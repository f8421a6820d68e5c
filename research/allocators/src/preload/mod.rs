//! An allocator in place of a process's `malloc`.
//!
//! [`preload!`](crate::preload!) makes the functions of the C library over one [`Process`], known
//! when it is compiled: a call goes from the program into the allocator's own code. Only objects
//! to be preloaded may use it, as its crate's `malloc` is the whole process's.

pub mod one_heap;
pub mod threads;

use std::ptr;

use crate::heap::round_up;

/// The page that `valloc` aligns to.
const PAGE: usize = 4096;

/// An allocator for all threads of a process.
///
/// # Safety
/// As for [`crate::heap::Heap`], for calls from all threads at once.
pub unsafe trait Process: Sync {
    /// Bytes added to each block.
    const OVERHEAD: usize;

    /// Prepares the allocator: called when the object is loaded, before anything else; more calls
    /// do nothing.
    fn prepare(&'static self);

    /// A block; null if there is no memory.
    fn allocate(&self, bytes: usize) -> *mut u8;

    /// A block at a multiple of `align`, a power of two.
    fn allocate_aligned(&self, align: usize, bytes: usize) -> *mut u8;

    /// Takes a block back.
    ///
    /// # Safety
    /// The block is handed out, and nobody uses it any more.
    unsafe fn release(&self, block: *mut u8);

    /// Usable bytes of the block.
    ///
    /// # Safety
    /// The block is handed out.
    unsafe fn usable(&self, block: *mut u8) -> usize;

    /// Makes a block hold `bytes` bytes where it is; says whether it could.
    ///
    /// # Safety
    /// The block is handed out, and the calling thread may use it.
    unsafe fn resize(&self, block: *mut u8, bytes: usize) -> bool;
}

/// Makes a panic print its place and end the process from now on. The usual way allocates, within
/// an allocator whose lock is held.
pub fn end_at_panics() {
    // A closure that holds nothing takes no memory.
    std::panic::set_hook(Box::new(|panic| {
        crate::system::say(b"hearth-allocators: a mistake of ours at ");
        if let Some(place) = panic.location() {
            crate::system::say(place.file().as_bytes());
            crate::system::say(b":");
            crate::system::say_number(u64::from(place.line()));
        }
        crate::system::say(b"\n");
        std::process::abort();
    }));
}

fn set_errno(number: i32) {
    // SAFETY: the thread's own.
    unsafe { *libc::__errno_location() = number };
}

/// A result for C: an error number if there is no block.
#[inline]
fn checked(block: *mut u8) -> *mut u8 {
    if block.is_null() {
        set_errno(libc::ENOMEM);
    }
    block
}

/// `malloc`.
#[inline]
pub fn malloc(process: &impl Process, bytes: usize) -> *mut u8 {
    checked(process.allocate(bytes))
}

/// `free`.
///
/// # Safety
/// As C has it.
#[inline]
pub unsafe fn free(process: &impl Process, block: *mut u8) {
    if block.is_null() {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { process.release(block) };
}

/// `calloc`.
pub fn calloc(process: &impl Process, count: usize, bytes: usize) -> *mut u8 {
    let Some(all) = count.checked_mul(bytes) else {
        return checked(ptr::null_mut());
    };
    let block = process.allocate(all);
    if !block.is_null() {
        // SAFETY: the block has as many bytes. Whatever its allocator knows of its contents, it may
        // have been used before.
        unsafe { block.write_bytes(0, all) };
    }
    checked(block)
}

/// `realloc`.
///
/// # Safety
/// As C has it.
pub unsafe fn realloc(process: &impl Process, block: *mut u8, bytes: usize) -> *mut u8 {
    if block.is_null() {
        return malloc(process, bytes);
    }
    // SAFETY: the caller's promise.
    unsafe {
        if bytes == 0 {
            process.release(block);
            return ptr::null_mut();
        }
        if process.resize(block, bytes) {
            return block;
        }
        let moved = process.allocate(bytes);
        if !moved.is_null() {
            moved.copy_from_nonoverlapping(block, process.usable(block).min(bytes));
            process.release(block);
        }
        checked(moved)
    }
}

/// `memalign` and its kin.
pub fn aligned(process: &impl Process, align: usize, bytes: usize) -> *mut u8 {
    if !align.is_power_of_two() {
        set_errno(libc::EINVAL);
        return ptr::null_mut();
    }
    checked(process.allocate_aligned(align, bytes))
}

/// `posix_memalign`.
///
/// # Safety
/// As C has it.
pub unsafe fn posix_memalign(
    process: &impl Process,
    place: *mut *mut u8,
    align: usize,
    bytes: usize,
) -> i32 {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    let block = process.allocate_aligned(align, bytes);
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's promise.
    unsafe { place.write(block) };
    0
}

/// `valloc`, and `pvalloc` with whole pages.
pub fn page_aligned(process: &impl Process, bytes: usize, is_whole: bool) -> *mut u8 {
    let bytes = match (is_whole, bytes > crate::heap::REQUEST_MAX) {
        (_, true) => return checked(ptr::null_mut()),
        (true, _) => round_up(bytes.max(1), PAGE),
        (false, _) => bytes,
    };
    checked(process.allocate_aligned(PAGE, bytes))
}

/// `malloc_usable_size`.
///
/// # Safety
/// As C has it.
pub unsafe fn usable(process: &impl Process, block: *mut u8) -> usize {
    if block.is_null() {
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe { process.usable(block) }
}

/// Bytes that an allocator adds to each block. Whole objects export it, so that a meter that is
/// preloaded before one can ask.
pub fn overhead<P: Process>(_process: &P) -> usize {
    P::OVERHEAD
}

/// Makes the functions of the C library over a static [`Process`].
#[macro_export]
macro_rules! preload {
    ($process:expr) => {
        /// Runs before the program's `main`.
        extern "C" fn prepare() {
            $crate::preload::end_at_panics();
            $crate::preload::Process::prepare(&$process);
        }

        // SAFETY: the loader calls what is listed there once, with nothing that must be looked at.
        #[used]
        #[unsafe(link_section = ".init_array")]
        static PREPARE: extern "C" fn() = prepare;

        // SAFETY: this crate is made to be the process's allocator; each name below is defined here
        // only, with the types that C gives it.
        #[unsafe(no_mangle)]
        pub extern "C" fn malloc(bytes: usize) -> *mut u8 {
            $crate::preload::malloc(&$process, bytes)
        }

        /// # Safety
        /// As C has it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn free(block: *mut u8) {
            // SAFETY: the caller's promise.
            unsafe { $crate::preload::free(&$process, block) };
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn calloc(count: usize, bytes: usize) -> *mut u8 {
            $crate::preload::calloc(&$process, count, bytes)
        }

        /// # Safety
        /// As C has it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn realloc(block: *mut u8, bytes: usize) -> *mut u8 {
            // SAFETY: the caller's promise.
            unsafe { $crate::preload::realloc(&$process, block, bytes) }
        }

        /// # Safety
        /// As C has it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn reallocarray(
            block: *mut u8,
            count: usize,
            bytes: usize,
        ) -> *mut u8 {
            let all = count.saturating_mul(bytes);
            // SAFETY: the caller's promise.
            unsafe { $crate::preload::realloc(&$process, block, all) }
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn memalign(align: usize, bytes: usize) -> *mut u8 {
            $crate::preload::aligned(&$process, align, bytes)
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn aligned_alloc(align: usize, bytes: usize) -> *mut u8 {
            $crate::preload::aligned(&$process, align, bytes)
        }

        /// # Safety
        /// As C has it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn posix_memalign(
            place: *mut *mut u8,
            align: usize,
            bytes: usize,
        ) -> i32 {
            // SAFETY: the caller's promise.
            unsafe { $crate::preload::posix_memalign(&$process, place, align, bytes) }
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn valloc(bytes: usize) -> *mut u8 {
            $crate::preload::page_aligned(&$process, bytes, false)
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn pvalloc(bytes: usize) -> *mut u8 {
            $crate::preload::page_aligned(&$process, bytes, true)
        }

        /// # Safety
        /// As C has it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn malloc_usable_size(block: *mut u8) -> usize {
            // SAFETY: the caller's promise.
            unsafe { $crate::preload::usable(&$process, block) }
        }

        /// # Safety
        /// As C has it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn cfree(block: *mut u8) {
            // SAFETY: the caller's promise.
            unsafe { $crate::preload::free(&$process, block) };
        }

        /// # Safety
        /// As C has it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn free_sized(block: *mut u8, _bytes: usize) {
            // SAFETY: the caller's promise.
            unsafe { $crate::preload::free(&$process, block) };
        }

        /// # Safety
        /// As C has it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn free_aligned_sized(block: *mut u8, _align: usize, _bytes: usize) {
            // SAFETY: the caller's promise.
            unsafe { $crate::preload::free(&$process, block) };
        }

        /// Nothing is ever given back this way.
        #[unsafe(no_mangle)]
        pub extern "C" fn malloc_trim(_pad: usize) -> i32 {
            0
        }

        /// Bytes that each block costs besides its payload, for the meter.
        #[unsafe(no_mangle)]
        pub extern "C" fn hearth_block_overhead() -> usize {
            $crate::preload::overhead(&$process)
        }
    };
}
