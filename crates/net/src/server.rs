//! A server: its threads, and its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hearth_sys::eventfd::EventFd;

use crate::acceptor::Acceptor;
use crate::choices::{Mechanism, Pattern};
use crate::common::Common;
use crate::counters::{Counters, Desk, Operation, Times};
use crate::drain::{Stopped, drain};
use crate::error::StartError;
use crate::listen::{Listener, listeners};
use crate::options::Builder;
use crate::pattern::{Adapted, Adaptive, HalfAsync, Leader, Sharded, Starting, Threads};
use crate::poller::{Epoll, Poller, Select};
use crate::service::Service;

/// A server that serves until it is stopped or dropped.
pub struct Server<S: Service> {
    common: Arc<Common<S>>,
    pattern: Arc<dyn Threads<S>>,
    threads: Vec<JoinHandle<()>>,
    acceptor: Option<JoinHandle<Vec<Listener>>>,
    addresses: Vec<SocketAddr>,
}

impl Server<()> {
    /// Options of a new server.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Builder {
    /// Listens and serves.
    ///
    /// # Errors
    /// An address cannot be listened on, or the pattern needs more threads.
    pub fn start<S: Service>(self, service: S) -> Result<Server<S>, StartError> {
        Server::start(self, service)
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
        for &mechanism in &mechanisms {
            let pattern = options.pattern;
            if !mechanism.goes_with(pattern) {
                return Err(StartError::Mismatch { pattern, mechanism });
            }
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
            is_accepting: AtomicBool::new(true),
            acceptor_wakeup: EventFd::new().map_err(refused("a descriptor"))?,
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
            Mechanism::Uring => Sharded::<S::Session>::start_rings(&common, &mut starting)
                .map(|sharded| Arc::new(sharded) as Arc<dyn Threads<S>>),
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

    /// The addresses it listens on, in the order asked for, with the ports chosen by the system.
    pub fn tcp_addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The service.
    pub fn service(&self) -> &S {
        &self.common.service
    }

    /// Number of connections.
    pub fn connections(&self) -> usize {
        self.common.connections.load(Ordering::Relaxed)
    }

    /// Largest number of connections.
    pub fn connections_max(&self) -> usize {
        self.common.options.connections_max
    }

    /// True unless accepting is paused, for want of descriptors or because of the limit.
    pub fn is_accepting(&self) -> bool {
        self.common.is_accepting.load(Ordering::Relaxed)
    }

    /// Counters since the start.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        for desk in &self.common.desks {
            desk.counts.add_to(&mut sum);
        }
        sum
    }

    /// Present threads and mechanism of an adaptive server, with the reasons. None for other
    /// servers.
    pub fn adapted(&self) -> Option<Adapted> {
        self.pattern.adapted()
    }

    /// Costs of an operation so far, by thread, working threads first; all zero without
    /// [`Builder::timed`], except for the waits of an adaptive server.
    pub fn times(&self, of: Operation) -> Vec<Times> {
        self.common
            .desks
            .iter()
            .map(|desk| desk.times(of))
            .collect()
    }

    /// Stops: accepts no more, answers pending requests, sends pending replies, and closes; after
    /// `grace` cuts off what is left.
    pub fn stop(mut self, grace: Duration) -> Stopped {
        self.end(grace)
    }

    fn end(&mut self, grace: Duration) -> Stopped {
        self.common.begin_stop();
        // Clients already connected are accepted and served. Then no other client may believe to be
        // connected, and a successor may listen at the same addresses.
        self.common.acceptor_wakeup.notify();
        drop(self.acceptor.take().map(JoinHandle::join));
        self.pattern.wake();
        for thread in self.threads.drain(..) {
            // It has ended early only if its service's worker could not be made.
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
