//! State of the program's thread that the library's work must leave as it was.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr;

/// Keeps the calling thread's error number: dropped, it sets it to what it was.
pub(crate) struct Errno {
    place: *mut c_int,
    value: c_int,
}

impl Errno {
    #[inline]
    pub(crate) fn keep() -> Errno {
        // SAFETY: the function has no conditions.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: the place is the calling thread's, for as long as that lives.
        let value = unsafe { *place };
        Errno { place, value }
    }
}

impl Drop for Errno {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the pointer keeps this in its thread, whose place it is and which lives.
        unsafe { *self.place = self.value };
    }
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// `PTHREAD_CANCEL_DISABLE` of the GNU library, of musl and of the BSDs' emulation.
const DISABLE: c_int = 1;

/// Keeps the calling thread from being cancelled, which would unwind through Rust. A cancellation
/// that is due comes after this is dropped: at the next cancellation point, or, in a thread that
/// may be cancelled at any time, within the drop, where it ends the process.
pub(crate) struct Uncancelled {
    before: c_int,
    /// It stays with its thread.
    stays: PhantomData<*const ()>,
}

impl Uncancelled {
    pub(crate) fn begin() -> Uncancelled {
        let mut before = 0;
        // SAFETY: the place of the old state is a local variable.
        unsafe { pthread_setcancelstate(DISABLE, &mut before) };
        Uncancelled {
            before,
            stays: PhantomData,
        }
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        // SAFETY: the state is one that the function returned; glibc takes null for the old one.
        unsafe { pthread_setcancelstate(self.before, ptr::null_mut()) };
    }
}
