//! `epoll`: waiting for many descriptors, reported on every wait.
//!
//! Unlike [`crate::epoll_once`], for threads that alone own their descriptors: a descriptor stays
//! armed, so a wait costs one system call for as many descriptors as are ready, and none to arm
//! them again.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::epoll_once::wait_for;

/// The events to report for a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Readable, or closed by the peer.
    Read,
    /// Readable, writable, or closed by the peer.
    ReadWrite,
    /// Writable.
    Write,
    /// Only errors.
    Nothing,
}

impl Interest {
    fn events(self) -> EventFlags {
        match self {
            Interest::Read => EventFlags::IN | EventFlags::RDHUP,
            Interest::ReadWrite => EventFlags::IN | EventFlags::RDHUP | EventFlags::OUT,
            Interest::Write => EventFlags::OUT,
            Interest::Nothing => EventFlags::empty(),
        }
    }
}

/// Condition for reporting a ready descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// On every wait while it is ready.
    Level,
    /// Once; then it is silent until it is changed again. For several threads that wait on one set.
    Once,
    /// Whenever something new comes, or it becomes writable again. The receiver of a report reads
    /// and writes until the descriptor would block, or until less came than was asked for and no
    /// end was reported.
    Edge,
}

impl Trigger {
    fn events(self) -> EventFlags {
        match self {
            Trigger::Level => EventFlags::empty(),
            Trigger::Once => EventFlags::ONESHOT,
            Trigger::Edge => EventFlags::ET,
        }
    }
}

/// Buffer for the reports of a wait; each thread that waits has its own.
#[derive(Debug)]
pub struct Reports(Vec<libc::epoll_event>);

impl Reports {
    /// A buffer for at most this many reports, at least one.
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

/// State of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Key with which it was added.
    pub key: u64,
    /// A read would give bytes, the end, or an error.
    pub can_read: bool,
    /// A write would take bytes, or give an error.
    pub can_write: bool,
    /// The other side writes no more, or the connection broke: reads come to an end.
    pub is_ended: bool,
}

/// A set of descriptors, each with a key of the caller's choice and an interest.
#[derive(Debug)]
pub struct Epoll {
    set: OwnedFd,
    reports: Reports,
}

/// The set's own descriptor, which is readable when something is ready; open for as long as the set
/// is.
impl AsRawFd for Epoll {
    fn as_raw_fd(&self) -> RawFd {
        self.set.as_raw_fd()
    }
}

impl Epoll {
    /// An empty set; one wait returns at most this many reports.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn new(reports: usize) -> io::Result<Epoll> {
        Ok(Epoll {
            set: epoll::create(CreateFlags::CLOEXEC)?,
            reports: Reports::new(reports),
        })
    }

    /// Adds a descriptor.
    ///
    /// # Errors
    /// It is in the set already, or of a kind that is always ready, as regular files are.
    pub fn add(&self, of: BorrowedFd<'_>, key: u64, interest: Interest) -> io::Result<()> {
        self.add_triggered(of, key, interest, Trigger::Level)
    }

    /// Adds a descriptor with a trigger.
    ///
    /// # Errors
    /// As for [`Epoll::add`].
    pub fn add_triggered(
        &self,
        of: BorrowedFd<'_>,
        key: u64,
        interest: Interest,
        trigger: Trigger,
    ) -> io::Result<()> {
        let events = interest.events() | trigger.events();
        Ok(epoll::add(&self.set, of, EventData::new_u64(key), events)?)
    }

    /// Changes the interest and trigger of a descriptor. A descriptor with [`Trigger::Once`] is
    /// armed again.
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
        Ok(epoll::modify(
            &self.set,
            of,
            EventData::new_u64(key),
            events,
        )?)
    }

    /// Changes the interest of a descriptor.
    ///
    /// # Errors
    /// It is not in the set.
    pub fn change(&self, of: BorrowedFd<'_>, key: u64, interest: Interest) -> io::Result<()> {
        self.change_triggered(of, key, interest, Trigger::Level)
    }

    /// Removes a descriptor. One whose last copy is closed goes by itself.
    ///
    /// # Errors
    /// It is not in the set.
    pub fn remove(&self, of: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::delete(&self.set, of)?)
    }

    /// Waits until a descriptor is ready or the time has passed, forever without a time, and
    /// returns the ready ones. May wake spuriously with none.
    pub fn wait(&mut self, time: Option<Duration>) -> impl Iterator<Item = Readiness> + '_ {
        let events = &mut self.reports.0;
        let count = wait_for(self.set.as_fd(), events, time);
        events[..count].iter().map(readiness)
    }

    /// Waits as [`Epoll::wait`] does, for several threads on one set, or while others change it.
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

    fn look(ready: &mut Epoll) -> Vec<Readiness> {
        ready.wait(Some(Duration::ZERO)).collect()
    }

    #[test]
    fn a_descriptor_is_told_as_long_as_it_is_ready() {
        let mut ready = Epoll::new(4).unwrap();
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
        let mut ready = Epoll::new(4).unwrap();
        let (near, far) = UnixStream::pair().unwrap();
        ready.add(near.as_fd(), 1, Interest::Nothing).unwrap();
        assert!(look(&mut ready).is_empty());
        drop(far);
        let told: Vec<_> = ready.wait(None).collect();
        assert!(told[0].can_read && told[0].can_write);
    }
}
