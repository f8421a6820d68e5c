//! A bell: a descriptor that is ready to be read from when it was rung until somebody has heard it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Ends the wait of a thread that waits for descriptors, this one among them.
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    /// A bell that was not rung.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn new() -> io::Result<Bell> {
        // SAFETY: the call touches no memory.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened, and nobody else's.
        Ok(Bell(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Makes it ready.
    pub fn ring(&self) {
        let one = 1u64.to_ne_bytes();
        // Fails only if it was rung 2^64 - 2 times unheard.
        // SAFETY: eight bytes, which is what an eventfd takes.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Makes it silent; false if it was.
    pub fn hear(&self) -> bool {
        let mut count = [0; 8];
        // SAFETY: eight bytes, which is what an eventfd gives.
        unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), 8) == 8 }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_rung_is_heard_once() {
        let bell = Bell::new().unwrap();
        assert!(!bell.hear());
        bell.ring();
        bell.ring();
        assert!(bell.hear());
        assert!(!bell.hear());
    }
}
