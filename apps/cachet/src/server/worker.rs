//! A worker: its connections, and one look after the other at which of them can go on.
//!
//! One request on one connection is one wait, one read and one write: a socket stays armed, a short read is the
//! last, and what is answered goes out at once. Bytes are read into the worker's buffer; a connection has memory
//! of its own only for what it waits for the rest of, and for what its client does not take.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hearth_sys::ready::{Interest, Readiness, Ready};

use super::about::Server;
use super::stream::Stream;
use crate::protocol::{About, Session, Then};
use crate::store::Worker;

/// One look tells so many connections.
const REPORTS: usize = 256;
/// One read takes so much.
const READ: usize = 64 << 10;
/// One connection may read so often before others come to their turn.
const READS: usize = 4;
/// The key of the inbox among the connections' numbers.
const INBOX: u64 = u64::MAX;
/// A buffer for answers that has become larger is given back.
const OUT_KEPT: usize = 1 << 20;

/// New connections for a worker, and a bell.
#[derive(Debug)]
pub(super) struct Inbox {
    new: Mutex<Vec<(Stream, u64)>>,
    is_rung: AtomicBool,
    bell: UnixStream,
    ear: UnixStream,
}

impl Inbox {
    pub(super) fn new() -> io::Result<Inbox> {
        let (bell, ear) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        ear.set_nonblocking(true)?;
        Ok(Inbox {
            new: Mutex::default(),
            is_rung: AtomicBool::new(false),
            bell,
            ear,
        })
    }

    pub(super) fn give(&self, stream: Stream, id: u64) {
        self.new
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((stream, id));
        self.ring();
    }

    pub(super) fn ring(&self) {
        // One byte is enough until it is taken. SeqCst, as in `take`: either this sees that the bell was heard and rings
        // again, or who hears it sees what was given before.
        if !self.is_rung.swap(true, Ordering::SeqCst) {
            // It holds one byte at most, so there is room.
            let _ = (&self.bell).write(&[1]);
        }
    }

    fn take(&self) -> Vec<(Stream, u64)> {
        let _ = (&self.ear).read(&mut [0; 8]);
        self.is_rung.store(false, Ordering::SeqCst);
        std::mem::take(&mut *self.new.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug)]
struct Connection {
    stream: Stream,
    session: Session,
    id: u64,
    /// What has come and waits for the rest.
    rest: Vec<u8>,
    /// What the client has not taken yet, from `sent` on.
    unsent: Vec<u8>,
    sent: usize,
    /// Nothing more is served.
    ends: bool,
    used: u32,
}

struct Loop<'a> {
    server: &'a Server,
    inbox: &'a Inbox,
    worker: Worker,
    ready: Ready,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Those with more to do than they might at once.
    again: Vec<usize>,
    input: Vec<u8>,
    out: Vec<u8>,
}

/// Serves until the server stops.
pub(super) fn run(server: &Server, inbox: &Inbox) {
    let ready = match Ready::new(REPORTS) {
        Ok(ready) => ready,
        Err(error) => return server.complain(&format!("a worker cannot wait: {error}")),
    };
    if let Err(error) = ready.add(inbox.ear.as_fd(), INBOX, Interest::Read) {
        return server.complain(&format!("a worker cannot hear: {error}"));
    }
    let mut this = Loop {
        worker: Worker::new(server.counters_for_one()),
        server,
        inbox,
        ready,
        connections: Vec::new(),
        free: Vec::new(),
        again: Vec::new(),
        input: vec![0; READ],
        out: Vec::with_capacity(READ),
    };
    this.run();
    server.store().free_kept(&mut this.worker);
}

impl Loop<'_> {
    fn run(&mut self) {
        let mut reports: Vec<Readiness> = Vec::with_capacity(REPORTS);
        let mut looked = Instant::now();
        while !self.may_end() {
            let time = self.patience();
            reports.clear();
            reports.extend(self.ready.wait(time));
            for &report in &reports {
                if report.key == INBOX {
                    self.take_new();
                } else {
                    self.go_on(report);
                }
            }
            for slot in std::mem::take(&mut self.again) {
                self.serve_rest(slot);
            }
            if self.server.options().idle_timeout > 0 && looked.elapsed() > Duration::from_secs(1) {
                looked = Instant::now();
                self.close_idle();
            }
        }
        for slot in 0..self.connections.len() {
            self.close(slot);
        }
    }

    /// How long to wait for something to happen.
    fn patience(&self) -> Option<Duration> {
        if !self.again.is_empty() {
            return Some(Duration::ZERO);
        }
        if let Some(end) = self.server.end() {
            let left = end.saturating_duration_since(Instant::now());
            return Some(left.min(Duration::from_millis(50)));
        }
        (self.server.options().idle_timeout > 0).then(|| Duration::from_secs(1))
    }

    /// The server stops, and nobody is amid something or has waited long enough.
    fn may_end(&mut self) -> bool {
        let Some(end) = self.server.end() else {
            return false;
        };
        for slot in 0..self.connections.len() {
            let is_amid = self.connections[slot].as_ref().is_some_and(|one| {
                one.session.is_amid() || !one.rest.is_empty() || !one.unsent.is_empty()
            });
            if !is_amid {
                self.close(slot);
            }
        }
        Instant::now() >= end || self.connections.iter().all(Option::is_none)
    }

    fn take_new(&mut self) {
        for (stream, id) in self.inbox.take() {
            let slot = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            let added = stream
                .prepare()
                .and_then(|()| self.ready.add(stream.as_fd(), slot as u64, Interest::Read));
            let used = self.server.store().clock().now();
            let (session, rest, unsent) = (Session::new(), Vec::new(), Vec::new());
            let one = Connection {
                stream,
                session,
                id,
                rest,
                unsent,
                sent: 0,
                ends: false,
                used,
            };
            self.connections[slot] = Some(one);
            self.worker.counters.total_connections.bump();
            if let Err(error) = added {
                self.server
                    .complain(&format!("a connection cannot be waited for: {error}"));
                self.close(slot);
            }
        }
    }

    fn close(&mut self, slot: usize) {
        if let Some(mut one) = self.connections[slot].take() {
            one.session.end(&mut self.worker);
            self.server.store().settle(&mut self.worker);
            self.free.push(slot);
            self.server.forget_connection(one.id);
        }
    }

    fn go_on(&mut self, report: Readiness) {
        let slot = report.key as usize;
        let Some(Some(one)) = self.connections.get(slot) else {
            return;
        };
        if !one.unsent.is_empty() {
            if report.can_write {
                self.send_rest(slot);
            }
        } else if report.can_read {
            self.read(slot);
        }
    }

    fn read(&mut self, slot: usize) {
        for _ in 0..READS {
            let Some(Some(one)) = self.connections.get_mut(slot) else {
                return;
            };
            // Its turn comes again without being told.
            if !one.unsent.is_empty() || self.again.contains(&slot) {
                return;
            }
            let count = match one.stream.read(&mut self.input) {
                Ok(0) => return self.close(slot),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return self.close(slot),
            };
            self.worker.counters.bytes_read.add(count as u64);
            self.serve(slot, count);
            if count < self.input.len() {
                return;
            }
        }
    }

    /// Serves what was just read, after what was left of earlier.
    fn serve(&mut self, slot: usize, count: usize) {
        let Some(Some(one)) = self.connections.get_mut(slot) else {
            return;
        };
        one.used = self.server.store().clock().now();
        if !one.rest.is_empty() {
            one.rest.extend_from_slice(&self.input[..count]);
            return self.serve_rest(slot);
        }
        let use_of = (
            self.server.store(),
            &mut self.worker,
            self.server as &dyn About,
        );
        let commands = self.server.options().requests_per_event;
        self.out.clear();
        let served = one
            .session
            .serve(use_of, &self.input[..count], commands, &mut self.out);
        one.rest
            .extend_from_slice(&self.input[served.consumed..count]);
        self.after(slot, served.then);
    }

    fn serve_rest(&mut self, slot: usize) {
        let Some(Some(one)) = self.connections.get_mut(slot) else {
            return;
        };
        if one.ends || !one.unsent.is_empty() {
            return;
        }
        let use_of = (
            self.server.store(),
            &mut self.worker,
            self.server as &dyn About,
        );
        let commands = self.server.options().requests_per_event;
        self.out.clear();
        let served = one
            .session
            .serve(use_of, &one.rest, commands, &mut self.out);
        one.rest.drain(..served.consumed);
        if one.rest.is_empty() {
            one.rest = Vec::new();
        }
        self.after(slot, served.then);
    }

    fn after(&mut self, slot: usize, then: Then) {
        let Some(Some(one)) = self.connections.get_mut(slot) else {
            return;
        };
        match then {
            Then::More => {}
            Then::Again => self.again.push(slot),
            Then::Close => one.ends = true,
            Then::Stop { gracefully } => {
                one.ends = true;
                self.server.ask_to_stop(gracefully);
            }
        }
        self.send(slot);
    }

    /// Sends what was just answered.
    fn send(&mut self, slot: usize) {
        let Some(Some(one)) = self.connections.get_mut(slot) else {
            return;
        };
        let mut sent = 0;
        while sent < self.out.len() {
            match one.stream.write(&self.out[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return self.close(slot),
            }
        }
        self.worker.counters.bytes_written.add(sent as u64);
        if sent < self.out.len() {
            // Nothing more is read from who does not read.
            one.unsent.extend_from_slice(&self.out[sent..]);
            one.sent = 0;
            let changed = self
                .ready
                .change(one.stream.as_fd(), slot as u64, Interest::Write);
            if changed.is_err() {
                self.close(slot);
            }
        } else if one.ends {
            self.close(slot);
        }
        if self.out.capacity() > OUT_KEPT {
            self.out = Vec::with_capacity(READ);
        }
    }

    /// Sends what the client did not take before.
    fn send_rest(&mut self, slot: usize) {
        let Some(Some(one)) = self.connections.get_mut(slot) else {
            return;
        };
        while one.sent < one.unsent.len() {
            match one.stream.write(&one.unsent[one.sent..]) {
                Ok(count) => {
                    one.sent += count;
                    self.worker.counters.bytes_written.add(count as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return self.close(slot),
            }
        }
        one.unsent = Vec::new();
        if one.ends {
            return self.close(slot);
        }
        if self
            .ready
            .change(one.stream.as_fd(), slot as u64, Interest::Read)
            .is_err()
        {
            return self.close(slot);
        }
        // What was read before and not served.
        if !one.rest.is_empty() {
            self.serve_rest(slot);
        }
    }

    fn close_idle(&mut self) {
        let now = self.server.store().clock().now();
        let limit = self.server.options().idle_timeout;
        for slot in 0..self.connections.len() {
            let is_idle = self.connections[slot]
                .as_ref()
                .is_some_and(|one| now.saturating_sub(one.used) > limit);
            if is_idle {
                self.close(slot);
            }
        }
    }
}
