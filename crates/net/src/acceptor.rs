//! The thread that accepts connections, gives them to those who serve, and knows when a second is over.

use std::io;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hearth_sys::ready::{Interest, Ready};
use hearth_sys::refused::Reason;
use socket2::Socket;

use crate::connection::{NO_SIGNAL, part};
use crate::counters::add;
use crate::listen::Listener;
use crate::options::WhenFull;
use crate::pattern::Threads;
use crate::server::Common;
use crate::service::{Peer, Service};

/// The bell's key; listeners have their numbers.
const BELL: u64 = u64::MAX;
/// How long nobody is accepted when the system has no descriptor left, unless a connection goes.
const STARVED: Duration = Duration::from_millis(100);
/// How many are accepted before the bell is looked at.
const ACCEPTED_AT_ONCE: usize = 64;

pub(crate) struct Acceptor<S: Service> {
    common: Arc<Common<S>>,
    pattern: Arc<dyn Threads<S>>,
    listeners: Vec<Listener>,
    ready: Ready,
    is_armed: bool,
    /// Nobody is accepted until then.
    starved_until: Option<Instant>,
}

impl<S: Service> Acceptor<S> {
    pub(crate) fn new(
        common: Arc<Common<S>>,
        pattern: Arc<dyn Threads<S>>,
        listeners: Vec<Listener>,
    ) -> io::Result<Acceptor<S>> {
        let ready = Ready::new(listeners.len() + 1)?;
        ready.add(common.acceptors_bell.as_fd(), BELL, Interest::Read)?;
        for (key, listener) in listeners.iter().enumerate() {
            ready.add(listener.socket.as_fd(), key as u64, Interest::Read)?;
        }
        Ok(Acceptor {
            common,
            pattern,
            listeners,
            ready,
            is_armed: true,
            starved_until: None,
        })
    }

    /// The listeners come back when it ends.
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
                    BELL => {
                        common.acceptors_bell.hear();
                        // Perhaps a descriptor is free again.
                        self.starved_until = None;
                    }
                    key => {
                        self.accept_some(key as usize);
                    }
                }
            }
            if is_stopping {
                // Those who were in the queue when the server was told to stop.
                let some = 1 + self.common.options.backlog.max(0) as usize / ACCEPTED_AT_ONCE;
                for key in 0..self.listeners.len() {
                    // No more than that: who comes while they are taken may come without end.
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

    /// Listens, or not while there is no room for another.
    fn arm(&mut self) {
        let waits_for_room = self.common.options.when_full == WhenFull::Wait;
        self.starved_until = self.starved_until.filter(|until| *until > Instant::now());
        self.common
            .wants_room
            .store(self.starved_until.is_some(), Ordering::SeqCst);
        let mut may = self.starved_until.is_none();
        if waits_for_room && self.is_full() {
            self.common.wants_room.store(true, Ordering::SeqCst);
            // One may have gone before that was said.
            may &= !self.is_full();
        }
        if may != self.is_armed {
            let interest = if may {
                Interest::Read
            } else {
                Interest::Nothing
            };
            for (key, listener) in self.listeners.iter().enumerate() {
                // It is in the set.
                let _ = self
                    .ready
                    .change(listener.socket.as_fd(), key as u64, interest);
            }
            self.is_armed = may;
        }
    }

    /// Accepts some. True if there may be more that could be accepted at once.
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
                    let peer = match address.as_socket() {
                        Some(address) if listener.is_tcp() => Peer::Tcp(address),
                        _ => Peer::Unix,
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

/// Says so and closes; it is new, so there is room for some bytes, and nobody waits for it.
fn refuse(socket: &Socket, words: &[u8]) {
    if socket.set_nonblocking(true).is_ok() && !words.is_empty() {
        let _ = socket.send_with_flags(words, NO_SIGNAL);
    }
    part(socket);
}
