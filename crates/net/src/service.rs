//! The service: the side of a server that knows what bytes mean.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use socket2::Socket;

/// Makes a write to a closed connection return an error instead of a signal: Linux's
/// `MSG_NOSIGNAL`.
pub(crate) const NO_SIGNAL: i32 = 0x4000;
/// Linux's `MSG_DONTWAIT`.
pub(crate) const AT_ONCE: i32 = 0x40;

/// The other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address.
    pub address: Address,
    /// Number of the place it came to: the names given to [`crate::Builder::tcp`] are counted from
    /// 0, in order, and then the paths given to [`crate::Builder::unix`].
    pub place: usize,
}

/// The address of a [`Peer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A network address.
    Tcp(SocketAddr),
    /// A client on this machine.
    Unix,
}

/// The next action for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Waits for more input: the request is incomplete.
    More,
    /// Calls again without new input: there is more to do, but others have waited long enough, or
    /// the output is full. Other connections come first.
    Again,
    /// Sends the output, then closes.
    Close,
    /// Closes at once, dropping unsent output.
    Break,
    /// As [`Next::More`]; and the service gets a second writer of the connection, by
    /// [`Service::share`]. To be returned without output of this call, which may be sent after what
    /// the other writes.
    Share,
}

/// A second writer of a connection, for bytes that answer nothing. The connection stays with its
/// server, which reads, and closes it.
pub struct SecondWriter(Box<dyn WriteAtOnce>);

/// A writer that never waits.
pub trait WriteAtOnce: Send + Sync {
    /// Writes what can go at once. Returns the number of bytes. The next call must begin with the
    /// first byte that is not written, as a part of it may be on its way.
    ///
    /// # Errors
    /// None can go now ([`io::ErrorKind::WouldBlock`]), or the connection is broken.
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;
}

impl WriteAtOnce for Socket {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.send_with_flags(bytes, NO_SIGNAL | AT_ONCE)
    }
}

impl SecondWriter {
    /// Takes a share in a socket.
    pub(crate) fn of(socket: &Socket) -> io::Result<SecondWriter> {
        socket.try_clone().map(SecondWriter::through)
    }

    /// A writer for the service inside of another, which changes the bytes on their way.
    pub fn through(writer: impl WriteAtOnce + 'static) -> SecondWriter {
        SecondWriter(Box::new(writer))
    }
}

impl WriteAtOnce for SecondWriter {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }
}

impl fmt::Debug for SecondWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecondWriter").finish_non_exhaustive()
    }
}

/// The received bytes that are not consumed yet, in one piece.
#[derive(Debug)]
pub struct Input<'a> {
    bytes: &'a [u8],
    consumed: usize,
    is_ended: bool,
}

impl<'a> Input<'a> {
    /// Input for a service without a server of its own: in a test, or inside of another service.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input {
            bytes,
            consumed: 0,
            is_ended: false,
        }
    }

    /// Sets whether the other side sends no more.
    #[inline]
    #[must_use]
    pub fn ending(self, is_ended: bool) -> Input<'a> {
        Input { is_ended, ..self }
    }

    /// All unconsumed bytes.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        &self.bytes[self.consumed..]
    }

    /// Consumes bytes.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        assert!(
            count <= self.bytes.len() - self.consumed,
            "{count} bytes consumed of {}",
            self.bytes.len() - self.consumed
        );
        self.consumed += count;
    }

    /// Number of bytes consumed in this call.
    pub fn consumed(&self) -> usize {
        self.consumed
    }

    /// True if the other side sends no more.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }
}

/// Output to be sent, in order.
#[derive(Debug)]
pub struct Output {
    bytes: Vec<u8>,
    limit: usize,
}

impl Output {
    /// An empty output, full at `limit` bytes.
    pub fn new(limit: usize) -> Output {
        Output {
            bytes: Vec::new(),
            limit,
        }
    }

    /// Adds all bytes, even if the output is full afterwards.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The bytes so far, to be written in place.
    #[inline]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The bytes so far.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// True if a connection has as much output waiting as it may: a service that writes more takes
    /// memory without limit. It should return [`Next::Again`], and is called when this is sent.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= self.limit
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// A server's work for its connections.
///
/// Calls for one session never overlap; those for different sessions do, on different threads.
pub trait Service: Send + Sync + 'static {
    /// State of each serving thread, such as buffers.
    type Worker: 'static;
    /// State of each connection.
    type Session: Send + 'static;

    /// Makes the state of a thread, in that thread; `number` counts from 0. A stopping server makes
    /// one more, for the thread that stops it.
    fn worker(&self, number: usize) -> Self::Worker;

    /// Opens a session for an accepted connection.
    fn open(&self, worker: &mut Self::Worker, peer: &Peer) -> Self::Session;

    /// Serves new input, or continues after [`Next::Again`] once the output is sent. Consumes what
    /// it understands.
    fn serve(
        &self,
        worker: &mut Self::Worker,
        session: &mut Self::Session,
        input: &mut Input<'_>,
        output: &mut Output,
    ) -> Next;

    /// Takes a second writer, after [`Next::Share`]; an error if the system gives none.
    fn share(
        &self,
        _worker: &mut Self::Worker,
        _session: &mut Self::Session,
        _writer: io::Result<SecondWriter>,
    ) {
    }

    /// Handles input of the largest size of which [`Service::serve`] consumed nothing and wants
    /// more. Closes the connection by default.
    fn too_long(
        &self,
        _worker: &mut Self::Worker,
        _session: &mut Self::Session,
        _input: &mut Input<'_>,
        _output: &mut Output,
    ) -> Next {
        Next::Close
    }

    /// True if a request has begun of which nothing is left in the input. A stopping server waits
    /// for its end.
    fn is_amid(&self, _session: &Self::Session) -> bool {
        false
    }

    /// Ends a session.
    fn close(&self, _worker: &mut Self::Worker, _session: Self::Session) {}

    /// Bytes sent to a connection beyond the limit before it is closed.
    fn refusal(&self) -> &[u8] {
        b""
    }

    /// Called about once a second, by one thread.
    fn tick(&self) {}
}

impl Service for () {
    type Worker = ();
    type Session = ();

    fn worker(&self, _: usize) {}

    fn open(&self, (): &mut (), _: &Peer) {}

    /// Consumes everything and says nothing.
    fn serve(&self, (): &mut (), (): &mut (), input: &mut Input<'_>, _: &mut Output) -> Next {
        input.consume(input.bytes().len());
        Next::More
    }
}
