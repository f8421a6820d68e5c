//! The server: the protocol as a service of `hearth-net`, and what it needs besides.
//!
//! A connection stays with one thread for life, unless another pattern is chosen. The threads share
//! the [`Store`] and nothing else that is often written. One more thread keeps the clock.

mod about;
mod known;
mod service;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hearth_net::{Builder, Mechanism, Pattern, StartError, WhenFull};
use hearth_sys::affinity::allowed;
use hearth_sys::clock::Clock as Ticks;
use hearth_sys::system::Linux;

use crate::options::{Place, ServerOptions};
use crate::protocol::LINE_OF_KEYS_MAX;
use crate::store::{NoStore, Store, Worker};
use crate::tls::{Bounds, Layer, NoTls, Tls};

pub use about::Server;
use service::Cachet;

/// A running server.
pub struct Running {
    server: Arc<Server>,
    addresses: Vec<SocketAddr>,
    clock: Option<JoinHandle<()>>,
}

/// Reason why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum NoServer {
    /// The store cannot be made.
    #[error("{0}")]
    Store(NoStore),
    /// The users that may connect are not known.
    #[error("{0}")]
    Users(about::BadUsers),
    /// Its certificates cannot be used.
    #[error("{0}")]
    Tls(NoTls),
    /// It cannot listen, or gets no threads.
    #[error("{0}")]
    Net(StartError),
    /// Its clock gets no thread.
    #[error("cannot start a thread for the clock: {0}")]
    Clock(std::io::Error),
}

/// Time for clients in the middle of something when the server stops, gracefully and otherwise.
const GRACE: Duration = Duration::from_secs(5);
const HASTE: Duration = Duration::from_millis(500);
/// Bounds of a connection: its input, and the output waiting for the client beyond which nothing
/// more is read from it.
const BOUNDS: Bounds = Bounds {
    input_bytes: LINE_OF_KEYS_MAX * 2,
    output_bytes: 1 << 20,
};
const SECOND: Duration = Duration::from_secs(1);

impl Running {
    /// Listens and serves.
    ///
    /// # Errors
    /// It cannot; the error says why.
    pub fn start(options: ServerOptions) -> Result<Running, NoServer> {
        let ticks = Ticks::calibrate(&Linux, 5);
        let store = Store::new(options.store_settings(), ticks).map_err(NoServer::Store)?;
        store.set_crawler(options.crawls);
        store.set_shares(options.hot_percent as usize, options.warm_percent as usize);
        let builder = builder(&options);
        // Rings need memory that may be locked, of which a process may have little; and nobody
        // asked for them.
        let instead = (options.mechanism.is_none() && options.pattern == Pattern::Sharded)
            .then(|| builder.clone().mechanism(Mechanism::Edge));
        let users = options.auth_file.as_deref().map(about::read_users);
        let users = users.transpose().map_err(NoServer::Users)?;
        let tls = options.tls.clone().map(Tls::load).transpose();
        let tls = tls.map_err(NoServer::Tls)?.map(Arc::new);
        let server = Arc::new(Server::new(store, options, users, tls.clone()));
        let start = |builder: Builder| builder.start(layer(&server, tls.as_ref()));
        let net = match (start(builder), instead) {
            (Err(StartError::Refused { .. } | StartError::NoMechanism { .. }), Some(instead)) => {
                start(instead)
            }
            (started, _) => started,
        };
        let net = net.map_err(NoServer::Net)?;
        let mut running = Running {
            addresses: net.tcp_addresses().to_vec(),
            server,
            clock: None,
        };
        running.server.set_net(net);
        let kept = Arc::clone(&running.server);
        let clock = thread::Builder::new()
            .name("cachet-clock".into())
            .spawn(move || keep_time(&kept));
        running.clock = Some(clock.map_err(NoServer::Clock)?);
        hearth_heap::keep_helper();
        running.server.set_addresses(running.addresses());
        Ok(running)
    }

    /// The addresses it listens on, with ports, and paths.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        let network = self.addresses.iter().map(ToString::to_string);
        let path = self
            .server
            .options()
            .unix_socket
            .iter()
            .map(|path| path.display().to_string());
        network.chain(path).collect()
    }

    /// The shared state.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Stops: accepts no more connections, answers what has come, and ends.
    pub fn stop(mut self, gracefully: bool) {
        self.end(if gracefully { GRACE } else { HASTE });
    }

    fn end(&mut self, grace: Duration) {
        self.server.stop();
        self.server.store().watch().end();
        if let Some(net) = self.server.take_net() {
            let _ = net.stop(grace);
        }
        if let Some(clock) = self.clock.take() {
            clock.thread().unpark();
            // A panic has been reported already.
            let _ = clock.join();
        }
    }
}

impl Drop for Running {
    /// The shared state and the network server refer to each other, so neither would be dropped by
    /// itself.
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

/// The default mechanism for this many threads and cores. Where the threads leave no core to
/// others, clients on this machine share theirs, and requests that rings serve together wait
/// together: two threads on two cores have a 99th percentile of 1.1 to 1.4 of memcached's with
/// rings, and of 0.8 to 1.0 with edges, for a fifth less throughput per core, which is then still
/// more.
fn mechanism(pattern: Pattern, threads: usize, cores: usize) -> Mechanism {
    if pattern == Pattern::Sharded && threads > 1 && threads >= cores {
        return Mechanism::Edge;
    }
    Mechanism::best_for(pattern)
}

fn builder(options: &ServerOptions) -> hearth_net::Builder {
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
        .input_bytes_max(BOUNDS.input_bytes)
        .output_bytes_max(BOUNDS.output_bytes);
    builder = match (options.mechanism, options.pattern) {
        (Some(mechanism), _) => builder.mechanism(mechanism),
        // It finds out by itself.
        (None, Pattern::Adaptive) => builder,
        (None, pattern) => builder.mechanism(mechanism(pattern, options.threads, allowed().len())),
    };
    if options.idle_timeout > 0 {
        builder = builder.idle(Duration::from_secs(u64::from(options.idle_timeout)));
    }
    if let Some(path) = &options.unix_socket {
        return builder.unix(path, options.unix_mask);
    }
    for (address, _) in addresses(options) {
        builder = builder.tcp(address);
    }
    builder
}

/// The service, whose connections are encrypted where the options say so.
fn layer(server: &Arc<Server>, tls: Option<&Arc<Tls>>) -> Layer<Cachet> {
    let inner = Cachet(Arc::clone(server));
    let Some(tls) = tls else {
        return Layer::plain(inner);
    };
    let places = addresses(server.options());
    let places = places.into_iter().map(|(_, is)| is).collect();
    let server = Arc::clone(server);
    Layer::encrypted(
        inner,
        Arc::clone(tls),
        places,
        BOUNDS,
        move |peer, error| {
            server.note_refused(peer, error);
        },
    )
}

/// The addresses to listen on, all of this machine by default, and whether connections to them are
/// encrypted, if any are.
fn addresses(options: &ServerOptions) -> Vec<(String, bool)> {
    if options.listen.is_empty() {
        let all = everywhere(&options.port.to_string());
        return all.into_iter().map(|address| (address, true)).collect();
    }
    let of = |at: Place| {
        let addresses = place(at.name, options.port).into_iter();
        addresses.map(move |address| (address, at.is_encrypted))
    };
    options.places().flat_map(of).collect()
}

/// All addresses of this machine.
fn everywhere(port: &str) -> Vec<String> {
    let mut places = vec![format!("0.0.0.0:{port}")];
    // Not every system has IPv6; and two ports chosen by the system would differ.
    if port != "0" && std::net::TcpListener::bind("[::1]:0").is_ok() {
        places.push(format!("[::]:{port}"));
    }
    places
}

/// Parses an address or a name, with or without a port; an IPv6 address is in brackets, or has no
/// port; a star means all of this machine.
fn place(name: &str, port: u16) -> Vec<String> {
    if name == "*" {
        return everywhere(&port.to_string());
    }
    if let Some(port) = name.strip_prefix("*:") {
        return everywhere(port);
    }
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    vec![match bare.unwrap_or(name).parse::<IpAddr>() {
        Ok(address) => SocketAddr::new(address, port).to_string(),
        Err(_) if name.contains(':') => name.to_owned(),
        Err(_) => format!("{name}:{port}"),
    }]
}

/// Advances the clock every second, and does chores in the time left until the next.
fn keep_time(server: &Server) {
    let mut worker = Worker::new(server.counters_for_one());
    let store = server.store();
    let mut next = Instant::now() + SECOND;
    while !server.stops() {
        let now = Instant::now();
        if let Some(left) = next
            .checked_duration_since(now)
            .filter(|left| !left.is_zero())
        {
            thread::park_timeout(left);
            continue;
        }
        store.tick();
        // Seconds missed while the system was asleep are not made up for.
        next += SECOND * (1 + now.duration_since(next).as_secs() as u32);
        let mut chores = store.chores();
        while !server.stops() && Instant::now() < next && store.work(&mut worker, &mut chores) {}
    }
}

#[cfg(test)]
mod tests {
    use hearth_net::{Mechanism, Pattern};

    use super::{everywhere, mechanism, place};

    #[test]
    fn threads_that_take_all_cores_wait_for_edges() {
        let best = Mechanism::best_for(Pattern::Sharded);
        for (threads, cores, expected) in [
            (1, 1, best),
            (1, 2, best),
            (2, 4, best),
            (2, 2, Mechanism::Edge),
            (4, 2, Mechanism::Edge),
        ] {
            assert_eq!(mechanism(Pattern::Sharded, threads, cores), expected);
        }
    }

    #[test]
    fn addresses_are_named_as_memcached_has_them() {
        for (name, expected) in [
            ("127.0.0.1", "127.0.0.1:5"),
            ("127.0.0.1:7", "127.0.0.1:7"),
            ("localhost", "localhost:5"),
            ("localhost:7", "localhost:7"),
            ("::1", "[::1]:5"),
            ("[::1]", "[::1]:5"),
            ("[::1]:7", "[::1]:7"),
        ] {
            assert_eq!(place(name, 5), [expected], "{name}");
        }
        assert_eq!(place("*", 5), everywhere("5"));
        assert_eq!(place("*:7", 5), everywhere("7"));
        assert_eq!(everywhere("7")[0], "0.0.0.0:7");
    }
}
