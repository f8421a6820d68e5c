//! State of the program's thread that the library's work must leave as it was.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::{mem, ptr};

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

/// Runs an action with all signals blocked, for threads that it starts: they leave all signals to
/// the program's own.
pub(crate) fn with_signals_blocked<R>(action: impl FnOnce() -> R) -> R {
    // SAFETY: a set of signals is plain numbers, for which zero is good.
    let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { mem::zeroed() };
    // SAFETY: the set is a local variable.
    unsafe { libc::sigfillset(&mut all) };
    // SAFETY: both sets are local variables.
    let failure = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before) };
    let result = action();
    if failure == 0 {
        // SAFETY: the set is the one from before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut()) };
    }
    result
}
