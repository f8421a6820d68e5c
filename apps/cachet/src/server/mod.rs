//! The server: who listens, who serves, and when it ends.
//!
//! One thread accepts connections and gives them to the workers in turn; a connection stays with its worker for
//! life. One thread has the clock. The workers share the [`Store`] and nothing else that is written often.

mod about;
mod accept;
mod stream;
mod worker;

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hearth_sys::clock::Clock as Ticks;
use hearth_sys::system::Linux;

use crate::options::Options;
use crate::store::{NoStore, Store, Worker};

pub use about::Server;
use accept::Listeners;
use worker::Inbox;

/// A server that runs.
pub struct Running {
    server: Arc<Server>,
    inboxes: Arc<[Inbox]>,
    acceptor: JoinHandle<()>,
    workers: Vec<JoinHandle<()>>,
    clock: JoinHandle<()>,
    listeners: Vec<String>,
}

/// Why a server does not start.
#[derive(Debug)]
pub enum NoServer {
    /// There is no store.
    Store(NoStore),
    /// It cannot listen there.
    Listen(String, io::Error),
    /// There are no threads or descriptors for it.
    System(io::Error),
}

impl std::fmt::Display for NoServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoServer::Store(error) => error.fmt(f),
            NoServer::Listen(at, error) => {
                write!(
                    f,
                    "cannot listen at {at}: {error}; choose another with -p, -l or -s"
                )
            }
            NoServer::System(error) => write!(f, "there are no threads for a server: {error}"),
        }
    }
}

impl std::error::Error for NoServer {}

/// Who stops waits so long for those who are amid something, if told to be graceful, and if not.
const GRACE: Duration = Duration::from_secs(5);
const HASTE: Duration = Duration::from_millis(500);

impl Running {
    /// Listens and serves.
    ///
    /// # Errors
    /// It cannot, and says why.
    pub fn start(options: Options) -> Result<Running, NoServer> {
        let ticks = Ticks::calibrate(&Linux, 5);
        let store = Store::new(options.store_settings(), ticks).map_err(NoServer::Store)?;
        store.set_crawler(options.crawls);
        store.set_shares(options.hot_percent as usize, options.warm_percent as usize);
        let listeners = Listeners::bind(&options)?;
        let addresses = listeners.addresses();
        let server = Arc::new(Server::new(store, options, addresses.clone()));
        let threads = server.options().threads;
        let inboxes: io::Result<Vec<Inbox>> = (0..threads).map(|_| Inbox::new()).collect();
        let inboxes: Arc<[Inbox]> = inboxes.map_err(NoServer::System)?.into();
        let workers: io::Result<Vec<_>> = (0..threads)
            .map(|i| {
                let (server, inboxes) = (Arc::clone(&server), Arc::clone(&inboxes));
                let body = move || worker::run(&server, &inboxes[i]);
                thread::Builder::new()
                    .name(format!("cachet-{i}"))
                    .spawn(body)
            })
            .collect();
        let workers = workers.map_err(NoServer::System)?;
        let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
            thread::Builder::new()
                .name(name.into())
                .spawn(body)
                .map_err(NoServer::System)
        };
        let acceptor = {
            let (server, inboxes) = (Arc::clone(&server), Arc::clone(&inboxes));
            spawn(
                "cachet-accept",
                Box::new(move || accept::run(&server, listeners, &inboxes)),
            )?
        };
        let clock = {
            let server = Arc::clone(&server);
            spawn("cachet-clock", Box::new(move || keep_time(&server)))?
        };
        Ok(Running {
            server,
            inboxes,
            acceptor,
            workers,
            clock,
            listeners: addresses,
        })
    }

    /// Where it listens: addresses with ports, or paths.
    #[must_use]
    pub fn addresses(&self) -> &[String] {
        &self.listeners
    }

    /// What it knows of itself.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Takes no more connections, lets those that are amid something come to its end for a while, and ends.
    pub fn stop(self, gracefully: bool) {
        let end = Instant::now() + if gracefully { GRACE } else { HASTE };
        self.server.stop(end);
        for inbox in self.inboxes.iter() {
            inbox.ring();
        }
        self.clock.thread().unpark();
        for thread in self.workers.into_iter().chain([self.acceptor, self.clock]) {
            // Who has panicked has told so.
            let _ = thread.join();
        }
        if let Some(path) = &self.server.options().unix_socket {
            let _ = fs::remove_file(path);
        }
    }
}

/// Every second: the clock, and a part of the crawl.
fn keep_time(server: &Server) {
    let mut worker = Worker::new(server.counters_for_one());
    let begin = Instant::now();
    for second in 1_u64.. {
        let next = begin + Duration::from_secs(second);
        while let Some(left) = next.checked_duration_since(Instant::now()) {
            if server.stops() {
                return;
            }
            thread::park_timeout(left);
        }
        server.store().tick(&mut worker);
    }
}

/// Something that happens once, and may be asked for cheaply.
#[derive(Debug, Default)]
struct Flag(AtomicBool);

impl Flag {
    fn set(&self) {
        // Release: what was written before is seen by who sees it set.
        self.0.store(true, Ordering::Release);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
