//! Which of many descriptors can be read or written, told each time one looks.
//!
//! As [`crate::poll`], for those who own their descriptors alone: a descriptor stays armed, so a look
//! costs one system call for as many descriptors as are ready, and none to arm them again.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use crate::poll::wait_for;

/// What about a descriptor is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Something can be read, or the end has come.
    Read,
    /// As that, or something can be written.
    ReadWrite,
    /// Something can be written.
    Write,
    /// Only that it broke.
    Nothing,
}

impl Interest {
    fn events(self) -> u32 {
        let events = match self {
            Interest::Read => libc::EPOLLIN | libc::EPOLLRDHUP,
            Interest::ReadWrite => libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLOUT,
            Interest::Write => libc::EPOLLOUT,
            Interest::Nothing => 0,
        };
        events as u32
    }
}

/// When a descriptor is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// At each look, as long as it is ready.
    Level,
    /// Once; then it is silent until it is changed again. For several who look at one set.
    Once,
    /// Each time something new comes, or can be written that could not. Who is told reads and writes until
    /// the descriptor would wait, or until less came than was asked for and no end was told.
    Edge,
}

impl Trigger {
    fn events(self) -> u32 {
        match self {
            Trigger::Level => 0,
            Trigger::Once => libc::EPOLLONESHOT as u32,
            Trigger::Edge => libc::EPOLLET as u32,
        }
    }
}

/// Where a look leaves what it sees; each thread that looks has its own.
#[derive(Debug)]
pub struct Reports(Vec<libc::epoll_event>);

impl Reports {
    /// At most so many descriptors a look, at least one.
    pub fn new(reports: usize) -> Reports {
        Reports(vec![
            libc::epoll_event { events: 0, u64: 0 };
            reports.max(1)
        ])
    }
}

fn readiness(event: &libc::epoll_event) -> Readiness {
    let events = event.events;
    let broken = (libc::EPOLLERR | libc::EPOLLHUP) as u32;
    let ended = libc::EPOLLRDHUP as u32 | broken;
    Readiness {
        key: event.u64,
        can_read: events & (libc::EPOLLIN as u32 | ended) != 0,
        can_write: events & (libc::EPOLLOUT as u32 | broken) != 0,
        is_ended: events & ended != 0,
    }
}

/// What is true of a descriptor now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// The key it was added with.
    pub key: u64,
    /// A read would give bytes, the end, or an error.
    pub can_read: bool,
    /// A write would take bytes, or give an error.
    pub can_write: bool,
    /// The other side writes no more, or the connection broke: reads come to an end.
    pub is_ended: bool,
}

/// Descriptors, each with a key of the caller's choice and an interest.
#[derive(Debug)]
pub struct Ready {
    set: OwnedFd,
    reports: Reports,
}

/// The set's own descriptor, which can be read when something is ready; open for as long as the set is.
impl AsRawFd for Ready {
    fn as_raw_fd(&self) -> RawFd {
        self.set.as_raw_fd()
    }
}

impl Ready {
    /// An empty set, of which one look tells at most so many descriptors.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn new(reports: usize) -> io::Result<Ready> {
        // SAFETY: the call touches no memory.
        let set = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if set < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Ready {
            // SAFETY: just opened, and nobody else's.
            set: unsafe { OwnedFd::from_raw_fd(set) },
            reports: Reports::new(reports),
        })
    }

    /// Adds a descriptor.
    ///
    /// # Errors
    /// It is in the set already, or of a kind that is always ready, as regular files are.
    pub fn add(&self, of: BorrowedFd<'_>, key: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, of, key, interest.events())
    }

    /// Adds a descriptor that is told at each look, once, or each time something is new.
    ///
    /// # Errors
    /// As of [`Ready::add`].
    pub fn add_triggered(
        &self,
        of: BorrowedFd<'_>,
        key: u64,
        interest: Interest,
        trigger: Trigger,
    ) -> io::Result<()> {
        let events = interest.events() | trigger.events();
        self.control(libc::EPOLL_CTL_ADD, of, key, events)
    }

    /// Changes what is asked about a descriptor, and when it is told; one that was told once is told again.
    ///
    /// # Errors
    /// It is not in the set.
    pub fn change_triggered(
        &self,
        of: BorrowedFd<'_>,
        key: u64,
        interest: Interest,
        trigger: Trigger,
    ) -> io::Result<()> {
        let events = interest.events() | trigger.events();
        self.control(libc::EPOLL_CTL_MOD, of, key, events)
    }

    /// Changes what is asked about a descriptor.
    ///
    /// # Errors
    /// It is not in the set.
    pub fn change(&self, of: BorrowedFd<'_>, key: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, of, key, interest.events())
    }

    /// Takes a descriptor out; one that is closed for good goes by itself.
    ///
    /// # Errors
    /// It is not in the set.
    pub fn remove(&self, of: BorrowedFd<'_>) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, of, 0, 0)
    }

    fn control(&self, operation: i32, of: BorrowedFd<'_>, key: u64, events: u32) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: key };
        // SAFETY: both descriptors are open, and the call reads the event.
        let result =
            unsafe { libc::epoll_ctl(self.set.as_raw_fd(), operation, of.as_raw_fd(), &mut event) };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits until a descriptor is ready or so much time has passed, for ever if no time is given, and
    /// tells which are. May end early with none.
    pub fn wait(&mut self, time: Option<Duration>) -> impl Iterator<Item = Readiness> + '_ {
        let events = &mut self.reports.0;
        let count = wait_for(self.set.as_fd(), events, time);
        events[..count].iter().map(readiness)
    }

    /// As [`Ready::wait`], for several threads that look at one set, or while others change it.
    pub fn wait_shared<'a>(
        &self,
        reports: &'a mut Reports,
        time: Option<Duration>,
    ) -> impl Iterator<Item = Readiness> + use<'a> {
        let count = wait_for(self.set.as_fd(), &mut reports.0, time);
        reports.0[..count].iter().map(readiness)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    fn look(ready: &mut Ready) -> Vec<Readiness> {
        ready.wait(Some(Duration::ZERO)).collect()
    }

    #[test]
    fn a_descriptor_is_told_as_long_as_it_is_ready() {
        let mut ready = Ready::new(4).unwrap();
        let (mut near, mut far) = UnixStream::pair().unwrap();
        ready.add(near.as_fd(), 7, Interest::Read).unwrap();
        assert!(look(&mut ready).is_empty());
        far.write_all(b"a").unwrap();
        for _ in 0..2 {
            let told = look(&mut ready);
            assert_eq!((told.len(), told[0].key), (1, 7));
            assert!(told[0].can_read && !told[0].can_write);
        }
        near.read_exact(&mut [0]).unwrap();
        assert!(look(&mut ready).is_empty());
        ready.change(near.as_fd(), 8, Interest::ReadWrite).unwrap();
        let told = look(&mut ready);
        assert!(told[0].key == 8 && told[0].can_write && !told[0].can_read);
        ready.remove(near.as_fd()).unwrap();
        assert!(look(&mut ready).is_empty());
    }

    #[test]
    fn an_end_is_something_to_read_and_a_break_is_told_unasked() {
        let mut ready = Ready::new(4).unwrap();
        let (near, far) = UnixStream::pair().unwrap();
        ready.add(near.as_fd(), 1, Interest::Nothing).unwrap();
        assert!(look(&mut ready).is_empty());
        drop(far);
        let told: Vec<_> = ready.wait(None).collect();
        assert!(told[0].can_read && told[0].can_write);
    }
}
