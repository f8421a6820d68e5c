//! A server: its threads, and its end.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use hearth_sys::bell::Bell;

use crate::acceptor::Acceptor;
use crate::counters::{Counters, Desk, Operation, Times};
use crate::drain::drain;
use crate::error::StartError;
use crate::listen::{Listener, listeners};
use crate::options::{Builder, Mechanism, Pattern};
use crate::pattern::{Adaptive, HalfAsync, Leader, Sharded, Starting, Threads};
use crate::poller::{Epoll, Poller, Ring, Select};
use crate::service::Service;

/// A lock whose holder may have panicked: what it guards is whole between any two of its operations.
pub(crate) fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What all threads of a server see.
///
/// | field | who writes | who reads |
/// |---|---|---|
/// | `is_stopping` | who stops it, once, before it wakes all | every thread, after it was woken |
/// | `connections` | who accepts: up; who closes: down | who accepts |
/// | `wants_room` | who accepts: true before it looks at `connections` again | who closes, after it has counted |
/// | `second` | who accepts | all, roughly |
///
/// `connections` and `wants_room` are sequentially consistent: either who accepts sees that one has gone, or who closes sees
/// that it is waited for.
pub(crate) struct Common<S> {
    pub(crate) service: S,
    pub(crate) options: Builder,
    /// By which its threads may wait: one, but of an adaptive server.
    pub(crate) mechanisms: Vec<Mechanism>,
    /// Threads that are started to serve: so many for each mechanism.
    pub(crate) workers: usize,
    /// One for each thread, then the acceptor's, then that of who stops it.
    pub(crate) desks: Vec<Desk>,
    pub(crate) second: AtomicU32,
    is_stopping: AtomicBool,
    pub(crate) connections: AtomicUsize,
    pub(crate) wants_room: AtomicBool,
    pub(crate) acceptors_bell: Bell,
}

impl<S> Common<S> {
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// From now on. Who sets it wakes all.
    pub(crate) fn begin_stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    pub(crate) fn second(&self) -> u32 {
        self.second.load(Ordering::Relaxed)
    }

    pub(crate) fn idle_seconds(&self) -> Option<u32> {
        let idle = self.options.idle?;
        Some(u32::try_from(idle.as_secs()).unwrap_or(u32::MAX))
    }

    pub(crate) fn acceptors_desk(&self) -> &Desk {
        &self.desks[self.workers]
    }

    /// A connection is closed.
    pub(crate) fn gone(&self) {
        self.connections.fetch_sub(1, Ordering::SeqCst);
        if self.wants_room.load(Ordering::SeqCst) {
            self.acceptors_bell.ring();
        }
    }
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Connections that were closed when all that had been asked was answered.
    pub done: usize,
    /// Connections that were closed because the time was over, or that broke.
    pub cut: usize,
}

/// How an adaptive server serves at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapted {
    /// Threads that have connections.
    pub threads: usize,
    /// By which they wait.
    pub mechanism: Mechanism,
    /// They look for a while before they sleep.
    pub spins: bool,
    /// What that reaches, what else was tried, and when it changed last, in words.
    pub why: String,
}

/// A server that serves until it is stopped or dropped.
pub struct Server<S: Service> {
    common: Arc<Common<S>>,
    pattern: Arc<dyn Threads<S>>,
    threads: Vec<JoinHandle<()>>,
    acceptor: Option<JoinHandle<Vec<Listener>>>,
    addresses: Vec<SocketAddr>,
}

impl Server<()> {
    /// Options of a server that is to be.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Service for () {
    type Worker = ();
    type Session = ();

    fn worker(&self, _: usize) {}

    fn open(&self, (): &mut (), _: &crate::Peer) {}

    /// Nothing is ever said.
    fn serve(
        &self,
        (): &mut (),
        (): &mut (),
        input: &mut crate::Input<'_>,
        _: &mut crate::Output,
    ) -> crate::Next {
        input.consume(input.bytes().len());
        crate::Next::More
    }
}

impl<S: Service> Server<S> {
    pub(crate) fn start(options: Builder, service: S) -> Result<Server<S>, StartError> {
        let least = 1 + usize::from(options.pattern == Pattern::HalfAsync);
        if options.threads < least {
            return Err(StartError::TooFewThreads {
                threads: options.threads,
                least,
            });
        }
        let mechanisms = options.mechanisms();
        for mechanism in &mechanisms {
            mechanism.check()?;
        }
        let workers = options.threads * mechanisms.len();
        let refused = |what| move |error| StartError::Refused { what, error };
        let listeners = listeners(&options)?;
        let addresses = listeners.iter().filter_map(Listener::tcp_address).collect();
        let common = Arc::new(Common {
            service,
            mechanisms,
            workers,
            desks: (0..workers + 2).map(|_| Desk::default()).collect(),
            second: AtomicU32::new(0),
            is_stopping: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            wants_room: AtomicBool::new(false),
            acceptors_bell: Bell::new().map_err(refused("a descriptor"))?,
            options,
        });
        let mut starting = Starting::default();
        let started = match common.options.mechanism_or_edge() {
            _ if common.options.pattern == Pattern::Adaptive => {
                Adaptive::start(&common, &mut starting)
                    .map(|adaptive| Arc::new(adaptive) as Arc<dyn Threads<S>>)
            }
            Mechanism::Select => start_pattern::<Select, S>(&common, &mut starting),
            Mechanism::Level | Mechanism::Edge => start_pattern::<Epoll, S>(&common, &mut starting),
            Mechanism::Uring if common.options.pattern == Pattern::Sharded => {
                Sharded::<S::Session>::start_rings(&common, &mut starting)
                    .map(|sharded| Arc::new(sharded) as Arc<dyn Threads<S>>)
            }
            Mechanism::Uring => start_pattern::<Ring, S>(&common, &mut starting),
        };
        let mut server = Server {
            common,
            pattern: started.map_err(refused("descriptors"))?,
            threads: starting.threads,
            acceptor: None,
            addresses,
        };
        if let Some(error) = starting.refused {
            return Err(refused("threads")(error));
        }
        let acceptor = Acceptor::new(server.common.clone(), server.pattern.clone(), listeners)
            .and_then(Acceptor::start)
            .map_err(refused("a thread that accepts"))?;
        server.acceptor = Some(acceptor);
        Ok(server)
    }

    /// Where it listens, in the order asked for; with the ports that the system chose.
    pub fn tcp_addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What it serves with.
    pub fn service(&self) -> &S {
        &self.common.service
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.common.connections.load(Ordering::Relaxed)
    }

    /// How many connections there may be.
    pub fn connections_max(&self) -> usize {
        self.common.options.connections_max
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        for desk in &self.common.desks {
            desk.counts.add_to(&mut sum);
        }
        sum
    }

    /// How many threads serve at the moment, and by which mechanism; and why. Nothing but of an adaptive server.
    pub fn adapted(&self) -> Option<Adapted> {
        self.pattern.adapted()
    }

    /// What an operation has cost each thread so far, those that work first; all zero unless [`Builder::timed`], but an
    /// adaptive server times its waits.
    pub fn times(&self, of: Operation) -> Vec<Times> {
        self.common
            .desks
            .iter()
            .map(|desk| desk.times(of))
            .collect()
    }

    /// Accepts no more, answers what was asked, sends what was answered, and closes; after `grace` whatever is left
    /// is cut off.
    pub fn stop(mut self, grace: Duration) -> Stopped {
        self.end(grace)
    }

    fn end(&mut self, grace: Duration) -> Stopped {
        self.common.begin_stop();
        // Those who connected before are served, too: they are accepted. Then nobody else may believe to be, and who comes next
        // may listen at the same addresses.
        self.common.acceptors_bell.ring();
        drop(self.acceptor.take().map(JoinHandle::join));
        self.pattern.wake();
        for thread in self.threads.drain(..) {
            // Only a service whose worker cannot be made has ended it before.
            let _ = thread.join();
        }
        drain(&self.common, self.pattern.take_all(), grace)
    }
}

impl<S: Service> Drop for Server<S> {
    fn drop(&mut self) {
        if self.acceptor.is_some() || !self.threads.is_empty() {
            self.end(Duration::ZERO);
        }
    }
}

fn start_pattern<P: Poller, S: Service>(
    common: &Arc<Common<S>>,
    starting: &mut Starting,
) -> std::io::Result<Arc<dyn Threads<S>>> {
    Ok(match common.options.pattern {
        // It has threads for several pollers, and is started before.
        Pattern::Sharded | Pattern::Adaptive => {
            Arc::new(Sharded::<S::Session>::start::<P, S>(common, starting)?)
        }
        Pattern::HalfAsync => Arc::new(HalfAsync::<P, S>::start(common, starting)?),
        Pattern::Leader => Arc::new(Leader::<P, S>::start(common, starting)?),
    })
}
