//! The interface of every pattern, and starting its threads.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use hearth_sys::affinity::Pinned;
use socket2::Socket;

use crate::choices::Mechanism;
use crate::common::Common;
use crate::connection::{Connection, Station};
use crate::counters::{Meter, Watching};
use crate::service::{Peer, Service};

/// Present state of an adaptive server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapted {
    /// Number of threads that have connections.
    pub threads: usize,
    /// The mechanism by which they wait.
    pub mechanism: Mechanism,
    /// Whether they spin before they sleep.
    pub spins: bool,
    /// The reasons as text: throughput, alternatives tried, last change.
    pub why: String,
}

/// A server's threads, and how connections get to them.
pub(crate) trait Threads<S: Service>: Send + Sync {
    /// Takes a new connection, in this second.
    ///
    /// # Errors
    /// It cannot be waited for.
    fn adopt(&self, socket: Socket, peer: Peer, second: u32) -> io::Result<()>;

    /// Begins another second: closes connections that have been silent for too long.
    fn sweep(&self);

    /// Wakes all threads, which then see the server's flag and end.
    fn wake(&self);

    /// The present state, if it changes.
    fn adapted(&self) -> Option<Adapted> {
        None
    }

    /// All connections, after all threads have ended.
    fn take_all(&self) -> Vec<Connection<S::Session>>;
}

/// Threads of a server that is being started.
#[derive(Default)]
pub(crate) struct Starting {
    pub(crate) threads: Vec<JoinHandle<()>>,
    /// Error of a thread that did not start. The server is then ended in the usual way.
    pub(crate) refused: Option<io::Error>,
}

impl Starting {
    pub(super) fn add(&mut self, thread: io::Result<JoinHandle<()>>) {
        match thread {
            Ok(thread) => self.threads.push(thread),
            Err(error) => {
                self.refused.get_or_insert(error);
            }
        }
    }
}

/// Starts a thread that serves, on its core if it has one.
pub(crate) fn spawn<S: Service>(
    common: &Arc<Common<S>>,
    number: usize,
    run: impl FnOnce(&Common<S>, &mut Station<'_, S>) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let common = common.clone();
    thread::Builder::new()
        .name(format!("{}-{number}", common.options.name))
        .spawn(move || {
            let cores = &common.options.cores;
            // Best effort: if the core is not ours the thread runs anywhere.
            let _pinned = (!cores.is_empty())
                .then(|| Pinned::to(cores[number % cores.len()]).ok())
                .flatten();
            let meter = Meter::new(
                &common.desks[number],
                Watching::of(common.options.pattern, common.options.is_timed),
            );
            let mut station = Station::new(
                &common.service,
                number,
                meter,
                &common.second,
                &common.options,
            );
            run(&common, &mut station);
        })
}
