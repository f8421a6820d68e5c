//! The server's knowledge of itself, and its log.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hearth_net::Peer;
use hearth_sys::signal;
use hearth_sys::usage::{self, Whose};

use super::service::Cachet;
use crate::options::ServerOptions;
use crate::protocol::{About, Say};
use crate::store::counters::Counters;
use crate::store::{AllCounters, Store};

/// The state that all parts of a server share.
pub struct Server {
    store: Store,
    options: ServerOptions,
    counters: AllCounters,
    listens_at: OnceLock<Vec<String>>,
    verbosity: AtomicU32,
    /// Connections that have said something, by number: the other end.
    connections: Mutex<BTreeMap<u64, Peer>>,
    last: AtomicU64,
    rejected: AtomicU64,
    /// The network server, while it serves.
    net: Mutex<Option<hearth_net::Server<Cachet>>>,
    /// Its counters at the last reset: connections, and those closed for silence.
    counted_before: [AtomicU64; 2],
    stops: AtomicBool,
}

impl Server {
    pub(super) fn new(store: Store, options: ServerOptions) -> Server {
        Server {
            verbosity: AtomicU32::new(options.verbosity),
            store,
            options,
            listens_at: OnceLock::new(),
            counters: AllCounters::default(),
            connections: Mutex::default(),
            last: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            net: Mutex::default(),
            counted_before: Default::default(),
            stops: AtomicBool::new(false),
        }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The options.
    pub fn options(&self) -> &ServerOptions {
        &self.options
    }

    pub(super) fn counters_for_one(&self) -> Arc<Counters> {
        self.counters.one_more()
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<u64, Peer>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_addresses(&self, addresses: Vec<String>) {
        // Set once, when it listens.
        let _ = self.listens_at.set(addresses);
    }

    pub(super) fn note_connection(&self, peer: &Peer) -> u64 {
        let id = self.last.fetch_add(1, Ordering::Relaxed);
        self.tell(2, || format!("<{id} new connection from {}", name(peer)));
        self.known().insert(id, peer.clone());
        id
    }

    pub(super) fn forget_connection(&self, id: u64) {
        if self.known().remove(&id).is_some() {
            self.tell(2, || format!("<{id} connection closed"));
        }
    }

    fn net(&self) -> MutexGuard<'_, Option<hearth_net::Server<Cachet>>> {
        self.net.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_net(&self, net: hearth_net::Server<Cachet>) {
        *self.net() = Some(net);
    }

    pub(super) fn take_net(&self) -> Option<hearth_net::Server<Cachet>> {
        self.net().take()
    }

    /// Number of open connections, whether or not they have said something.
    fn open(&self) -> usize {
        match &*self.net() {
            Some(net) => net.connections(),
            // It is starting or ending.
            None => self.known().len(),
        }
    }

    /// Number of connections, and of those closed for silence, since the server began.
    fn counted(&self) -> [u64; 2] {
        match &*self.net() {
            Some(net) => {
                let counters = net.counters();
                [counters.accepted, counters.idled]
            }
            None => [self.last.load(Ordering::Relaxed), 0],
        }
    }

    pub(super) fn note_rejected(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn stop(&self) {
        // Release: a thread that sees it sees everything done before.
        self.stops.store(true, Ordering::Release);
    }

    pub(super) fn stops(&self) -> bool {
        self.stops.load(Ordering::Acquire)
    }

    /// Stops the process, as a signal would.
    pub(super) fn ask_to_stop(&self, gracefully: bool) {
        signal::send_self(if gracefully {
            signal::USER_1
        } else {
            signal::INTERRUPT
        });
    }

    /// Logs a message at a level.
    pub fn tell(&self, level: u32, what: impl FnOnce() -> String) {
        if self.verbosity.load(Ordering::Relaxed) >= level {
            self.complain(&what());
        }
    }

    /// Logs a message at any level. `eprintln!` would panic without a reader, and with it the
    /// connection that the message is about.
    pub fn complain(&self, what: &str) {
        let _ = writeln!(std::io::stderr(), "cachet: {what}");
    }
}

/// Formats the other end for statistics.
fn name(peer: &Peer) -> String {
    match peer {
        Peer::Tcp(address) if address.is_ipv6() => format!("tcp6:{address}"),
        Peer::Tcp(address) => format!("tcp:{address}"),
        Peer::Unix => "unix".into(),
    }
}

impl About for Server {
    fn may_flush(&self) -> bool {
        !self.options.disable_flush_all
    }

    fn may_shut_down(&self) -> bool {
        self.options.enable_shutdown
    }

    fn may_dump(&self) -> bool {
        !self.options.disable_dumping
    }

    fn set_verbosity(&self, level: u32) {
        self.verbosity.store(level, Ordering::Relaxed);
    }

    fn closes_http(&self) {
        self.tell(1, || {
            "closes a connection that speaks HTTP: is a browser or a proxy sent here?".into()
        });
    }

    fn counters(&self) -> Counters {
        self.counters.sum()
    }

    fn reset_counters(&self) {
        self.counters.reset();
        self.rejected.store(0, Ordering::Relaxed);
        for (before, counted) in self.counted_before.iter().zip(self.counted()) {
            before.store(counted, Ordering::Relaxed);
        }
    }

    fn process(&self, say: &mut Say<'_>) {
        let used = usage::read(Whose::Process);
        let seconds = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        say("rusage_user", &seconds(used.user_us));
        say("rusage_system", &seconds(used.system_us));
        say("max_connections", &self.options.connections);
        let open = self.open();
        let [total, idled] = self.counted();
        let since = |counted: u64, which: usize| {
            counted.saturating_sub(self.counted_before[which].load(Ordering::Relaxed))
        };
        say("curr_connections", &open);
        say("total_connections", &since(total, 0));
        say(
            "rejected_connections",
            &self.rejected.load(Ordering::Relaxed),
        );
        say(
            "accepting_conns",
            &u32::from(open < self.options.connections),
        );
        say("idle_kicks", &since(idled, 1));
        say("threads", &self.options.threads);
    }

    fn settings(&self, say: &mut Say<'_>) {
        let options = &self.options;
        // Shows the present values of settings that may change.
        let held = self.store.holdings();
        let on = |is: bool| if is { "on" } else { "off" };
        let yes = |is: bool| if is { "yes" } else { "no" };
        let none = || "NULL".to_owned();
        let path = options
            .unix_socket
            .as_ref()
            .map_or_else(none, |path| path.display().to_string());
        let inter = if options.listen.is_empty() {
            none()
        } else {
            options.listen.join(",")
        };
        let say_all: &[(&str, &dyn Display)] = &[
            ("maxbytes", &held.limit),
            ("maxconns", &options.connections),
            ("tcpport", &options.port),
            ("udpport", &0),
            ("inter", &inter),
            ("verbosity", &self.verbosity.load(Ordering::Relaxed)),
            ("evictions", &on(!options.disable_evictions)),
            ("domain_socket", &path),
            ("umask", &format!("{:o}", options.unix_mask)),
            ("shutdown_command", &yes(options.enable_shutdown)),
            ("num_threads", &options.threads),
            ("stat_key_prefix", &":"),
            ("detail_enabled", &"no"),
            ("reqs_per_event", &options.requests_per_event),
            ("cas_enabled", &"yes"),
            ("tcp_backlog", &options.backlog),
            ("binding_protocol", &"ascii"),
            ("auth_enabled_sasl", &"no"),
            ("auth_enabled_ascii", &"no"),
            ("item_size_max", &options.item_size),
            ("maxconns_fast", &yes(options.maxconns_fast)),
            ("hashpower_init", &options.hash_power),
            ("flush_enabled", &yes(!options.disable_flush_all)),
            ("dump_enabled", &yes(!options.disable_dumping)),
            ("idle_timeout", &options.idle_timeout),
            ("hash_algorithm", &"keyed folded multiply"),
            ("lru_crawler", &yes(self.store.crawls())),
            ("hot_lru_pct", &held.shares[0]),
            ("warm_lru_pct", &held.shares[1]),
            ("allocation", &options.allocation),
        ];
        for (name, value) in say_all {
            say(name, value);
        }
    }

    fn connections(&self, say: &mut Say<'_>) {
        for (i, at) in self.listens_at.get().into_iter().flatten().enumerate() {
            say(&format!("listener{i}:addr"), at);
            say(&format!("listener{i}:state"), &"conn_listening");
        }
        for (id, peer) in self.known().iter() {
            say(&format!("{id}:addr"), &name(peer));
        }
    }
}
