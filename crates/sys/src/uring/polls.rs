//! Readiness reported through a ring: nothing has to be armed again, and reports already there are
//! taken without a system call.

use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use io_uring::types::{CancelBuilder, Fd};
use io_uring::{IoUring, cqueue, opcode, squeue};

use super::{DROP_WAIT, enter};
use crate::epoll::Readiness;

/// Key of completions that belong to no request of a user.
const NOBODY: u64 = u64::MAX;
/// Requests that go at once.
const REQUESTS: u32 = 256;
/// Completions that the ring has room for; the kernel keeps the rest.
const COMPLETIONS: u32 = 4096;
/// All events of interest.
const EVENTS: i16 = libc::POLLIN | libc::POLLOUT | libc::POLLRDHUP;

/// The threads that wait for a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiters {
    /// One thread, the first that waits. The kernel does all its work when that thread calls.
    One,
    /// Several, in turns. The kernel does its work in the thread that added a descriptor, and
    /// interrupts it for that.
    Turns,
}

/// A report about a descriptor.
#[derive(Debug)]
pub struct Event {
    /// Its state.
    pub ready: Readiness,
    /// It will be reported again when something is new.
    pub goes_on: bool,
}

/// Descriptors that are reported whenever something is new, as with an edge trigger.
pub struct Polls {
    ring: IoUring,
    waiters: Waiters,
    /// The one thread that waits has begun.
    has_begun: bool,
    /// Number of requests without a completion yet.
    open: usize,
}

impl Polls {
    /// An empty set.
    ///
    /// # Errors
    /// The kernel has no `io_uring` (it needs 6.1), forbids it, or has no memory.
    pub fn new(waiters: Waiters) -> io::Result<Polls> {
        let mut builder = IoUring::builder();
        builder.setup_submit_all().setup_cqsize(COMPLETIONS);
        if waiters == Waiters::One {
            builder
                .setup_single_issuer()
                .setup_defer_taskrun()
                .setup_r_disabled();
        }
        Ok(Polls {
            ring: builder.build(REQUESTS)?,
            waiters,
            has_begun: waiters != Waiters::One,
            open: 0,
        })
    }

    /// Reports a descriptor from the next wait on, beginning with its state then. The key is not
    /// [`u64::MAX`]. A descriptor that is closed stays open in the kernel until it is removed.
    pub fn add(&mut self, of: RawFd, key: u64) {
        let request = opcode::PollAdd::new(Fd(of), EVENTS as u32)
            .multi(true)
            .build();
        self.push(&request.user_data(key));
    }

    /// Stops reporting a key's descriptor, from the next wait on.
    pub fn remove(&mut self, key: u64) {
        let what = CancelBuilder::user_data(key).all();
        self.push(&opcode::AsyncCancel2::new(what).build().user_data(NOBODY));
    }

    /// Returns at most `most` reports. Without any, waits until there are or the time has passed,
    /// forever without a time.
    ///
    /// # Errors
    /// Those of the kernel, but not the end of the time nor a signal. With [`Waiters::One`] also
    /// that another thread waits.
    pub fn wait(
        &mut self,
        time: Option<Duration>,
        most: usize,
        mut each: impl FnMut(Event),
    ) -> io::Result<()> {
        if !self.has_begun {
            self.ring.submitter().register_enable_rings()?;
            self.has_begun = true;
        }
        if self.ring.completion().is_empty() {
            enter(&mut self.ring, time)?;
        } else if !self.ring.submission().is_empty() {
            enter(&mut self.ring, Some(Duration::ZERO))?;
        }
        let mut told = 0;
        while told < most {
            let Some(entry) = self.ring.completion().next() else {
                break;
            };
            let goes_on = cqueue::more(entry.flags());
            self.open -= usize::from(!goes_on);
            let is_cancelled = entry.result() == -libc::ECANCELED;
            if entry.user_data() != NOBODY && !is_cancelled {
                told += 1;
                each(event(&entry, goes_on));
            }
        }
        Ok(())
    }

    /// Removes all. By the thread that waits, if it is one; what other threads have added may end
    /// only when they do.
    pub fn remove_all(&mut self) {
        if !self.has_begun {
            return;
        }
        let everything = opcode::AsyncCancel2::new(CancelBuilder::any().all()).build();
        self.push(&everything.user_data(NOBODY));
        let begun = Instant::now();
        loop {
            let _ = self.wait(Some(Duration::ZERO), usize::MAX, |_| {});
            let is_over = self.open == 0 || self.waiters == Waiters::Turns;
            if is_over || begun.elapsed() > DROP_WAIT {
                return;
            }
            let _ = self.wait(Some(Duration::from_millis(1)), usize::MAX, |_| {});
        }
    }

    fn push(&mut self, request: &squeue::Entry) {
        self.open += 1;
        // SAFETY: it names no memory.
        while unsafe { self.ring.submission().push(request) }.is_err() {
            // Full: submit what is there first. That fails only if the kernel lacks memory for a
            // moment.
            let _ = self.ring.submit();
        }
    }
}

fn event(entry: &cqueue::Entry, goes_on: bool) -> Event {
    let events = entry.result();
    let has = |of: i16| events < 0 || events & i32::from(of) != 0;
    let is_broken = has(libc::POLLERR | libc::POLLHUP);
    let is_ended = is_broken || has(libc::POLLRDHUP);
    Event {
        ready: Readiness {
            key: entry.user_data(),
            can_read: is_ended || has(libc::POLLIN),
            can_write: is_broken || has(libc::POLLOUT),
            is_ended,
        },
        goes_on,
    }
}
