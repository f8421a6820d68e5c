//! The server's knowledge of itself, and its log.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hearth_net::Peer;
use hearth_sys::signal;
use hearth_sys::usage::{self, Whose};

use super::known::{Known, name_of};
use super::service::Cachet;
use crate::options::ServerOptions;
use crate::protocol::{About, Say, Users};
use crate::store::counters::Counters;
use crate::store::watch::{Topics, WAITING_MAX};
use crate::store::{AllCounters, Store};
use crate::tls::{self, Layer, Tls};

/// Number of the network server's counters that are reported: connections, those closed for
/// silence, pauses of accepting, and their time in microseconds.
const COUNTED: usize = 4;

/// The network server.
pub(super) type Net = hearth_net::Server<Layer<Cachet>>;

/// Encryption of connections.
struct Encryption {
    tls: Arc<Tls>,
    /// Second in which the certificates were loaded.
    loaded: AtomicU32,
}

/// The state that all parts of a server share.
pub struct Server {
    store: Store,
    options: ServerOptions,
    counters: AllCounters,
    listens_at: OnceLock<Vec<String>>,
    verbosity: AtomicU32,
    /// Connections that have said something, by number.
    connections: Mutex<BTreeMap<u64, Arc<Known>>>,
    /// Users that may connect, if not all may.
    users: Mutex<Option<Arc<Users>>>,
    tls: Option<Encryption>,
    last: AtomicU64,
    rejected: AtomicU64,
    /// The network server, while it serves.
    net: Mutex<Option<Net>>,
    /// Its counters at the last reset.
    counted_before: [AtomicU64; COUNTED],
    stops: AtomicBool,
}

impl Server {
    pub(super) fn new(
        store: Store,
        options: ServerOptions,
        users: Option<Users>,
        tls: Option<Arc<Tls>>,
    ) -> Server {
        let users = users.map(Arc::new);
        let loaded = AtomicU32::new(store.clock().now());
        let tls = tls.map(|tls| Encryption { tls, loaded });
        Server {
            verbosity: AtomicU32::new(options.verbosity),
            store,
            options,
            listens_at: OnceLock::new(),
            counters: AllCounters::default(),
            connections: Mutex::default(),
            users: Mutex::new(users),
            tls,
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

    fn known(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Known>>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_addresses(&self, addresses: Vec<String>) {
        // Set once, when it listens.
        let _ = self.listens_at.set(addresses);
    }

    pub(super) fn note_connection(&self, peer: &Peer) -> Arc<Known> {
        let id = self.last.fetch_add(1, Ordering::Relaxed);
        let known = Arc::new(Known::new(id, peer.clone(), self.store.clock().now()));
        self.tell(2, || {
            format!("<{id} new connection from {}", known.address())
        });
        self.known().insert(id, Arc::clone(&known));
        self.tell_watchers(&known, "conn_new", "");
        known
    }

    pub(super) fn forget_connection(&self, known: &Known, is_faulty: bool) {
        let id = known.id;
        self.store.watch().remove(id);
        if self.known().remove(&id).is_some() {
            self.tell(2, || format!("<{id} connection closed"));
            let reason = if is_faulty { "error" } else { "normal" };
            self.tell_watchers(known, "conn_close", &format!(" reason={reason}"));
        }
    }

    fn tell_watchers(&self, known: &Known, what: &str, more: &str) {
        let watch = self.store.watch();
        if watch.wants(Topics::CONNEVENTS) {
            watch.tell(Topics::CONNEVENTS, |out| {
                let (facts, id) = (known.facts(), known.id);
                out.extend_from_slice(format!("{what} {facts}{more} cfd={id}").as_bytes());
            });
        }
    }

    /// Reads the files of users and certificates again, if there are any. Keeps what it has of
    /// those that are wrong.
    pub fn read_again(&self) {
        if self.options.auth_file.is_none() && self.tls.is_none() {
            self.tell(1, || "nothing to read again".into());
        }
        self.read_users_again();
        if self.tls.is_some() && self.refresh_certs().is_ok() {
            self.tell(1, || "read the certificates again".into());
        }
    }

    fn read_users_again(&self) {
        let Some(path) = &self.options.auth_file else {
            return;
        };
        match read_users(path) {
            Ok(users) => {
                *self.users.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(users));
                self.tell(1, || format!("read {} again", path.display()));
            }
            Err(error) => self.complain(&format!("keeps the users that it has: {error}")),
        }
    }

    fn net(&self) -> MutexGuard<'_, Option<Net>> {
        self.net.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_net(&self, net: Net) {
        *self.net() = Some(net);
    }

    pub(super) fn take_net(&self) -> Option<Net> {
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

    /// The network server's counters since it began.
    fn counted(&self) -> [u64; COUNTED] {
        match &*self.net() {
            Some(net) => {
                let counters = net.counters();
                let (pauses, us) = (counters.pauses, counters.paused_us);
                [counters.accepted, counters.idled, pauses, us]
            }
            None => [self.last.load(Ordering::Relaxed), 0, 0, 0],
        }
    }

    fn is_accepting(&self) -> bool {
        self.net()
            .as_ref()
            .is_some_and(hearth_net::Server::is_accepting)
    }

    pub(super) fn note_rejected(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }

    /// Logs a connection that is closed because its encryption fails.
    pub(super) fn note_refused(&self, peer: &Peer, error: &dyn Display) {
        self.tell(1, || {
            format!("TLS with {} failed: {error}", name_of(&peer.address))
        });
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

/// Reads a file of users.
pub(super) fn read_users(path: &Path) -> Result<Users, BadUsers> {
    let bad = |why: String| BadUsers {
        path: path.to_owned(),
        why,
    };
    let text = std::fs::read(path).map_err(|error| bad(error.to_string()))?;
    Users::of(&text).map_err(|error| bad(error.to_string()))
}

/// A file that names no users, and why.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {} for -Y: {why}", path.display())]
pub struct BadUsers {
    path: PathBuf,
    why: String,
}

/// Reports the settings of encryption. memcached has defaults for them without it, too.
fn tls_settings(settings: Option<&tls::Settings>, say: &mut Say<'_>) {
    let yes = |is: bool| if is { "yes" } else { "no" };
    say("ssl_enabled", &yes(settings.is_some()));
    let known = tls::Settings::default();
    let settings = settings.unwrap_or(&known);
    let path = |path: Option<&PathBuf>, none: &str| match path {
        Some(path) if !path.as_os_str().is_empty() => path.display().to_string(),
        _ => none.to_owned(),
    };
    let names = settings.cipher_names.as_deref().unwrap_or("NULL");
    let say_all: &[(&str, &dyn Display)] = &[
        ("ssl_chain_cert", &path(Some(&settings.chain), "(null)")),
        ("ssl_key", &path(settings.key.as_ref(), "(null)")),
        ("ssl_verify_mode", &settings.verify.number()),
        ("ssl_keyformat", &settings.key_format.number()),
        ("ssl_ciphers", &names),
        ("ssl_ca_cert", &path(settings.authorities.as_ref(), "NULL")),
        ("ssl_wbuf_size", &(u64::from(settings.buffer_kb) << 10)),
        ("ssl_session_cache", &yes(settings.resumes)),
        ("ssl_kernel_tls", &"no"),
        ("ssl_min_version", &settings.version_name()),
    ];
    for (name, value) in say_all {
        say(name, value);
    }
}

impl About for Server {
    fn may_watch(&self) -> bool {
        !self.options.disable_watch
    }

    fn users(&self) -> Option<Arc<Users>> {
        self.options.auth_file.as_ref()?;
        self.users
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

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

    fn refresh_certs(&self) -> Result<(), String> {
        let Some(encryption) = &self.tls else {
            return Err("Error TLS not enabled".into());
        };
        encryption.tls.refresh().map_err(|error| {
            self.complain(&format!("keeps the certificates that it has: {error}"));
            error.to_string()
        })?;
        let now = self.store.clock().now();
        encryption.loaded.store(now, Ordering::Relaxed);
        Ok(())
    }

    fn counters(&self) -> Counters {
        self.counters.sum()
    }

    fn reset_counters(&self) {
        self.counters.reset();
        self.rejected.store(0, Ordering::Relaxed);
        if let Some(encryption) = &self.tls {
            encryption.tls.reset();
        }
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
        let [total, idled, pauses, paused_us] = self.counted();
        let since = |counted: u64, which: usize| {
            counted.saturating_sub(self.counted_before[which].load(Ordering::Relaxed))
        };
        say("curr_connections", &open);
        say("connection_structures", &open);
        say("reserved_fds", &self.options.descriptors_besides());
        say("total_connections", &since(total, 0));
        if self.options.maxconns_fast {
            let rejected = self.rejected.load(Ordering::Relaxed);
            say("rejected_connections", &rejected);
        }
        say("accepting_conns", &u32::from(self.is_accepting()));
        say("listen_disabled_num", &since(pauses, 2));
        say("time_in_listen_disabled_us", &since(paused_us, 3));
        say("idle_kicks", &since(idled, 1));
        say("threads", &self.options.threads);
        if let Some(Encryption { tls, loaded }) = &self.tls {
            if tls.settings().resumes {
                say("ssl_new_sessions", &tls.sessions());
            }
            say("ssl_handshake_errors", &tls.failures());
            let now = self.store.clock().now();
            let since = now.saturating_sub(loaded.load(Ordering::Relaxed));
            say("time_since_server_cert_refresh", &since);
        }
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
        let users = options
            .auth_file
            .as_ref()
            .map_or_else(|| "no".to_owned(), |path| path.display().to_string());
        let details = self.store.details();
        let oldest = held.oldest.iter().flatten().min();
        let oldest = oldest.map_or(0, |used| self.store.clock().now().saturating_sub(*used));
        let say_all: &[(&str, &dyn Display)] = &[
            ("maxbytes", &held.limit),
            ("maxconns", &options.connections),
            ("tcpport", &options.port),
            ("udpport", &0),
            ("inter", &inter),
            ("verbosity", &self.verbosity.load(Ordering::Relaxed)),
            ("oldest", &oldest),
            ("evictions", &on(!options.disable_evictions)),
            ("domain_socket", &path),
            ("umask", &format!("{:o}", options.unix_mask)),
            ("shutdown_command", &yes(options.enable_shutdown)),
            ("num_threads", &options.threads),
            ("stat_key_prefix", &char::from(details.delimiter())),
            ("detail_enabled", &yes(details.is_on())),
            ("reqs_per_event", &options.requests_per_event),
            ("cas_enabled", &yes(options.shows_numbers)),
            ("tcp_backlog", &options.backlog),
            ("binding_protocol", &"ascii"),
            ("auth_enabled_sasl", &"no"),
            ("auth_enabled_ascii", &users),
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
            ("lru_segmented", &"yes"),
            ("temp_lru", &"no"),
            ("slab_reassign", &"no"),
            ("slab_automove", &0),
            ("watcher_logbuf_size", &WAITING_MAX),
            ("watch_enabled", &yes(!options.disable_watch)),
            ("memory_file", &"(null)"),
            ("allocation", &options.allocation),
        ];
        for (name, value) in say_all {
            say(name, value);
        }
        tls_settings(options.tls.as_ref(), say);
    }

    fn connections(&self, say: &mut Say<'_>) {
        for (i, at) in self.listens_at.get().into_iter().flatten().enumerate() {
            say(&format!("listener{i}:addr"), at);
            say(&format!("listener{i}:state"), &"conn_listening");
        }
        let now = self.store.clock().now();
        let addresses = self.listens_at.get().map_or(&[][..], Vec::as_slice);
        for (id, known) in self.known().iter() {
            say(&format!("{id}:addr"), &known.address());
            // Of several it is not known which.
            if let [at] = addresses {
                say(&format!("{id}:listen_addr"), at);
            }
            say(&format!("{id}:state"), &known.state());
            let silent = now.saturating_sub(known.served());
            say(&format!("{id}:secs_since_last_cmd"), &silent);
        }
    }
}
