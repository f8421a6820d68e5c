//! Waiting for descriptors, for a time, and for other threads, whichever comes first.
//!
//! A descriptor is armed for one report; after that it is silent until it is armed again. So
//! several threads may look at the same set, and one of them gets each report.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::eventfd::EventFd;

/// Largest number of reports of one look.
const REPORTS: usize = 32;
/// The key of the wake-up descriptor; no other descriptor may have it.
const WAKEUP: u64 = u64::MAX;
const ONCE: EventFlags = EventFlags::IN
    .union(EventFlags::RDHUP)
    .union(EventFlags::ONESHOT);

/// Descriptors to wait for, each with a key of the caller's choice, and a way for other threads to
/// end a wait.
#[derive(Debug)]
pub struct Poll {
    set: OwnedFd,
    wakeup: EventFd,
}

impl Poll {
    /// An empty set.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn new() -> io::Result<Poll> {
        let set = epoll::create(CreateFlags::CLOEXEC)?;
        let wakeup = EventFd::new()?;
        // Not for one report only: a thread that looks without waiting leaves it to the one that
        // waits.
        epoll::add(
            &set,
            wakeup.as_fd(),
            EventData::new_u64(WAKEUP),
            EventFlags::IN,
        )?;
        Ok(Poll { set, wakeup })
    }

    /// Adds a descriptor, armed for one report.
    ///
    /// # Errors
    /// It is of a kind that is always ready, as regular files are, or in the set already.
    pub fn add(&self, descriptor: BorrowedFd<'_>, key: u64) -> io::Result<()> {
        debug_assert_ne!(key, WAKEUP, "the key of the wake-up descriptor");
        Ok(epoll::add(
            &self.set,
            descriptor,
            EventData::new_u64(key),
            ONCE,
        )?)
    }

    /// Arms a descriptor of the set again.
    ///
    /// # Errors
    /// It is not in the set.
    pub fn arm(&self, descriptor: BorrowedFd<'_>, key: u64) -> io::Result<()> {
        Ok(epoll::modify(
            &self.set,
            descriptor,
            EventData::new_u64(key),
            ONCE,
        )?)
    }

    /// Takes a descriptor out.
    ///
    /// # Errors
    /// It is not in the set.
    pub fn remove(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::delete(&self.set, descriptor)?)
    }

    /// Ends the wait of the thread that waits, or its next one.
    pub fn wake(&self) {
        self.wakeup.notify();
    }

    /// Waits until something is ready, a thread calls [`wake`](Poll::wake), or the time has passed;
    /// forever without a time. May wake spuriously. Adds the keys of what is ready. For one thread
    /// at a time: it takes the wake-up away.
    pub fn wait(&self, keys: &mut Vec<u64>, time: Option<Duration>) {
        if self.look_for(keys, time) {
            // At worst another notification has been taken with this one.
            self.wakeup.take();
        }
    }

    /// Adds the keys of what is ready now. Any thread may look, even while another waits.
    pub fn look(&self, keys: &mut Vec<u64>) {
        self.look_for(keys, Some(Duration::ZERO));
    }

    /// True if somebody has woken the thread that waits.
    fn look_for(&self, keys: &mut Vec<u64>, time: Option<Duration>) -> bool {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; REPORTS];
        let count = wait_for(self.set.as_fd(), &mut events, time);
        let mut is_woken = false;
        for event in &events[..count] {
            match event.u64 {
                WAKEUP => is_woken = true,
                key => keys.push(key),
            }
        }
        is_woken
    }
}

/// Waits to the nanosecond where the kernel can, from 5.11 on, or else to the next millisecond.
pub(crate) fn wait_for(
    set: BorrowedFd<'_>,
    events: &mut [libc::epoll_event],
    time: Option<Duration>,
) -> usize {
    static IS_COARSE: AtomicBool = AtomicBool::new(false);
    // Relaxed: a thread that does not know yet finds out by itself.
    if !IS_COARSE.load(Ordering::Relaxed) {
        match wait_finely(set, events, time) {
            Ok(count) => return count,
            // A filter of system calls may answer either.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
                IS_COARSE.store(true, Ordering::Relaxed);
            }
            Err(_) => return 0,
        }
    }
    wait_coarsely(set, events, time)
}

fn wait_coarsely(
    set: BorrowedFd<'_>,
    events: &mut [libc::epoll_event],
    time: Option<Duration>,
) -> usize {
    let milliseconds = time.map_or(-1, |time| {
        i32::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
    });
    // SAFETY: the pointer and length describe `events`.
    let count = unsafe {
        libc::epoll_wait(
            set.as_raw_fd(),
            events.as_mut_ptr(),
            events.len() as i32,
            milliseconds,
        )
    };
    usize::try_from(count).unwrap_or(0)
}

fn wait_finely(
    set: BorrowedFd<'_>,
    events: &mut [libc::epoll_event],
    time: Option<Duration>,
) -> io::Result<usize> {
    let time = time.map(|time| libc::timespec {
        tv_sec: time.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: time.subsec_nanos().into(),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the pointer and length describe `events`; the time, if there is one, is read during
    // the call; no mask of signals is given.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            set.as_raw_fd(),
            events.as_mut_ptr(),
            events.len() as i32,
            time,
            std::ptr::null::<libc::sigset_t>(),
            0usize,
        )
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    #[test]
    fn a_descriptor_reports_once_until_it_is_armed_again() {
        let poll = Poll::new().unwrap();
        let (mut near, mut far) = UnixStream::pair().unwrap();
        poll.add(near.as_fd(), 7).unwrap();
        let mut keys = Vec::new();
        poll.look(&mut keys);
        assert!(keys.is_empty());
        far.write_all(b"a").unwrap();
        poll.wait(&mut keys, None);
        poll.look(&mut keys);
        assert_eq!(keys, [7]);
        poll.arm(near.as_fd(), 8).unwrap();
        poll.wait(&mut keys, None);
        assert_eq!(keys, [7, 8]);
        near.read_exact(&mut [0]).unwrap();
        poll.remove(near.as_fd()).unwrap();
        assert!(poll.arm(near.as_fd(), 9).is_err());
    }

    #[test]
    fn a_wake_up_ends_a_wait_and_is_left_to_it() {
        let poll = Poll::new().unwrap();
        let mut keys = Vec::new();
        poll.wake();
        // A look leaves the wake-up there.
        poll.look(&mut keys);
        poll.wait(&mut keys, None);
        std::thread::scope(|scope| {
            scope.spawn(|| poll.wake());
            poll.wait(&mut Vec::new(), None);
        });
        assert!(keys.is_empty());
    }

    #[test]
    fn a_wait_ends_in_time_but_not_early() {
        let poll = Poll::new().unwrap();
        let (start, time) = (Instant::now(), Duration::from_micros(300));
        poll.wait(&mut Vec::new(), Some(time));
        assert!(start.elapsed() >= time);
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 2];
        let start = Instant::now();
        assert_eq!(wait_coarsely(poll.set.as_fd(), &mut events, Some(time)), 0);
        assert!(start.elapsed() >= time);
        poll.wake();
        assert_eq!(wait_coarsely(poll.set.as_fd(), &mut events, None), 1);
    }

    #[test]
    fn a_regular_file_is_refused() {
        let poll = Poll::new().unwrap();
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(poll.add(file.as_fd(), 1).is_err());
    }
}
