//! POSIX semaphores, to be measured or used.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;

use crate::refused::Refused;

/// A counting semaphore of the C library, within one process.
pub struct Semaphore {
    /// Boxed: the library keeps its address.
    inner: Box<UnsafeCell<libc::sem_t>>,
}

// SAFETY: a semaphore is made to be used by several threads through its address.
unsafe impl Send for Semaphore {}
// SAFETY: as above.
unsafe impl Sync for Semaphore {}

impl Semaphore {
    /// A semaphore with this count.
    ///
    /// # Errors
    /// The count is above the system's limit.
    pub fn new(count: u32) -> Result<Semaphore, Refused> {
        // SAFETY: the C type is plain memory, initialised just below.
        let zeroed = unsafe { MaybeUninit::<libc::sem_t>::zeroed().assume_init() };
        let inner = Box::new(UnsafeCell::new(zeroed));
        // SAFETY: the address stays until the drop, which destroys it.
        match unsafe { libc::sem_init(inner.get(), 0, count) } {
            0 => Ok(Semaphore { inner }),
            _ => Err(Refused::last(
                "make a semaphore of",
                count.to_string(),
                "use a smaller count",
            )),
        }
    }

    /// Increments the count, except at the system's limit.
    #[inline]
    pub fn post(&self) {
        // SAFETY: initialised in `new`.
        unsafe { libc::sem_post(self.inner.get()) };
    }

    /// Waits until the count is positive, and decrements it. Signals do not end the wait.
    #[inline]
    pub fn wait(&self) {
        // SAFETY: initialised in `new`.
        while unsafe { libc::sem_wait(self.inner.get()) } != 0
            && io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
        {}
    }

    /// Decrements the count if it is positive. False if it is not.
    #[inline]
    pub fn try_wait(&self) -> bool {
        // SAFETY: initialised in `new`.
        unsafe { libc::sem_trywait(self.inner.get()) == 0 }
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`; a unique reference says that no thread waits.
        unsafe { libc::sem_destroy(self.inner.get()) };
    }
}

impl std::fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Semaphore")
    }
}
