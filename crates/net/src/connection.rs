//! A connection, and its handling of events: the same under every pattern.

pub(crate) mod left;
pub(crate) mod pushed;

use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

use hearth_sys::descriptor::is_readable;
use hearth_sys::epoll::Readiness;
use socket2::Socket;

use self::left::Left;
use crate::counters::{Meter, Operation, add};
use crate::options::Builder;
pub(crate) use crate::service::NO_SIGNAL;
use crate::service::{AT_ONCE, Input, Next, Output, Peer, SecondWriter, Service};

/// Size of a read.
const SCRATCH_BYTES: usize = 64 << 10;
/// Reads of a connection before others have their turn.
const TURNS: usize = 16;
/// Bytes after the last request that are read and discarded before a connection is closed.
const DISCARD_BYTES_MAX: usize = 1 << 20;

/// State reported by an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    pub(crate) can_read: bool,
    pub(crate) can_write: bool,
    pub(crate) is_ended: bool,
}

impl Flags {
    /// Possibly readable.
    pub(crate) const READ: Flags = Flags {
        can_read: true,
        can_write: false,
        is_ended: false,
    };

    pub(crate) fn bits(self) -> u32 {
        u32::from(self.can_read) | u32::from(self.can_write) << 1 | u32::from(self.is_ended) << 2
    }

    pub(crate) fn from_bits(bits: u32) -> Flags {
        Flags {
            can_read: bits & 1 != 0,
            can_write: bits & 2 != 0,
            is_ended: bits & 4 != 0,
        }
    }
}

impl From<Readiness> for Flags {
    fn from(ready: Readiness) -> Flags {
        Flags {
            can_read: ready.can_read,
            can_write: ready.can_write,
            is_ended: ready.is_ended,
        }
    }
}

/// The event that a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// For input.
    ToRead,
    /// For room to write; nothing is read meanwhile.
    ToWrite,
    /// For its next turn.
    ForTurn,
    /// For nothing: it is to be closed.
    ForEver,
}

enum Entry<T> {
    New(Peer),
    Open(T),
}

/// A connection. One thread at a time has it.
pub(crate) struct Connection<T> {
    pub(crate) socket: Socket,
    entry: Entry<T>,
    /// Input not consumed.
    left: Left,
    /// Output not sent, from `sent` on.
    unsent: Vec<u8>,
    sent: usize,
    may_read: bool,
    is_ended: bool,
    has_more_to_do: bool,
    is_closing: bool,
    /// Queued for its next turn, where threads queue their own connections.
    pub(crate) has_turn: bool,
    /// The unsent output is with the sender.
    is_lent: bool,
    /// Recent work for it, in ticks; if that is measured.
    pub(crate) worked: u64,
    /// The event that its poller waits for; [`Waits::ToRead`] or [`Waits::ToWrite`].
    pub(crate) armed: Waits,
    /// Second of its last activity.
    pub(crate) active: u32,
}

/// A serving thread's equipment: its part of the service, buffers, its desk.
pub(crate) struct Station<'a, S: Service> {
    pub(crate) service: &'a S,
    pub(crate) worker: S::Worker,
    pub(crate) meter: Meter<'a>,
    second: &'a AtomicU32,
    scratch: Vec<u8>,
    output: Output,
    /// Buffers for more output.
    spare: Vec<Vec<u8>>,
    input_bytes_max: usize,
}

impl<'a, S: Service> Station<'a, S> {
    pub(crate) fn new(
        service: &'a S,
        number: usize,
        meter: Meter<'a>,
        second: &'a AtomicU32,
        options: &Builder,
    ) -> Station<'a, S> {
        Station {
            service,
            worker: service.worker(number),
            meter,
            second,
            scratch: vec![0; SCRATCH_BYTES.min(options.input_bytes_max)],
            output: Output::new(options.output_bytes_max),
            spare: Vec::new(),
            input_bytes_max: options.input_bytes_max,
        }
    }

    /// The present second, roughly.
    pub(crate) fn second(&self) -> u32 {
        self.second.load(Ordering::Relaxed)
    }

    pub(crate) fn close(&mut self, connection: Connection<S::Session>) {
        add(&self.meter.counts().closed, 1);
        if connection.is_closing {
            part(&connection.socket);
        }
        if let Entry::Open(session) = connection.entry {
            let (service, worker) = (self.service, &mut self.worker);
            let closed = catch_unwind(AssertUnwindSafe(|| service.close(worker, session)));
            if closed.is_err() {
                add(&self.meter.counts().panicked, 1);
            }
        }
    }
}

impl<T> Connection<T> {
    pub(crate) fn new(socket: Socket, peer: Peer, second: u32) -> Connection<T> {
        Connection {
            socket,
            entry: Entry::New(peer),
            left: Left::default(),
            unsent: Vec::new(),
            sent: 0,
            may_read: false,
            is_ended: false,
            has_more_to_do: false,
            is_closing: false,
            has_turn: false,
            is_lent: false,
            worked: 0,
            armed: Waits::ToRead,
            active: second,
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Prepares the connection for another thread; no other thread may use it.
    pub(crate) fn travel(&mut self) {
        if self.may_read {
            // The end comes after pending input: the next thread that waits is notified again.
            self.is_ended = false;
        }
        self.armed = Waits::ToRead;
        self.has_turn = false;
    }

    /// True if it waits for input, and some has come that no thread has looked at: it is not
    /// silent.
    pub(crate) fn is_kept_waiting(&self) -> bool {
        self.armed == Waits::ToRead && is_readable(self.socket.as_raw_fd())
    }

    /// Records an event for its next turn.
    pub(crate) fn hear(&mut self, flags: Flags) {
        self.may_read |= flags.can_read;
        self.is_ended |= flags.is_ended;
    }

    /// True if no thread has looked at it yet.
    pub(crate) fn is_new(&self) -> bool {
        matches!(self.entry, Entry::New(_))
    }

    /// True if there is work whether or not something comes.
    pub(crate) fn has_more_to_do(&self) -> bool {
        self.has_more_to_do || !self.unsent.is_empty() || self.is_closing || self.may_read
    }

    /// True if no request is incomplete and nothing is unsent.
    pub(crate) fn is_idle<S: Service<Session = T>>(&self, service: &S) -> bool {
        let is_amid = match &self.entry {
            Entry::New(_) => false,
            Entry::Open(session) => service.is_amid(session),
        };
        self.left.is_empty() && self.unsent.is_empty() && !self.has_more_to_do && !is_amid
    }

    /// Reads, serves and writes until there is nothing more to do now.
    pub(crate) fn drive<S: Service<Session = T>>(
        &mut self,
        station: &mut Station<'_, S>,
        flags: Flags,
    ) -> Waits {
        self.hear(flags);
        self.active = station.second();
        for _ in 0..TURNS {
            if !self.unsent.is_empty() {
                match self.flush(station) {
                    Ok(true) => {}
                    // A connection to be closed is closed when all is sent, no sooner.
                    Ok(false) => return Waits::ToWrite,
                    Err(_) => return Waits::ForEver,
                }
            }
            if self.is_closing {
                return Waits::ForEver;
            }
            let next = if self.has_more_to_do {
                self.serve_left(station)
            } else if self.may_read {
                match self.read(station) {
                    Some(next) => next,
                    None => return Waits::ForEver,
                }
            } else {
                return Waits::ToRead;
            };
            self.has_more_to_do = next == Next::Again;
            match next {
                Next::More | Next::Again | Next::Share => {}
                Next::Close => self.is_closing = true,
                Next::Break => return Waits::ForEver,
            }
            if !station.output.bytes().is_empty() && !self.send(station) {
                return Waits::ForEver;
            }
        }
        Waits::ForTurn
    }

    /// Reads once and serves the input. None at the end of the connection.
    fn read<S: Service<Session = T>>(&mut self, station: &mut Station<'_, S>) -> Option<Next> {
        let begun = station.meter.begin();
        let old = self.left.len();
        // Into the thread's buffer, whatever is left over: room behind that would have to be zeroed
        // first, for each byte of a client that sends single bytes.
        let asked = station.scratch.len().min(station.input_bytes_max - old);
        let result = (&self.socket).read(&mut station.scratch[..asked]);
        if old > 0
            && let Ok(count) = result
        {
            self.left.append(&station.scratch[..count]);
        }
        station.meter.end(Operation::Receive, begun);
        let counts = station.meter.counts();
        add(&counts.reads, 1);
        let count = match result {
            Ok(0) => return None,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.may_read = false;
                // The event was about the connection that had this place before.
                self.is_ended = false;
                return Some(Next::More);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Some(Next::More),
            Err(_) => return None,
        };
        add(&counts.read_bytes, count as u64);
        // A short read leaves nothing behind; later input is an event of its own, except for an end
        // that was reported already.
        self.may_read = count == asked || self.is_ended;
        Some(if old == 0 {
            let scratch = std::mem::take(&mut station.scratch);
            let (next, consumed) = self.serve(station, &scratch[..count]);
            self.left.append(&scratch[consumed..count]);
            station.scratch = scratch;
            next
        } else {
            self.serve_left(station)
        })
    }

    fn serve_left<S: Service<Session = T>>(&mut self, station: &mut Station<'_, S>) -> Next {
        // While the service looks at it, it cannot be the connection's.
        let mut left = std::mem::take(&mut self.left);
        let seen = left.len().min(station.input_bytes_max);
        let (next, consumed) = self.serve(station, &left.bytes()[..seen]);
        let is_all = seen == left.len();
        left.consume(consumed);
        self.left = left;
        if next == Next::More && !is_all {
            return Next::Again;
        }
        next
    }

    fn serve<S: Service<Session = T>>(
        &mut self,
        station: &mut Station<'_, S>,
        bytes: &[u8],
    ) -> (Next, usize) {
        let begun = station.meter.begin();
        // A panicking service harms this connection only.
        let served = catch_unwind(AssertUnwindSafe(|| self.call(station, bytes)));
        let (next, consumed) = served.unwrap_or_else(|_| {
            add(&station.meter.counts().panicked, 1);
            (Next::Break, 0)
        });
        // The call may have lasted long, and the connection was not silent meanwhile.
        self.active = station.second();
        if next == Next::Break {
            // The output is the thread's: drop what this connection is not sent.
            station.output.clear();
        }
        station.meter.end(Operation::Serve, begun);
        (next, consumed)
    }

    #[inline]
    fn call<S: Service<Session = T>>(
        &mut self,
        station: &mut Station<'_, S>,
        bytes: &[u8],
    ) -> (Next, usize) {
        if let Entry::New(peer) = &self.entry {
            self.entry = Entry::Open(station.service.open(&mut station.worker, peer));
        }
        let Entry::Open(session) = &mut self.entry else {
            return (Next::Break, 0);
        };
        let mut input = Input::new(bytes).ending(self.is_ended);
        let (worker, output) = (&mut station.worker, &mut station.output);
        let mut next = station.service.serve(worker, session, &mut input, output);
        let is_stuck = next == Next::More && input.consumed() == 0;
        if is_stuck && bytes.len() >= station.input_bytes_max {
            next = station
                .service
                .too_long(worker, session, &mut input, output);
            if next == Next::More && input.consumed() == 0 {
                next = Next::Close;
            }
        }
        if next == Next::Share {
            let writer = SecondWriter::of(&self.socket);
            station.service.share(worker, session, writer);
            next = Next::More;
        }
        (next, input.consumed())
    }

    /// Sends the output and keeps what does not go at once. False if the connection is broken.
    fn send<S: Service<Session = T>>(&mut self, station: &mut Station<'_, S>) -> bool {
        let Station { meter, output, .. } = station;
        let result = write(&self.socket, output.bytes(), meter);
        let is_whole = match result {
            Ok(count) => {
                if count < output.bytes().len() {
                    self.unsent.extend_from_slice(&output.bytes()[count..]);
                    self.sent = 0;
                }
                true
            }
            Err(_) => false,
        };
        output.clear();
        if output.buffer().capacity() > 4 * SCRATCH_BYTES {
            *output.buffer() = Vec::new();
        }
        is_whole
    }

    /// Sends what was kept. False if some is still left.
    fn flush<S: Service<Session = T>>(&mut self, station: &Station<'_, S>) -> io::Result<bool> {
        self.sent += write(&self.socket, &self.unsent[self.sent..], &station.meter)?;
        if self.sent < self.unsent.len() {
            add(&station.meter.counts().stalled, 1);
            return Ok(false);
        }
        self.unsent = Vec::new();
        self.sent = 0;
        Ok(true)
    }
}

/// Ends a connection whose other side may still be sending: the system discards sent but
/// undelivered bytes when it closes a connection with something unread.
pub(crate) fn part(socket: &Socket) {
    // At worst it is gone already.
    let _ = socket.shutdown(Shutdown::Write);
    let mut bytes = [const { MaybeUninit::<u8>::uninit() }; 4096];
    let mut read = 0;
    while read < DISCARD_BYTES_MAX {
        match socket.recv_with_flags(&mut bytes, AT_ONCE) {
            Ok(0) | Err(_) => return,
            Ok(count) => read += count,
        }
    }
}

/// Writes once. Returns the number of bytes sent; 0 if none can go now.
fn write(socket: &Socket, bytes: &[u8], meter: &Meter<'_>) -> io::Result<usize> {
    let begun = meter.begin();
    let result = socket.send_with_flags(bytes, NO_SIGNAL);
    meter.end(Operation::Send, begun);
    add(&meter.counts().writes, 1);
    match result {
        Ok(count) => {
            add(&meter.counts().written_bytes, count as u64);
            Ok(count)
        }
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
            ) =>
        {
            Ok(0)
        }
        Err(error) => Err(error),
    }
}
