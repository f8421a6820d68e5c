//! The acceptor: the thread that accepts connections, gives them to the pattern's threads, and
//! counts the seconds.

use std::io;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hearth_sys::epoll::{Epoll, Interest};
use hearth_sys::refused::Reason;
use socket2::Socket;

use crate::choices::WhenFull;
use crate::common::Common;
use crate::connection::{NO_SIGNAL, part};
use crate::counters::add;
use crate::listen::Listener;
use crate::pattern::Threads;
use crate::service::{Address, Peer, Service};

/// Key of the wake-up descriptor; listeners have their numbers.
const WAKEUP: u64 = u64::MAX;
/// Pause of accepting when the system has no descriptor left, unless a connection closes.
const STARVED: Duration = Duration::from_millis(100);
/// Connections accepted before the wake-up descriptor is looked at.
const ACCEPTED_AT_ONCE: usize = 64;

pub(crate) struct Acceptor<S: Service> {
    common: Arc<Common<S>>,
    pattern: Arc<dyn Threads<S>>,
    listeners: Vec<Listener>,
    ready: Epoll,
    /// Beginning of the present pause; none while the listeners are watched.
    paused_since: Option<Instant>,
    /// End of that pause for want of descriptors.
    starved_until: Option<Instant>,
}

impl<S: Service> Acceptor<S> {
    pub(crate) fn new(
        common: Arc<Common<S>>,
        pattern: Arc<dyn Threads<S>>,
        listeners: Vec<Listener>,
    ) -> io::Result<Acceptor<S>> {
        let ready = Epoll::new(listeners.len() + 1)?;
        ready.add(common.acceptor_wakeup.as_fd(), WAKEUP, Interest::Read)?;
        for (key, listener) in listeners.iter().enumerate() {
            ready.add(listener.socket.as_fd(), key as u64, Interest::Read)?;
        }
        Ok(Acceptor {
            common,
            pattern,
            listeners,
            ready,
            paused_since: None,
            starved_until: None,
        })
    }

    /// Starts the thread, which returns the listeners when it ends.
    pub(crate) fn start(mut self) -> io::Result<JoinHandle<Vec<Listener>>> {
        thread::Builder::new()
            .name(format!("{}-accept", self.common.options.name))
            .spawn(move || {
                self.run();
                self.listeners
            })
    }

    fn run(&mut self) {
        let begun = Instant::now();
        let mut keys = Vec::new();
        loop {
            self.arm();
            let second = Duration::from_secs(begun.elapsed().as_secs() + 1);
            let mut time = second.saturating_sub(begun.elapsed());
            if self.starved_until.is_some() {
                time = time.min(STARVED);
            }
            let common = self.common.clone();
            keys.extend(self.ready.wait(Some(time)).map(|report| report.key));
            let is_stopping = common.is_stopping();
            for key in keys.drain(..) {
                match key {
                    WAKEUP => {
                        common.acceptor_wakeup.take();
                        // Perhaps a descriptor is free again.
                        self.starved_until = None;
                    }
                    key => {
                        self.accept_some(key as usize);
                    }
                }
            }
            if is_stopping {
                // Those that were in the queue when the server was stopped.
                let some = 1 + self.common.options.backlog.max(0) as usize / ACCEPTED_AT_ONCE;
                for key in 0..self.listeners.len() {
                    // A limited number: new ones may come without end.
                    (0..some).all(|_| self.accept_some(key));
                }
                return;
            }
            let seconds = u32::try_from(begun.elapsed().as_secs()).unwrap_or(u32::MAX);
            if common.second.swap(seconds, Ordering::Relaxed) != seconds {
                let ticked = catch_unwind(AssertUnwindSafe(|| common.service.tick()));
                if ticked.is_err() {
                    add(&common.acceptors_desk().counts.panicked, 1);
                }
                if common.options.idle.is_some() {
                    self.pattern.sweep();
                }
            }
        }
    }

    fn is_full(&self) -> bool {
        self.common.connections.load(Ordering::SeqCst) >= self.common.options.connections_max
    }

    /// Watches the listeners, unless there is no room for another connection.
    fn arm(&mut self) {
        let waits_for_room = self.common.options.when_full == WhenFull::Wait;
        self.starved_until = self.starved_until.filter(|until| *until > Instant::now());
        self.common
            .wants_room
            .store(self.starved_until.is_some(), Ordering::SeqCst);
        let mut may = self.starved_until.is_none();
        if waits_for_room && self.is_full() {
            self.common.wants_room.store(true, Ordering::SeqCst);
            // A connection may have closed before `wants_room` was set.
            may &= !self.is_full();
        }
        match self.paused_since {
            None if !may => {
                add(&self.common.acceptors_desk().counts.pauses, 1);
                self.paused_since = Some(Instant::now());
                self.watch(Interest::Nothing);
            }
            Some(since) if may => {
                let us = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
                add(&self.common.acceptors_desk().counts.paused_us, us);
                self.paused_since = None;
                self.watch(Interest::Read);
            }
            _ => return,
        }
        let is_accepting = self.paused_since.is_none();
        self.common
            .is_accepting
            .store(is_accepting, Ordering::Relaxed);
    }

    fn watch(&self, interest: Interest) {
        for (key, listener) in self.listeners.iter().enumerate() {
            // It is in the set.
            let _ = self
                .ready
                .change(listener.socket.as_fd(), key as u64, interest);
        }
    }

    /// Accepts some connections. True if there may be more to accept at once.
    fn accept_some(&mut self, listener: usize) -> bool {
        let common = self.common.clone();
        let counts = &common.acceptors_desk().counts;
        for _ in 0..ACCEPTED_AT_ONCE {
            if common.options.when_full == WhenFull::Wait && self.is_full() {
                return false;
            }
            let listener = &self.listeners[listener];
            match listener.socket.accept() {
                Ok((socket, address)) => {
                    if self.is_full() {
                        add(&counts.refused, 1);
                        let refused = catch_unwind(AssertUnwindSafe(|| {
                            refuse(&socket, common.service.refusal());
                        }));
                        if refused.is_err() {
                            add(&counts.panicked, 1);
                        }
                        continue;
                    }
                    let peer = Peer {
                        address: match address.as_socket() {
                            Some(address) if listener.is_tcp() => Address::Tcp(address),
                            _ => Address::Unix,
                        },
                        place: listener.place,
                    };
                    if socket.set_nonblocking(true).is_err() {
                        continue;
                    }
                    if listener.is_tcp() {
                        // Replies are whole: none waits for more. At worst they are late.
                        let _ = socket.set_tcp_nodelay(true);
                    }
                    add(&counts.accepted, 1);
                    common.connections.fetch_add(1, Ordering::SeqCst);
                    let second = common.second();
                    if self.pattern.adopt(socket, peer, second).is_err() {
                        add(&counts.refused, 1);
                        common.gone();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if Reason::of(&error) == Reason::Exhausted => {
                    add(&counts.starved, 1);
                    self.starved_until = Some(Instant::now() + STARVED);
                    return false;
                }
                // Gone before it was accepted, or a signal.
                Err(_) => {}
            }
        }
        true
    }
}

/// Writes the refusal and closes. The socket is new, so there is room for some bytes, and nobody
/// waits.
fn refuse(socket: &Socket, words: &[u8]) {
    if socket.set_nonblocking(true).is_ok() && !words.is_empty() {
        let _ = socket.send_with_flags(words, NO_SIGNAL);
    }
    part(socket);
}
