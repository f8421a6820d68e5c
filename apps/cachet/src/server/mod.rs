//! The server: the protocol as a service of `hearth-net`, and what is beside it.
//!
//! A connection stays with one thread for life, unless another pattern is asked for. The threads share the
//! [`Store`] and nothing else that is written often. One more thread has the clock.

mod about;
mod service;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hearth_net::{Mechanism, Pattern, StartError, WhenFull};
use hearth_sys::clock::Clock as Ticks;
use hearth_sys::system::Linux;

use crate::options::Options;
use crate::protocol::LINE_OF_KEYS_MAX;
use crate::store::{NoStore, Store, Worker};

pub use about::Server;
use service::Cachet;

/// A server that runs.
pub struct Running {
    server: Arc<Server>,
    net: hearth_net::Server<Cachet>,
    clock: JoinHandle<()>,
}

/// Why a server does not start.
#[derive(Debug)]
pub enum NoServer {
    /// There is no store.
    Store(NoStore),
    /// It cannot listen, or there are no threads for it.
    Net(StartError),
    /// There is no thread for its clock.
    Clock(std::io::Error),
}

impl std::fmt::Display for NoServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoServer::Store(error) => error.fmt(f),
            NoServer::Net(error) => error.fmt(f),
            NoServer::Clock(error) => write!(f, "there is no thread for the clock: {error}"),
        }
    }
}

impl std::error::Error for NoServer {}

/// Who stops waits so long for those who are amid something, if told to be graceful, and if not.
const GRACE: Duration = Duration::from_secs(5);
const HASTE: Duration = Duration::from_millis(500);
/// As much may wait to be sent to one client before it must read.
const OUTPUT_MAX: usize = 1 << 20;

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
        let builder = builder(&options);
        let server = Arc::new(Server::new(store, options));
        let net = builder
            .start(Cachet(Arc::clone(&server)))
            .map_err(NoServer::Net)?;
        let kept = Arc::clone(&server);
        let clock = thread::Builder::new()
            .name("cachet-clock".into())
            .spawn(move || keep_time(&kept));
        let clock = clock.map_err(NoServer::Clock)?;
        let running = Running { server, net, clock };
        running.server.set_addresses(running.addresses());
        Ok(running)
    }

    /// Where it listens: addresses with ports, and paths.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        let network = self.net.tcp_addresses().iter().map(ToString::to_string);
        let path = self
            .server
            .options()
            .unix_socket
            .iter()
            .map(|path| path.display().to_string());
        network.chain(path).collect()
    }

    /// What it knows of itself.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Takes no more connections, answers what has come, and ends.
    pub fn stop(self, gracefully: bool) {
        self.server.stop();
        let _ = self.net.stop(if gracefully { GRACE } else { HASTE });
        self.clock.thread().unpark();
        // Who has panicked has told so.
        let _ = self.clock.join();
    }
}

fn builder(options: &Options) -> hearth_net::Builder {
    let mut builder = hearth_net::Server::builder()
        .name("cachet")
        .pattern(options.pattern)
        .threads(options.threads)
        .backlog(options.backlog)
        .connections_max(options.connections)
        .when_full(if options.maxconns_fast {
            WhenFull::Refuse
        } else {
            WhenFull::Wait
        })
        .input_bytes_max(LINE_OF_KEYS_MAX * 2)
        .output_bytes_max(OUTPUT_MAX);
    builder = match (options.mechanism, options.pattern) {
        (Some(mechanism), _) => builder.mechanism(mechanism),
        // It finds out.
        (None, Pattern::Adaptive) => builder,
        (None, pattern) => builder.mechanism(Mechanism::best_for(pattern)),
    };
    if options.idle_timeout > 0 {
        builder = builder.idle(Duration::from_secs(u64::from(options.idle_timeout)));
    }
    if let Some(path) = &options.unix_socket {
        return builder.unix(path, options.unix_mask);
    }
    for place in places(options) {
        builder = builder.tcp(place);
    }
    builder
}

/// The addresses to listen at: all of this machine if none is named.
fn places(options: &Options) -> Vec<String> {
    let port = options.port;
    if options.listen.is_empty() {
        let mut places = vec![format!("0.0.0.0:{port}")];
        // Not every system has IPv6; and two ports that the system chooses would not be the same.
        if port != 0 && std::net::TcpListener::bind("[::1]:0").is_ok() {
            places.push(format!("[::]:{port}"));
        }
        return places;
    }
    let place = |name: &String| match name.parse::<IpAddr>() {
        Ok(address) => SocketAddr::new(address, port).to_string(),
        Err(_) if name.contains(':') => name.clone(),
        Err(_) => format!("{name}:{port}"),
    };
    options.listen.iter().map(place).collect()
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
