//! What a server is for: the side that knows what bytes mean.

use std::net::SocketAddr;

/// Who is at the other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Of the network.
    Tcp(SocketAddr),
    /// Of this machine.
    Unix,
}

/// What the server does with a connection next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Waits for more input: what is there is no whole request.
    More,
    /// Calls again, though nothing new has come: there is more to do with the input at hand, but others have waited long
    /// enough, or the output is full. Other connections come first.
    Again,
    /// Sends what was written, then closes.
    Close,
    /// Closes at once; what is not sent yet is lost.
    Break,
}

/// The bytes that have come and are not consumed yet, in one piece.
#[derive(Debug)]
pub struct Input<'a> {
    bytes: &'a [u8],
    consumed: usize,
    is_ended: bool,
}

impl<'a> Input<'a> {
    /// Input for a test of a service, without a server.
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input {
            bytes,
            consumed: 0,
            is_ended: false,
        }
    }

    /// All that is there.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        &self.bytes[self.consumed..]
    }

    /// So many bytes are done with.
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

    /// How many bytes were consumed in this call.
    pub fn consumed(&self) -> usize {
        self.consumed
    }

    /// No more will come: the other side writes no more.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }
}

/// What is to be sent, in order.
#[derive(Debug)]
pub struct Output {
    bytes: Vec<u8>,
    limit: usize,
}

impl Output {
    /// An empty one, full at so many bytes.
    pub fn new(limit: usize) -> Output {
        Output {
            bytes: Vec::new(),
            limit,
        }
    }

    /// Adds bytes; all of them, though it may be full afterwards.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The bytes so far, for those who write in place.
    #[inline]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The bytes so far.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// As much is here as a connection may have waiting: a service that goes on nevertheless takes memory as it likes.
    /// It returns [`Next::Again`] and is called when this is sent.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= self.limit
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// What a server does for its connections.
///
/// Calls for one session never overlap; those for different sessions do, on different threads.
pub trait Service: Send + Sync + 'static {
    /// What each thread that serves has to itself, such as buffers.
    type Worker: 'static;
    /// What each connection has to itself.
    type Session: Send + 'static;

    /// Made by each thread when it begins; `number` counts from 0. One more is made when a server stops, for the thread
    /// that stops it.
    fn worker(&self, number: usize) -> Self::Worker;

    /// A connection was accepted.
    fn open(&self, worker: &mut Self::Worker, peer: &Peer) -> Self::Session;

    /// Something has come, or [`Next::Again`] was answered and the output is sent. Consumes what it understands.
    fn serve(
        &self,
        worker: &mut Self::Worker,
        session: &mut Self::Session,
        input: &mut Input<'_>,
        output: &mut Output,
    ) -> Next;

    /// The input is as long as it may be, and [`Service::serve`] consumed none of it and wants more. By default the
    /// connection is closed.
    fn too_long(
        &self,
        _worker: &mut Self::Worker,
        _session: &mut Self::Session,
        _input: &mut Input<'_>,
        _output: &mut Output,
    ) -> Next {
        Next::Close
    }

    /// Is a request begun of which nothing is left in the input? A server that stops waits for its end.
    fn is_amid(&self, _session: &Self::Session) -> bool {
        false
    }

    /// The connection is gone.
    fn close(&self, _worker: &mut Self::Worker, _session: Self::Session) {}

    /// What a connection beyond the limit is told before it is closed.
    fn refusal(&self) -> &[u8] {
        b""
    }

    /// Called about once a second, by one thread.
    fn tick(&self) {}
}

pub(crate) fn input(bytes: &[u8], is_ended: bool) -> Input<'_> {
    Input {
        bytes,
        consumed: 0,
        is_ended,
    }
}
