//! Event descriptors: a thread wakes another that waits for descriptors.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// A descriptor that is readable from a notification until the notification is taken.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// A descriptor without a notification.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn new() -> io::Result<EventFd> {
        Ok(EventFd(eventfd(
            0,
            EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK,
        )?))
    }

    /// Makes it readable.
    pub fn notify(&self) {
        // Fails only after 2^64 - 2 notifications that no thread took.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Takes the notification, if there is one. False if there was none.
    pub fn take(&self) -> bool {
        rustix::io::read(&self.0, &mut [0; 8]) == Ok(8)
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_notifications_are_taken_at_once() {
        let event = EventFd::new().unwrap();
        assert!(!event.take());
        event.notify();
        event.notify();
        assert!(event.take());
        assert!(!event.take());
    }
}
