//! A connection and the requests under way on it.

use std::collections::VecDeque;
use std::io::{self, Write};

use crate::target::Stream;
use crate::wire::Kind;

/// A request under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    pub(crate) key: u64,
    /// Time at which it was due.
    pub(crate) meant_ns: u64,
    /// Latest moment at which it was made.
    pub(crate) made_ns: u64,
    /// The version that a write writes, or how new the answer to a read has to be.
    pub(crate) note: u64,
}

/// One connection. Requests are answered in order.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// None while the connection is broken.
    pub(crate) stream: Option<Stream>,
    pub(crate) pending: VecDeque<Request>,
    /// Requests to send; those not written yet begin at `written`.
    pub(crate) out: Vec<u8>,
    pub(crate) written: usize,
    /// The beginning of an incomplete reply, and how many bytes it needs at least.
    pub(crate) rest: Vec<u8>,
    pub(crate) needed: usize,
    /// The connection is watched for room to write.
    pub(crate) asks_to_write: bool,
    /// The connection is in the pool, or in the queue of due times, of an open loop.
    pub(crate) is_waiting: bool,
    /// Since when the connection could have made another request.
    pub(crate) free_ns: u64,
}

/// Result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    All,
    /// The system takes no more now.
    Part,
}

impl Line {
    pub(crate) fn on(stream: Stream) -> Line {
        Line {
            stream: Some(stream),
            ..Line::default()
        }
    }

    /// Writes all pending bytes, in one system call if the system takes them all. Returns how many
    /// it took.
    pub(crate) fn flush(&mut self) -> io::Result<(Written, usize)> {
        let from = self.written;
        let Some(stream) = &mut self.stream else {
            return Ok((Written::All, 0));
        };
        while self.written < self.out.len() {
            match stream.write(&self.out[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok((Written::Part, self.written - from));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let count = self.written - from;
        self.out.clear();
        self.written = 0;
        Ok((Written::All, count))
    }

    /// Drops all state of a broken connection. Returns the requests that were under way.
    pub(crate) fn abandon(&mut self) -> VecDeque<Request> {
        self.stream = None;
        self.out.clear();
        self.written = 0;
        self.rest.clear();
        self.needed = 0;
        self.asks_to_write = false;
        std::mem::take(&mut self.pending)
    }
}
