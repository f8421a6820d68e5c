//! Requests and completions by rings shared with the kernel: `io_uring`, as servers use it.
//!
//! A receive is asked for once and goes on until it is cancelled or ends; what comes is in buffers that the
//! kernel chose from those of the ring, and is lent during one call. What is to be sent belongs to the ring until the kernel is done with it. All requests go
//! with the call that waits, so a server does one system call for as much as has come.
//!
//! Buffers, and the bytes of sends, must outlive what the kernel does with them. A ring that is dropped cancels
//! everything and waits for the completions; if they do not come, it leaks the memory instead of freeing it.

use std::collections::VecDeque;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use io_uring::types::{BufRingEntry, CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

/// The group of the ring's buffers.
const GROUP: u16 = 0;
/// What a request is, in the lowest bits of what the kernel gives back with its completion.
const KIND_BITS: u32 = 2;
const RECEIVE: u64 = 0;
const SEND: u64 = 1;
const POLL: u64 = 2;
const CANCEL: u64 = 3;
/// Linux's `MSG_NOSIGNAL`.
const NO_SIGNAL: i32 = libc::MSG_NOSIGNAL;
/// How long a ring that is dropped waits for the kernel.
const DROP_WAIT: Duration = Duration::from_secs(1);

/// What has happened.
#[derive(Debug)]
pub enum Done<'a> {
    /// Bytes have come; none is the end.
    Received {
        /// Of the receive.
        key: u64,
        /// For this call only.
        bytes: &'a [u8],
        /// More will be told without being asked for.
        goes_on: bool,
    },
    /// A receive is over: cancelled, broken, or out of buffers (`ENOBUFS`), and then it may be asked for again.
    Ended {
        /// Of the receive.
        key: u64,
        /// Why.
        error: io::Error,
    },
    /// The kernel is done with a send.
    Sent {
        /// Of the send.
        key: u64,
        /// As they were given.
        bytes: Vec<u8>,
        /// How many of them went.
        result: io::Result<usize>,
    },
    /// A descriptor that is polled can be read.
    Readable {
        /// Of the poll.
        key: u64,
        /// It will be told again.
        goes_on: bool,
    },
}

/// Rings, and buffers for what comes. Stays in the thread that made it.
pub struct Uring {
    requests: Requests,
    buffers: Buffers,
    completions: VecDeque<cqueue::Entry>,
}

/// Where requests are made.
pub struct Requests {
    ring: IoUring,
    /// What is being sent: the key and the bytes.
    sends: Vec<Option<(u64, Vec<u8>)>>,
    free: Vec<usize>,
    /// Requests of which a completion will come.
    open: usize,
    /// The kernel takes requests of one thread.
    _of_one_thread: PhantomData<*const ()>,
}

/// Memory for what comes, and the ring by which the kernel gets it.
struct Buffers {
    memory: Box<[u8]>,
    bytes_each: usize,
    entries: *mut BufRingEntry,
    count: u16,
    tail: u16,
}

/// May this process use it? Some systems do not have it or switch it off.
///
/// # Errors
/// The kernel is too old, or `kernel.io_uring_disabled` or a filter forbids it.
pub fn is_there() -> io::Result<()> {
    Uring::new(8, 8, 64).map(drop)
}

impl Uring {
    /// Rings for at least so many requests at once, and `buffers` buffers, a power of two of at most 32,768, of `bytes` each.
    ///
    /// # Errors
    /// The kernel has no such thing (it needs 6.1), forbids it, or has no memory.
    ///
    /// # Panics
    /// If the number of buffers is none of those.
    pub fn new(requests: u32, buffers: u16, bytes: usize) -> io::Result<Uring> {
        assert!(
            buffers.is_power_of_two() && buffers <= 1 << 15,
            "{buffers} buffers"
        );
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_cqsize(requests.max(8) * 4)
            .build(requests.max(8))?;
        let buffers = Buffers::new(buffers, bytes)?;
        // SAFETY: the entries are zeroed pages of the length said, and live until after the ring is closed, or for
        // ever: see `drop`.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(
                buffers.entries as u64,
                buffers.count,
                GROUP,
                0,
            )?;
        }
        Ok(Uring {
            requests: Requests {
                ring,
                sends: Vec::new(),
                free: Vec::new(),
                open: 0,
                _of_one_thread: PhantomData,
            },
            buffers,
            completions: VecDeque::new(),
        })
    }

    /// Where requests are made.
    pub fn requests(&mut self) -> &mut Requests {
        &mut self.requests
    }

    /// Hands in what was asked for, waits until something has happened or so much time has passed, for ever if
    /// none is given, and tells all that has; each call may ask for more.
    ///
    /// # Errors
    /// The kernel's: not that time has passed or a signal came.
    pub fn wait(
        &mut self,
        time: Option<Duration>,
        mut each: impl FnMut(&mut Requests, Done<'_>),
    ) -> io::Result<()> {
        self.requests.submit(time)?;
        self.completions.extend(self.requests.ring.completion());
        while let Some(entry) = self.completions.pop_front() {
            self.tell(&entry, &mut each);
        }
        Ok(())
    }

    fn tell(&mut self, entry: &cqueue::Entry, each: &mut impl FnMut(&mut Requests, Done<'_>)) {
        let goes_on = cqueue::more(entry.flags());
        if !goes_on {
            self.requests.open -= 1;
        }
        let key = entry.user_data() >> KIND_BITS;
        match entry.user_data() & ((1 << KIND_BITS) - 1) {
            RECEIVE => {
                let buffer = cqueue::buffer_select(entry.flags());
                let done = match usize::try_from(entry.result()) {
                    Ok(count) => Done::Received {
                        key,
                        bytes: buffer.map_or(&[], |buffer| self.buffers.filled(buffer, count)),
                        goes_on,
                    },
                    Err(_) => Done::Ended {
                        key,
                        error: io::Error::from_raw_os_error(-entry.result()),
                    },
                };
                each(&mut self.requests, done);
                if let Some(buffer) = buffer {
                    self.buffers.give(buffer);
                }
            }
            SEND => {
                let place = key as usize;
                let Some((key, bytes)) = self.requests.sends[place].take() else {
                    return;
                };
                self.requests.free.push(place);
                let result = usize::try_from(entry.result())
                    .map_err(|_| io::Error::from_raw_os_error(-entry.result()));
                each(&mut self.requests, Done::Sent { key, bytes, result });
            }
            POLL => each(&mut self.requests, Done::Readable { key, goes_on }),
            _ => {}
        }
    }
}

impl Requests {
    /// Receives from a socket until that is cancelled or ends. The key has 62 bits.
    pub fn receive(&mut self, from: BorrowedFd<'_>, key: u64) {
        let request = opcode::RecvMulti::new(Fd(from.as_raw_fd()), GROUP).build();
        // SAFETY: its buffers are the ring's. A descriptor that is closed meanwhile stays open in the kernel.
        unsafe { self.push(request, key, RECEIVE) };
    }

    /// Tells whenever a descriptor can be read.
    pub fn poll(&mut self, of: BorrowedFd<'_>, key: u64) {
        let request = opcode::PollAdd::new(Fd(of.as_raw_fd()), libc::POLLIN as u32)
            .multi(true)
            .build();
        // SAFETY: no memory is given.
        unsafe { self.push(request, key, POLL) };
    }

    /// Sends bytes, from `from` on, as many as go at once. Two sends of one socket at a time may go in any order.
    ///
    /// # Panics
    /// If there are not so many bytes.
    pub fn send(&mut self, to: BorrowedFd<'_>, key: u64, bytes: Vec<u8>, from: usize) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.sends.push(None);
            self.sends.len() - 1
        });
        let (_, bytes) = self.sends[place].insert((key, bytes));
        let rest = &bytes[from..];
        let length = u32::try_from(rest.len()).unwrap_or(u32::MAX);
        let request = opcode::Send::new(Fd(to.as_raw_fd()), rest.as_ptr(), length)
            .flags(NO_SIGNAL)
            .build();
        // SAFETY: the bytes are on the heap, and stay in `sends` as they are until the completion.
        unsafe { self.push(request, place as u64, SEND) };
    }

    /// Ends all receives and polls with a key; each is told as ended, or its last bytes are told as such.
    pub fn cancel(&mut self, key: u64) {
        for kind in [RECEIVE, POLL] {
            let what = CancelBuilder::user_data(key << KIND_BITS | kind).all();
            let request = opcode::AsyncCancel2::new(what).build();
            // SAFETY: no memory is given.
            unsafe { self.push(request, 0, CANCEL) };
        }
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
            // Full: what is there goes first. That fails only if the kernel lacks memory for a moment.
            let _ = self.ring.submit();
        }
    }

    fn submit(&mut self, time: Option<Duration>) -> io::Result<()> {
        let result = match time {
            None => self.ring.submit_and_wait(1),
            Some(time) => {
                let time = Timespec::new()
                    .sec(time.as_secs())
                    .nsec(time.subsec_nanos());
                let submitter = self.ring.submitter();
                submitter.submit_with_args(1, &SubmitArgs::new().timespec(&time))
            }
        };
        match result {
            Ok(_) => Ok(()),
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN)
                ) =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        let everything = opcode::AsyncCancel2::new(CancelBuilder::any().all()).build();
        // SAFETY: no memory is given.
        unsafe { self.requests.push(everything, 0, CANCEL) };
        let begun = std::time::Instant::now();
        while self.requests.open > 0 && begun.elapsed() < DROP_WAIT {
            if self
                .wait(Some(Duration::from_millis(10)), |_, _| {})
                .is_err()
            {
                break;
            }
        }
        if self.requests.open > 0 {
            // The kernel may still write there.
            std::mem::forget(std::mem::take(&mut self.buffers.memory));
            std::mem::forget(std::mem::take(&mut self.requests.sends));
            self.buffers.entries = ptr::null_mut();
        }
    }
}

impl Buffers {
    fn new(count: u16, bytes_each: usize) -> io::Result<Buffers> {
        // SAFETY: fresh pages, at no address in particular.
        let entries = unsafe {
            libc::mmap(
                ptr::null_mut(),
                usize::from(count) * size_of::<BufRingEntry>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if entries == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mut buffers = Buffers {
            memory: vec![0; usize::from(count) * bytes_each].into_boxed_slice(),
            bytes_each,
            entries: entries.cast(),
            count,
            tail: 0,
        };
        (0..count).for_each(|number| buffers.give(number));
        Ok(buffers)
    }

    /// What is in a buffer that the kernel has filled and that was not given back.
    fn filled(&self, number: u16, count: usize) -> &[u8] {
        let begin = usize::from(number) * self.bytes_each;
        &self.memory[begin..begin + count]
    }

    /// The kernel may fill a buffer again.
    fn give(&mut self, number: u16) {
        let begin = usize::from(number) * self.bytes_each;
        let address = self.memory[begin..begin + self.bytes_each].as_mut_ptr();
        // SAFETY: the ring has as many entries as there are buffers, so this one is free.
        let entry = unsafe { &mut *self.entries.add(usize::from(self.tail & (self.count - 1))) };
        entry.set_addr(address as u64);
        entry.set_len(self.bytes_each as u32);
        entry.set_bid(number);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail is in the first entry, where only we write and the kernel reads; aligned, and shared as an
        // atomic from here on.
        let tail = unsafe {
            let tail = BufRingEntry::tail(self.entries);
            AtomicU16::from_ptr(tail.cast_mut())
        };
        // Released: the kernel, which acquires it, sees the entry.
        tail.store(self.tail, Ordering::Release);
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        if !self.entries.is_null() {
            // SAFETY: mapped in `new` with this length, and the kernel is done with it.
            unsafe {
                libc::munmap(
                    self.entries.cast(),
                    usize::from(self.count) * size_of::<BufRingEntry>(),
                )
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    /// Nothing where the kernel has none: that is said elsewhere.
    fn ring() -> Option<Uring> {
        Uring::new(8, 8, 64).ok()
    }

    fn look(ring: &mut Uring, mut each: impl FnMut(&mut Requests, Done<'_>)) {
        let mut count = 0;
        while count == 0 {
            ring.wait(None, |requests, done| {
                count += 1;
                each(requests, done);
            })
            .unwrap();
        }
    }

    #[test]
    fn one_receive_tells_all_that_comes() {
        let Some(mut ring) = ring() else { return };
        let (near, mut far) = UnixStream::pair().unwrap();
        ring.requests().receive(near.as_fd(), 5);
        // More than all buffers together, so they are given back.
        for round in 0..40u8 {
            far.write_all(&[round; 50]).unwrap();
            look(&mut ring, |_, done| match done {
                Done::Received {
                    key: 5,
                    bytes,
                    goes_on: true,
                } => assert_eq!(bytes, [round; 50]),
                other => panic!("{other:?}"),
            });
        }
        drop(far);
        look(&mut ring, |_, done| {
            assert!(
                matches!(done, Done::Received { bytes: &[], .. }),
                "{done:?}"
            );
        });
    }

    #[test]
    fn what_is_sent_goes_with_the_wait_and_comes_back() {
        let Some(mut ring) = ring() else { return };
        let (near, mut far) = UnixStream::pair().unwrap();
        for round in 0..20 {
            ring.requests()
                .send(near.as_fd(), round, b"xhello".to_vec(), 1);
            look(&mut ring, |_, done| match done {
                Done::Sent { key, bytes, result } => {
                    assert_eq!(
                        (key, bytes.as_slice(), result.unwrap()),
                        (round, &b"xhello"[..], 5)
                    );
                }
                other => panic!("{other:?}"),
            });
            let mut found = [0; 5];
            far.read_exact(&mut found).unwrap();
            assert_eq!(&found, b"hello");
        }
    }

    #[test]
    fn without_buffers_a_receive_ends_and_may_be_asked_for_again() {
        let Some(mut ring) = ring() else { return };
        let (near, mut far) = UnixStream::pair().unwrap();
        ring.requests().receive(near.as_fd(), 1);
        far.write_all(&[7; 64 * 20]).unwrap();
        let mut count = 0;
        while count < 64 * 20 {
            look(&mut ring, |requests, done| match done {
                Done::Received { bytes, goes_on, .. } => {
                    count += bytes.len();
                    if !goes_on {
                        requests.receive(near.as_fd(), 1);
                    }
                }
                Done::Ended { key: 1, error } => {
                    assert_eq!(error.raw_os_error(), Some(libc::ENOBUFS));
                    requests.receive(near.as_fd(), 1);
                }
                other => panic!("{other:?}"),
            });
        }
    }

    #[test]
    fn a_cancelled_receive_is_told_and_a_dropped_ring_ends_what_is_open() {
        let Some(mut ring) = ring() else { return };
        let (near, mut far) = UnixStream::pair().unwrap();
        ring.requests().receive(near.as_fd(), 1);
        ring.requests().poll(near.as_fd(), 2);
        ring.wait(Some(Duration::ZERO), |_, _| {}).unwrap();
        ring.requests().cancel(1);
        look(&mut ring, |_, done| match done {
            Done::Ended { key: 1, error } => {
                assert_eq!(error.raw_os_error(), Some(libc::ECANCELED));
            }
            other => panic!("{other:?}"),
        });
        far.write_all(b"a").unwrap();
        look(&mut ring, |_, done| {
            assert!(matches!(
                done,
                Done::Readable {
                    key: 2,
                    goes_on: true
                }
            ));
        });
        let begun = std::time::Instant::now();
        drop(ring);
        assert!(begun.elapsed() < DROP_WAIT);
    }
}
