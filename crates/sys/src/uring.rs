//! `io_uring` as servers use it: requests and completions through rings shared with the kernel.
//!
//! A receive is requested once and continues until it is cancelled or ends; received bytes lie in
//! buffers that the kernel chose from those of the ring, and are lent during one call. Bytes to
//! send belong to the ring until the kernel is done with them. All requests are submitted by the
//! call that waits, so a server makes one system call for as much as has come.
//!
//! Buffers, and the bytes of sends, must outlive the kernel's use of them. Dropping a ring cancels
//! everything and waits for the completions; if they do not come, it leaks the memory instead of
//! freeing it.
//!
//! An [`Uring`] belongs to one thread.

mod buffers;

use std::collections::VecDeque;
use std::io;
use std::marker::PhantomData;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use buffers::{Buffers, GROUP};

/// Bits of a completion's user data that hold the kind of the request.
const KIND_BITS: u32 = 2;
const KINDS: u64 = (1 << KIND_BITS) - 1;
const RECEIVE: u64 = 0;
const SEND: u64 = 1;
const POLL: u64 = 2;
const CANCEL: u64 = 3;
/// Linux's `MSG_NOSIGNAL`.
const NO_SIGNAL: i32 = libc::MSG_NOSIGNAL;
/// Linux's `IORING_ENTER_GETEVENTS`: runs the work deferred until the thread enters the kernel.
const GET_EVENTS: u32 = 1;
/// Time that a dropped ring waits for the kernel.
const DROP_WAIT: Duration = Duration::from_secs(1);

/// A completion.
#[derive(Debug)]
pub enum Done<'a> {
    /// Bytes have come; none means the end.
    Received {
        /// Key of the receive.
        key: u64,
        /// Valid during this call.
        bytes: &'a [u8],
        /// More will be reported without a new request.
        goes_on: bool,
    },
    /// A receive is over: cancelled, broken, or out of buffers (`ENOBUFS`), and then it may be
    /// requested again.
    Ended {
        /// Key of the receive.
        key: u64,
        /// Reason.
        error: io::Error,
    },
    /// The kernel is done with a send.
    Sent {
        /// Key of the send.
        key: u64,
        /// The bytes as given.
        bytes: Vec<u8>,
        /// Number of bytes sent.
        result: io::Result<usize>,
    },
    /// A polled descriptor is readable.
    Readable {
        /// Key of the poll.
        key: u64,
        /// It will be reported again.
        goes_on: bool,
    },
}

/// Rings, and buffers to receive into. Stays in the thread that made it.
pub struct Uring {
    requests: Box<Requests>,
    buffers: Buffers,
    completions: VecDeque<cqueue::Entry>,
    /// Places of sends that are over and not reported yet.
    over: Vec<usize>,
    /// The kernel accepts requests from one thread.
    _of_one_thread: PhantomData<*const ()>,
}

/// Rings that no thread has yet: everything that can fail has been done.
pub struct Prepared {
    requests: Box<Requests>,
    buffers: Buffers,
}

/// The requests to a ring.
///
/// Its size is unknown to borrowers, so that nobody swaps it for another ring's: the kernel would
/// keep filling buffers that the [`Uring`] frees.
///
/// ```compile_fail,E0277
/// fn exchange(one: &mut hearth_sys::uring::Uring, other: &mut hearth_sys::uring::Uring) {
///     std::mem::swap(one.requests(), other.requests());
/// }
/// ```
pub struct Requests<End: ?Sized = [()]> {
    ring: IoUring,
    sends: Vec<Option<Sending>>,
    free: Vec<usize>,
    /// Number of requests without a completion yet.
    open: usize,
    /// Places of sends that are over when submitted, with a completion only if not all bytes went.
    at_once: Vec<usize>,
    /// Number of calls of the kernel.
    calls: u64,
    _end: End,
}

struct Sending {
    key: u64,
    bytes: Vec<u8>,
    /// Number of bytes to send.
    length: u32,
    /// It is over when submitted.
    is_at_once: bool,
    /// The kernel's result, if it gave one.
    result: Option<io::Result<usize>>,
}

/// Checks that this process may use `io_uring`. Some systems lack it or switch it off.
///
/// # Errors
/// The kernel is too old, or `kernel.io_uring_disabled` or a filter forbids it.
pub fn is_there() -> io::Result<()> {
    Uring::new(8, 8, 64).map(drop)
}

impl Prepared {
    /// Rings for at least `requests` requests at once and at most `buffers` buffers, a power of two
    /// of at most 32,768, of `bytes` each. The kernel begins with few buffers, which stay in the
    /// cache, and gets more when they run out.
    ///
    /// # Errors
    /// The kernel has no `io_uring` (it needs 6.1), forbids it, or has no memory.
    ///
    /// # Panics
    /// If `buffers` is not such a number.
    pub fn new(requests: u32, buffers: u16, bytes: usize) -> io::Result<Prepared> {
        assert!(
            buffers.is_power_of_two() && buffers <= 1 << 15,
            "{buffers} buffers"
        );
        // By a thread that ends: when a ring ends, the system interrupts the thread that made it,
        // and whatever timed wait that is in.
        let maker =
            thread::Builder::new().spawn(move || Prepared::make(requests, buffers, bytes))?;
        maker.join().unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn make(requests: u32, buffers: u16, bytes: usize) -> io::Result<Prepared> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_r_disabled()
            .setup_cqsize(requests.max(8) * 4)
            .build(requests.max(8))?;
        let buffers = Buffers::new(buffers, bytes)?;
        buffers.register(&ring)?;
        Ok(Prepared {
            requests: Box::new(Requests {
                ring,
                sends: Vec::new(),
                free: Vec::new(),
                open: 0,
                at_once: Vec::new(),
                calls: 0,
                _end: [],
            }),
            buffers,
        })
    }

    /// Gives the rings to the calling thread.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn begin(self) -> io::Result<Uring> {
        self.requests.ring.submitter().register_enable_rings()?;
        Ok(Uring {
            requests: self.requests,
            buffers: self.buffers,
            completions: VecDeque::new(),
            over: Vec::new(),
            _of_one_thread: PhantomData,
        })
    }
}

/// The ring's own descriptor, which is readable when a wait would end; open for as long as the ring
/// is.
impl AsRawFd for Uring {
    fn as_raw_fd(&self) -> RawFd {
        self.requests.ring.as_raw_fd()
    }
}

impl Uring {
    /// Makes rings as [`Prepared::new`] does, for the calling thread.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub fn new(requests: u32, buffers: u16, bytes: usize) -> io::Result<Uring> {
        Prepared::new(requests, buffers, bytes)?.begin()
    }

    /// The ring's requests.
    pub fn requests(&mut self) -> &mut Requests {
        &mut self.requests
    }

    /// Submits all requests, waits until something has completed or the time has passed, forever
    /// without a time, and reports all completions; each call may make more requests.
    ///
    /// # Errors
    /// Those of the kernel, but not the end of the time nor a signal.
    pub fn wait(
        &mut self,
        time: Option<Duration>,
        each: impl FnMut(&mut Requests, Done<'_>),
    ) -> io::Result<()> {
        self.look(time)?;
        self.tell(each);
        Ok(())
    }

    /// The first half of [`Uring::wait`], without reporting. Returns how much there is to report.
    ///
    /// # Errors
    /// As there.
    pub fn look(&mut self, time: Option<Duration>) -> io::Result<usize> {
        self.requests.enter(time)?;
        for entry in self.requests.ring.completion() {
            // A send that should have gone at once and did not.
            let sending = match entry.user_data() & KINDS {
                SEND => self.requests.sends[(entry.user_data() >> KIND_BITS) as usize].as_mut(),
                _ => None,
            };
            match sending.filter(|sending| sending.is_at_once) {
                Some(sending) => sending.result = Some(count(&entry)),
                None => self.completions.push_back(entry),
            }
        }
        let submission = self.requests.ring.submission();
        // If a completion had no room, it may belong to one of these.
        if submission.is_empty() && !submission.cq_overflow() {
            drop(submission);
            self.over.append(&mut self.requests.at_once);
        }
        Ok(self.completions.len() + self.over.len())
    }

    /// The second half: reports completions.
    pub fn tell(&mut self, mut each: impl FnMut(&mut Requests, Done<'_>)) {
        while let Some(place) = self.over.pop() {
            self.requests.open -= 1;
            self.tell_sent(place, &mut each);
        }
        while let Some(entry) = self.completions.pop_front() {
            self.tell_one(&entry, &mut each);
        }
    }

    /// Cancels everything and reports completions until nothing is open or the time has passed.
    /// True if nothing is open.
    pub fn cancel_all(
        &mut self,
        time: Duration,
        mut each: impl FnMut(&mut Requests, Done<'_>),
    ) -> bool {
        if self.requests.open == 0 {
            return true;
        }
        let everything = opcode::AsyncCancel2::new(CancelBuilder::any().all()).build();
        // SAFETY: no memory is given.
        unsafe { self.requests.push(everything, 0, CANCEL) };
        let begun = Instant::now();
        while self.requests.open > 0 && begun.elapsed() < time {
            let step = Some(Duration::from_millis(10));
            if self.wait(step, &mut each).is_err() {
                break;
            }
        }
        self.requests.open == 0
    }

    fn tell_sent(&mut self, place: usize, each: &mut impl FnMut(&mut Requests, Done<'_>)) {
        let Some(sending) = self.requests.sends[place].take() else {
            return;
        };
        self.requests.free.push(place);
        let Sending {
            key, bytes, length, ..
        } = sending;
        // No completion: all of it went.
        let result = sending.result.unwrap_or(Ok(length as usize));
        each(&mut self.requests, Done::Sent { key, bytes, result });
    }

    fn tell_one(&mut self, entry: &cqueue::Entry, each: &mut impl FnMut(&mut Requests, Done<'_>)) {
        let goes_on = cqueue::more(entry.flags());
        if !goes_on {
            self.requests.open -= 1;
        }
        let key = entry.user_data() >> KIND_BITS;
        match entry.user_data() & KINDS {
            RECEIVE => {
                let buffer = cqueue::buffer_select(entry.flags());
                let done = match count(entry) {
                    Ok(count) => Done::Received {
                        key,
                        bytes: buffer.map_or(&[], |buffer| self.buffers.filled(buffer, count)),
                        goes_on,
                    },
                    Err(error) => {
                        if error.raw_os_error() == Some(libc::ENOBUFS) {
                            self.buffers.grow();
                        }
                        Done::Ended { key, error }
                    }
                };
                each(&mut self.requests, done);
                if let Some(buffer) = buffer {
                    self.buffers.give(buffer);
                }
            }
            SEND => {
                let place = key as usize;
                if let Some(sending) = &mut self.requests.sends[place] {
                    sending.result = Some(count(entry));
                }
                self.tell_sent(place, each);
            }
            POLL => each(&mut self.requests, Done::Readable { key, goes_on }),
            _ => {}
        }
    }
}

fn count(entry: &cqueue::Entry) -> io::Result<usize> {
    usize::try_from(entry.result()).map_err(|_| io::Error::from_raw_os_error(-entry.result()))
}

impl Requests {
    /// Receives from a socket until that is cancelled or ends. The key has 62 bits.
    pub fn receive(&mut self, from: BorrowedFd<'_>, key: u64) {
        let request = opcode::RecvMulti::new(Fd(from.as_raw_fd()), GROUP).build();
        // SAFETY: its buffers are the ring's. A descriptor that is closed meanwhile stays open in
        // the kernel.
        unsafe { self.push(request, key, RECEIVE) };
    }

    /// Reports whenever a descriptor can be read.
    pub fn poll(&mut self, of: BorrowedFd<'_>, key: u64) {
        let request = opcode::PollAdd::new(Fd(of.as_raw_fd()), libc::POLLIN as u32)
            .multi(true)
            .build();
        // SAFETY: no memory is given.
        unsafe { self.push(request, key, POLL) };
    }

    /// Sends bytes, from `from` on, as many as go at once; if none do, the result is
    /// [`io::ErrorKind::WouldBlock`]. Two sends of one socket at a time may go in any order.
    ///
    /// # Panics
    /// If there are fewer bytes.
    pub fn send(&mut self, to: BorrowedFd<'_>, key: u64, bytes: Vec<u8>, from: usize) {
        self.send_or_wait(to, key, bytes, from, true);
    }

    /// Sends as [`Requests::send`] does, as soon as some bytes can go.
    ///
    /// # Panics
    /// If there are fewer bytes.
    pub fn send_later(&mut self, to: BorrowedFd<'_>, key: u64, bytes: Vec<u8>, from: usize) {
        self.send_or_wait(to, key, bytes, from, false);
    }

    fn send_or_wait(
        &mut self,
        to: BorrowedFd<'_>,
        key: u64,
        bytes: Vec<u8>,
        from: usize,
        is_at_once: bool,
    ) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.sends.push(None);
            self.sends.len() - 1
        });
        let length = u32::try_from(bytes.len() - from).unwrap_or(u32::MAX);
        let sending = self.sends[place].insert(Sending {
            key,
            bytes,
            length,
            is_at_once,
            result: None,
        });
        let rest = &sending.bytes[from..];
        let request = opcode::Send::new(Fd(to.as_raw_fd()), rest.as_ptr(), length);
        let request = if is_at_once {
            self.at_once.push(place);
            // All or a completion: less than all counts as a failure, and only failures have
            // completions.
            let flags = NO_SIGNAL | libc::MSG_DONTWAIT | libc::MSG_WAITALL;
            let request = request.flags(flags).build();
            request.flags(squeue::Flags::SKIP_SUCCESS)
        } else {
            request.flags(NO_SIGNAL).build()
        };
        // SAFETY: the bytes are on the heap, and stay in `sends` as they are until the completion.
        unsafe { self.push(request, place as u64, SEND) };
    }

    /// Cancels all receives with a key; each is reported as ended, or its last bytes are.
    pub fn cancel_receive(&mut self, key: u64) {
        self.cancel(key, RECEIVE);
    }

    /// Submits all requests without waiting.
    pub fn hand_in(&mut self) {
        if !self.ring.submission().is_empty() {
            self.calls += 1;
            // Fails only if the kernel lacks memory for a moment; then the next call submits them.
            let _ = self.ring.submit();
        }
    }

    /// Number of calls of the kernel for these rings.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    fn cancel(&mut self, key: u64, kind: u64) {
        let what = CancelBuilder::user_data(key << KIND_BITS | kind).all();
        let request = opcode::AsyncCancel2::new(what).build();
        // SAFETY: no memory is given.
        unsafe { self.push(request, 0, CANCEL) };
    }

    /// # Safety
    /// The memory that the request names must be valid until its completion.
    unsafe fn push(&mut self, request: squeue::Entry, key: u64, kind: u64) {
        let request = request.user_data(key << KIND_BITS | kind);
        self.open += 1;
        loop {
            // SAFETY: as the caller says.
            if unsafe { self.ring.submission().push(&request) }.is_ok() {
                return;
            }
            // Full: submit what is there first.
            self.hand_in();
        }
    }

    /// Submits what is there and waits until there is a completion or the time has passed.
    fn enter(&mut self, time: Option<Duration>) -> io::Result<()> {
        self.calls += 1;
        let ring = &mut self.ring;
        let result = match time {
            None => ring.submit_and_wait(1),
            // No time needs no timer.
            Some(Duration::ZERO) => {
                let count = ring.submission().len() as u32;
                // SAFETY: no memory is given.
                unsafe { ring.submitter().enter::<()>(count, 0, GET_EVENTS, None) }
            }
            Some(time) => {
                let time = Timespec::new()
                    .sec(time.as_secs())
                    .nsec(time.subsec_nanos());
                let arguments = SubmitArgs::new().timespec(&time);
                ring.submitter().submit_with_args(1, &arguments)
            }
        };
        let passes = |error: &io::Error| {
            let passing = [libc::ETIME, libc::EINTR, libc::EBUSY, libc::EAGAIN];
            error
                .raw_os_error()
                .is_some_and(|number| passing.contains(&number))
        };
        match result {
            Err(error) if !passes(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        if !self.cancel_all(DROP_WAIT, |_, _| {}) {
            // The kernel may still write there.
            self.buffers.leak();
            mem::forget(mem::take(&mut self.requests.sends));
        }
    }
}

#[cfg(test)]
mod tests;
