//! Waiting for descriptors, for a moment, and for other threads, whichever comes first.
//!
//! A descriptor is armed for one report: once it was told to be ready it is silent until it is armed
//! again. So several threads may look at the same set, and one of them gets each report.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How many reports one look gives.
const REPORTS: usize = 32;
/// What the bell reports; no descriptor may have this key.
const BELL: u64 = u64::MAX;

/// Descriptors to wait for, each with a key of the caller's choice, and a bell that others ring.
#[derive(Debug)]
pub struct Poll {
    set: OwnedFd,
    bell: OwnedFd,
}

/// The descriptor that a system call gave.
fn owned(descriptor: i32) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

impl Poll {
    /// An empty set.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn new() -> io::Result<Poll> {
        // SAFETY: neither call touches memory.
        let set = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: as above.
        let bell = owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        let poll = Poll { set, bell };
        // Not for one report only: who looks without waiting leaves it to the one who waits.
        poll.control(
            libc::EPOLL_CTL_ADD,
            poll.bell.as_fd(),
            libc::EPOLLIN as u32,
            BELL,
        )?;
        Ok(poll)
    }

    /// Waits for a descriptor too, armed for one report.
    ///
    /// # Errors
    /// It is of a kind that is always ready, as regular files are, or in the set already.
    pub fn add(&self, descriptor: BorrowedFd<'_>, key: u64) -> io::Result<()> {
        debug_assert_ne!(key, BELL, "the bell's own key");
        self.control(libc::EPOLL_CTL_ADD, descriptor, ONCE, key)
    }

    /// Arms a descriptor of the set again.
    ///
    /// # Errors
    /// It is not in the set.
    pub fn arm(&self, descriptor: BorrowedFd<'_>, key: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, descriptor, ONCE, key)
    }

    /// Takes a descriptor out.
    ///
    /// # Errors
    /// It is not in the set.
    pub fn remove(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, descriptor, 0, 0)
    }

    fn control(
        &self,
        operation: i32,
        descriptor: BorrowedFd<'_>,
        events: u32,
        key: u64,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: key };
        // SAFETY: both descriptors are open, and the call reads the event.
        let result = unsafe {
            libc::epoll_ctl(
                self.set.as_raw_fd(),
                operation,
                descriptor.as_raw_fd(),
                &mut event,
            )
        };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Ends the wait of the thread that waits, or its next one.
    pub fn ring(&self) {
        let one = 1u64.to_ne_bytes();
        // Fails only if it was rung 2^64 - 2 times already.
        // SAFETY: eight bytes, which is what an eventfd takes.
        unsafe { libc::write(self.bell.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Waits until something is ready, the bell rings, or so much time has passed; for ever if no
    /// time is given. May end early for no reason. Adds the keys of what is ready. For one thread at
    /// a time: it takes the bell's ringing away.
    pub fn wait(&self, keys: &mut Vec<u64>, time: Option<Duration>) {
        if self.look_for(keys, time) {
            let mut count = [0; 8];
            // Not blocking: at worst there is nothing to read.
            // SAFETY: eight bytes, which is what an eventfd gives.
            unsafe { libc::read(self.bell.as_raw_fd(), count.as_mut_ptr().cast(), 8) };
        }
    }

    /// Adds the keys of what is ready now. Any thread may look, while another waits too.
    pub fn look(&self, keys: &mut Vec<u64>) {
        self.look_for(keys, Some(Duration::ZERO));
    }

    /// True if the bell rings.
    fn look_for(&self, keys: &mut Vec<u64>, time: Option<Duration>) -> bool {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; REPORTS];
        let count = wait_for(self.set.as_fd(), &mut events, time);
        let mut is_rung = false;
        for event in &events[..count] {
            match event.u64 {
                BELL => is_rung = true,
                key => keys.push(key),
            }
        }
        is_rung
    }
}

const ONCE: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLONESHOT) as u32;

/// Waits to the nanosecond where the kernel can, which is since 5.11, else to the next millisecond.
pub(crate) fn wait_for(
    set: BorrowedFd<'_>,
    events: &mut [libc::epoll_event],
    time: Option<Duration>,
) -> usize {
    static IS_COARSE: AtomicBool = AtomicBool::new(false);
    // Relaxed: a thread that does not know yet finds out itself.
    if !IS_COARSE.load(Ordering::Relaxed) {
        match wait_finely(set, events, time) {
            Ok(count) => return count,
            // Filters of system calls may answer either.
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
    fn the_bell_ends_a_wait_and_rings_for_who_waits() {
        let poll = Poll::new().unwrap();
        let mut keys = Vec::new();
        poll.ring();
        // A look takes nothing away.
        poll.look(&mut keys);
        poll.wait(&mut keys, None);
        std::thread::scope(|scope| {
            scope.spawn(|| poll.ring());
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
        poll.ring();
        assert_eq!(wait_coarsely(poll.set.as_fd(), &mut events, None), 1);
    }

    #[test]
    fn a_regular_file_is_refused() {
        let poll = Poll::new().unwrap();
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(poll.add(file.as_fd(), 1).is_err());
    }
}
