//! A connection to which bytes are brought and from which output is fetched: another party receives
//! and sends.
//!
//! While output is being sent the service is not called; input that comes meanwhile is kept. So
//! there is one send at a time, and a client that does not read is not served.

use std::io;
use std::mem;

use super::{Connection, SCRATCH_BYTES, Station};
use crate::counters::{Operation, add};
use crate::service::{Next, Service};

/// The next need of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// More input.
    Input,
    /// Its output must be fetched.
    Fetch,
    /// Its output must be sent.
    Sent,
    /// Its next turn.
    Turn,
    /// It must be closed.
    End,
}

impl<T> Connection<T> {
    /// Handles received bytes; none is the end.
    pub(crate) fn bring<S: Service<Session = T>>(
        &mut self,
        station: &mut Station<'_, S>,
        bytes: &[u8],
    ) -> Step {
        let counts = station.meter.counts();
        add(&counts.reads, 1);
        add(&counts.read_bytes, bytes.len() as u64);
        self.active = station.second();
        if bytes.is_empty() {
            self.is_ended = true;
        }
        let is_busy = !self.unsent.is_empty() || self.is_lent || self.has_more_to_do;
        let begun = station.meter.begin();
        if is_busy || !self.left.is_empty() {
            self.keep(bytes);
        }
        station.meter.end(Operation::Receive, begun);
        if is_busy {
            return self.step();
        }
        if !self.left.is_empty() {
            return self.go_on(station);
        }
        if bytes.is_empty() {
            return Step::End;
        }
        let seen = bytes.len().min(station.input_bytes_max);
        let (mut next, consumed) = self.serve(station, &bytes[..seen]);
        self.left.append(&bytes[consumed..]);
        if next == Next::More && seen < bytes.len() {
            next = Next::Again;
        }
        self.after(station, next)
    }

    /// Keeps received bytes for later.
    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        if !self.is_closing && !bytes.is_empty() {
            self.left.append(bytes);
            self.has_more_to_do = true;
        }
    }

    /// True if there is work after its output is sent, whether or not something comes.
    pub(crate) fn goes_on_after_sending(&self) -> bool {
        self.has_more_to_do || self.is_closing || self.is_ended
    }

    /// Number of unconsumed bytes.
    pub(crate) fn left_bytes(&self) -> usize {
        self.left.len()
    }

    /// True if no more input will come.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Lends the output, with the offset to send from; it must be put back.
    pub(crate) fn lend(&mut self) -> (Vec<u8>, usize) {
        self.is_lent = true;
        (mem::take(&mut self.unsent), self.sent)
    }

    /// Takes the output back after a send. Returns the buffer when all is sent, and the connection
    /// may continue; none while some is left.
    ///
    /// # Errors
    /// The connection broke.
    pub(crate) fn put_back<S: Service<Session = T>>(
        &mut self,
        station: &Station<'_, S>,
        bytes: Vec<u8>,
        result: io::Result<usize>,
    ) -> io::Result<Option<Vec<u8>>> {
        self.is_lent = false;
        let counts = station.meter.counts();
        add(&counts.writes, 1);
        self.unsent = bytes;
        let count = match result {
            Err(error) if is_passing(&error) => 0,
            result => result?,
        };
        add(&counts.written_bytes, count as u64);
        if count > 0 {
            // A slow reader is not silent.
            self.active = station.second();
        }
        self.sent += count;
        if self.sent < self.unsent.len() {
            add(&counts.stalled, 1);
            return Ok(None);
        }
        self.sent = 0;
        Ok(Some(mem::take(&mut self.unsent)))
    }

    /// Serves kept input, if the state allows.
    pub(crate) fn go_on<S: Service<Session = T>>(&mut self, station: &mut Station<'_, S>) -> Step {
        let step = self.step();
        if step != Step::Turn {
            return step;
        }
        let next = self.serve_left(station);
        self.after(station, next)
    }

    fn after<S: Service<Session = T>>(&mut self, station: &mut Station<'_, S>, next: Next) -> Step {
        self.has_more_to_do = next == Next::Again;
        match next {
            Next::More | Next::Again | Next::Share => {}
            Next::Close => self.is_closing = true,
            Next::Break => return Step::End,
        }
        if !station.output.bytes().is_empty() {
            let begun = station.meter.begin();
            let spare = station.spare.pop().unwrap_or_default();
            self.unsent = mem::replace(station.output.buffer(), spare);
            station.meter.end(Operation::Send, begun);
        }
        self.step()
    }

    /// The connection's present need.
    pub(crate) fn step(&self) -> Step {
        if self.is_lent {
            Step::Sent
        } else if !self.unsent.is_empty() {
            Step::Fetch
        } else if self.is_closing {
            Step::End
        } else if self.has_more_to_do {
            Step::Turn
        } else if self.is_ended {
            Step::End
        } else {
            Step::Input
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    ) || error.raw_os_error() == Some(CANCELED)
}

/// Linux's `ECANCELED`: nothing was sent.
const CANCELED: i32 = 125;
/// Number of buffers that a thread keeps for later output.
const SPARE_MAX: usize = 256;
/// Number of buffers up to which a large one is kept.
const SPARE_LARGE_MAX: usize = 4;

impl<S: Service> Station<'_, S> {
    /// Keeps a buffer for later output, if there is room.
    pub(crate) fn spare(&mut self, mut bytes: Vec<u8>) {
        let most = match bytes.capacity() <= SCRATCH_BYTES {
            true => SPARE_MAX,
            false => SPARE_LARGE_MAX,
        };
        if self.spare.len() < most && bytes.capacity() <= 4 * SCRATCH_BYTES {
            bytes.clear();
            self.spare.push(bytes);
        }
    }
}
