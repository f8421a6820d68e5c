//! Options, by memcached's names.

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{ArgAction, Parser};
use hearth_cores::Cores;
use hearth_net::{Mechanism, Pattern, StartError};
use hearth_sync::{Drain, LockKind, Mode, Queue, Wait};

use crate::{store, tls};

/// Descriptors beyond those of connections and threads: a dozen, listeners, and some to spare.
const DESCRIPTORS: u64 = 64;
/// Descriptors of a thread that waits for connections: its wake-up, and the set it waits by.
const DESCRIPTORS_OF_THREAD: u64 = 2;

/// A key-value server that speaks memcached's text and meta protocols.
///
/// Options are named as in memcached. Where one differs, or is accepted and ignored, its text says
/// so.
#[derive(Debug, Parser)]
#[command(
    name = "cachet",
    disable_version_flag = true,
    max_term_width = 100,
    args_override_self = true
)]
pub struct Arguments {
    /// TCP port to listen on; 0 lets the system choose
    #[arg(
        short = 'p',
        long = "port",
        value_name = "NUM",
        default_value_t = 11211
    )]
    port: u16,
    /// UDP port: only 0, as UDP is not served
    #[arg(
        short = 'U',
        long = "udp-port",
        value_name = "NUM",
        default_value_t = 0
    )]
    udp_port: u16,
    /// Unix socket to listen on instead of the network
    #[arg(short = 's', long = "unix-socket", value_name = "FILE")]
    unix_socket: Option<PathBuf>,
    /// Rights of the Unix socket, in octal
    #[arg(short = 'a', long = "unix-mask", value_name = "MASK", default_value = "700", value_parser = octal)]
    unix_mask: u32,
    /// Allow the command "shutdown"
    #[arg(short = 'A', long = "enable-shutdown")]
    enable_shutdown: bool,
    /// Addresses to listen on, with or without a port, separated by commas; may be repeated. All
    /// addresses of this machine by default, or with *. With -Z, notls: before one leaves its
    /// connections plain
    #[arg(
        short = 'l',
        long = "listen",
        value_name = "ADDR",
        value_delimiter = ','
    )]
    listen: Vec<String>,
    /// Run in the background
    #[arg(short = 'd', long = "daemon")]
    daemon: bool,
    /// Allow core files of any size the system permits
    #[arg(short = 'r', long = "enable-coredumps")]
    enable_coredumps: bool,
    /// Become this user; needed when started as root
    #[arg(short = 'u', long = "user", value_name = "USER")]
    user: Option<String>,
    /// Memory for items, in megabytes, or with a suffix k, m or g
    #[arg(short = 'm', long = "memory-limit", value_name = "NUM", default_value = "64", value_parser = megabytes)]
    memory: usize,
    /// Refuse new items when memory is used up, instead of evicting old ones
    #[arg(short = 'M', long = "disable-evictions")]
    disable_evictions: bool,
    /// Connections open at once
    #[arg(short = 'c', long = "conn-limit", value_name = "NUM", default_value_t = 1024, value_parser = positive)]
    connections: usize,
    /// Lock all memory of the process
    #[arg(short = 'k', long = "lock-memory")]
    lock_memory: bool,
    /// Report more: errors; -vv: connections, too
    #[arg(short = 'v', long = "verbose", action = ArgAction::Count)]
    verbose: u8,
    /// Print the licences
    #[arg(short = 'i', long = "license")]
    license: bool,
    /// Print the version
    #[arg(short = 'V', long = "version")]
    version: bool,
    /// Write the process id to a file
    #[arg(short = 'P', long = "pidfile", value_name = "FILE")]
    pid_file: Option<PathBuf>,
    /// Ignored: there are no slab classes whose sizes could grow
    #[arg(short = 'f', long = "slab-growth-factor", value_name = "NUM")]
    growth_factor: Option<f64>,
    /// Ignored: blocks have the size that their items need
    #[arg(short = 'n', long = "slab-min-size", value_name = "BYTES")]
    slab_min: Option<usize>,
    /// Ignored: the system uses large pages by itself where it may
    #[arg(short = 'L', long = "enable-largepages")]
    large_pages: bool,
    /// Byte that ends the prefix of a key, for "stats detail", which it turns on; ":" otherwise
    #[arg(short = 'D', value_name = "CHAR", value_parser = delimiter)]
    prefix_delimiter: Option<u8>,
    /// Threads that serve; auto: the number that serves most, found by trying, as with --pattern
    /// adaptive
    #[arg(short = 't', long = "threads", value_name = "NUM", default_value = "4", value_parser = threads)]
    threads: Threads,
    /// Commands served for one connection before others have their turn
    #[arg(short = 'R', long = "max-reqs-per-event", value_name = "NUM", default_value_t = 20, value_parser = positive)]
    requests_per_event: usize,
    /// Show no numbers of values and compare none; values keep them inside, so this saves no memory
    #[arg(short = 'C', long = "disable-cas")]
    disable_cas: bool,
    /// Serve only clients that authenticate, each by a "set" whose value is "user password", as
    /// lines user:password of this file say; HUP reads it again
    #[arg(short = 'Y', long = "auth-file", value_name = "FILE")]
    auth_file: Option<PathBuf>,
    /// Encrypt connections by TLS, with -o ssl_chain_cert=FILE,ssl_key=FILE
    #[arg(short = 'Z', long = "enable-ssl")]
    ssl: bool,
    /// Features of memcached that cachet lacks: refused, with advice.
    #[arg(short = 'S', long = "enable-sasl", hide = true)]
    sasl: bool,
    #[arg(short = 'e', long = "memory-file", value_name = "FILE", hide = true)]
    memory_file: Option<PathBuf>,
    #[arg(short = 'N', long = "napi-ids", value_name = "NUM", hide = true)]
    napi_ids: Option<String>,
    /// Connections that may wait to be accepted
    #[arg(
        short = 'b',
        long = "listen-backlog",
        value_name = "NUM",
        default_value_t = 1024
    )]
    backlog: u32,
    /// Protocol: ascii or auto, which mean the same, as there is no binary one
    #[arg(short = 'B', long = "protocol", value_name = "NAME", default_value = "auto", value_parser = ["ascii", "auto"])]
    protocol: String,
    /// The largest item, with a suffix k or m; from 1k to 1024m
    #[arg(short = 'I', long = "max-item-size", value_name = "NUM", default_value = "1m", value_parser = bytes)]
    item_size: usize,
    /// Forbid the command flush_all
    #[arg(short = 'F', long = "disable-flush-all")]
    disable_flush_all: bool,
    /// Forbid lists of keys
    #[arg(short = 'X', long = "disable-dumping")]
    disable_dumping: bool,
    /// Forbid the command watch
    #[arg(short = 'W', long = "disable-watch")]
    disable_watch: bool,
    /// More, separated by commas: maxconns_fast, no_maxconns_fast, hashpower=NUM,
    /// idle_timeout=SECONDS, hot_lru_pct=NUM, warm_lru_pct=NUM, no_lru_crawler; and with -Z
    /// ssl_chain_cert=FILE, ssl_key=FILE, ssl_keyformat=PEM or DER, ssl_verify_mode=0 (none), 1
    /// (request), 2 or 3 (require), ssl_ca_cert=FILE, ssl_ciphers=NAME:NAME,
    /// ssl_min_version=2 (TLS 1.2) or 3 (TLS 1.3), ssl_session_cache. Those that tune memcached's
    /// own machinery are accepted and ignored
    #[arg(
        short = 'o',
        long = "extended",
        value_name = "LIST",
        value_delimiter = ','
    )]
    extended: Vec<String>,
    /// How memory is allocated: under a lock, combined, by message to the thread that owns it, or
    /// auto
    #[arg(long = "allocation", value_name = "MODE", default_value = "lock", value_parser = named::<Mode>, help_heading = "Hearth's own options")]
    allocation: Mode,
    /// Which lock: mutex, ticket, mcs or cohort
    #[arg(long = "allocation-lock", value_name = "KIND", default_value = "mutex", value_parser = named::<LockKind>, help_heading = "Hearth's own options")]
    allocation_lock: LockKind,
    /// How requests reach that thread: lines, zero-copy, single-copy or double-copy
    #[arg(long = "allocation-queue", value_name = "KIND", default_value = "lines", value_parser = named::<Queue>, help_heading = "Hearth's own options")]
    allocation_queue: Queue,
    /// How many requests it takes at once: all or one
    #[arg(long = "allocation-drain", value_name = "NUM", default_value = "all", value_parser = drain, help_heading = "Hearth's own options")]
    allocation_drain: Drain,
    /// How its clients wait: auto, park, or a number of microseconds to spin before they sleep
    #[arg(long = "allocation-wait", value_name = "HOW", default_value = "auto", value_parser = wait, help_heading = "Hearth's own options")]
    allocation_wait: Wait,
    /// The core it stays on
    #[arg(
        long = "allocation-core",
        value_name = "CORE",
        help_heading = "Hearth's own options"
    )]
    allocation_core: Option<usize>,
    /// Which threads wait and which work: sharded, leader, half-async or adaptive
    #[arg(
        long = "pattern",
        value_name = "NAME",
        default_value = "sharded",
        value_parser = named::<Pattern>,
        help_heading = "Hearth's own options"
    )]
    pattern: Pattern,
    /// How threads wait for connections: edge, level, select, or (with sharded and adaptive)
    /// io_uring. Default: io_uring with the pattern sharded where the system has it and the threads
    /// leave a core to others, otherwise edge; with adaptive whichever of the two is better
    #[arg(
        long = "mechanism",
        value_name = "NAME",
        value_parser = named::<Mechanism>,
        help_heading = "Hearth's own options"
    )]
    mechanism: Option<Mechanism>,
}

/// The checked options of a server.
#[derive(Clone, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub struct ServerOptions {
    /// The port; 0 for any.
    pub port: u16,
    /// Addresses to listen on; all if empty.
    pub listen: Vec<String>,
    /// Encryption of connections, except at addresses that begin with `notls:`.
    pub tls: Option<tls::Settings>,
    /// A path to listen on instead.
    pub unix_socket: Option<PathBuf>,
    /// Rights of the Unix socket.
    pub unix_mask: u32,
    /// Connections that may wait to be accepted.
    pub backlog: u32,
    /// Whether clients may stop the server.
    pub enable_shutdown: bool,
    /// Memory for items, in bytes.
    pub memory: usize,
    /// Whether to refuse new items instead of evicting old ones.
    pub disable_evictions: bool,
    /// Connections open at once.
    pub connections: usize,
    /// Whether to refuse connections beyond the limit at once; otherwise they wait.
    pub maxconns_fast: bool,
    /// Verbosity of the log.
    pub verbosity: u32,
    /// Threads that serve; the maximum if the pattern is adaptive.
    pub threads: usize,
    /// Commands served for one connection before others have their turn.
    pub requests_per_event: usize,
    /// The largest item, in bytes.
    pub item_size: usize,
    /// Whether `flush_all` is forbidden.
    pub disable_flush_all: bool,
    /// Whether lists of keys are forbidden.
    pub disable_dumping: bool,
    /// Whether watching is forbidden.
    pub disable_watch: bool,
    /// Whether clients see and compare the numbers of values.
    pub shows_numbers: bool,
    /// Byte that ends the prefix of a key.
    pub delimiter: u8,
    /// Whether keys are counted by prefix from the beginning.
    pub counts_prefixes: bool,
    /// File of users and passwords, if clients must authenticate.
    pub auth_file: Option<PathBuf>,
    /// Initial number of chains, as a power of two; 0 if not set.
    pub hash_power: u32,
    /// Seconds after which an idle connection is closed; 0 for never.
    pub idle_timeout: u32,
    /// Share of hot items, in percent.
    pub hot_percent: u32,
    /// Share of warm items, in percent.
    pub warm_percent: u32,
    /// Whether the crawler looks for expired items.
    pub crawls: bool,
    /// Pattern of threads.
    pub pattern: Pattern,
    /// Mechanism by which threads wait for connections, if set.
    pub mechanism: Option<Mechanism>,
    /// Mode of the allocation section.
    pub allocation: Mode,
    /// Details of the allocation section.
    pub running: store::Running,
    /// Whether to run in the background.
    pub daemon: bool,
    /// Whether to allow core files.
    pub core_files: bool,
    /// User to become.
    pub user: Option<String>,
    /// Whether to lock memory.
    pub lock_memory: bool,
    /// File for the process id.
    pub pid_file: Option<PathBuf>,
}

/// A place to listen at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    /// An address or a name, with or without a port.
    pub(crate) name: &'a str,
    /// Whether connections are encrypted there, if any are.
    pub(crate) is_encrypted: bool,
}

/// Request of a command line.
#[derive(Debug)]
pub enum Wanted {
    /// To start a server.
    Server(Box<ServerOptions>),
    /// To print the version.
    Version,
    /// To print the licences.
    License,
}

/// A wrong combination of options, and what to do.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WrongOption(String);

/// Extended options that concern only memcached's own machinery.
const IGNORED: &[&str] = &[
    "modern",
    "slab_reassign",
    "slab_automove",
    "slab_automove_ratio",
    "slab_automove_window",
    "slab_automove_freeratio",
    "slab_chunk_max",
    "slab_sizes",
    "chunked_items",
    "lru_maintainer",
    "lru_crawler_sleep",
    "lru_crawler_tocrawl",
    "hot_max_factor",
    "warm_max_factor",
    "temporary_ttl",
    "tail_repair_time",
    "hash_algorithm",
    "read_buf_mem_limit",
    "watcher_logbuf_size",
    "worker_logbuf_size",
    "track_sizes",
    "hashexpand",
    "inline_ascii_resp",
    "resp_obj_mem_limit",
    "drop_privileges",
    "sock_cookie_id",
];

impl Arguments {
    /// Checks the options together.
    ///
    /// # Errors
    /// Some contradict each other, or mean nothing.
    pub fn wanted(self) -> Result<Wanted, WrongOption> {
        if self.version {
            return Ok(Wanted::Version);
        }
        if self.license {
            return Ok(Wanted::License);
        }
        self.refuse_impossible()?;
        let mut options = ServerOptions {
            port: self.port,
            listen: self
                .listen
                .into_iter()
                .filter(|name| !name.is_empty())
                .collect(),
            tls: self.ssl.then(tls::Settings::default),
            unix_socket: self.unix_socket,
            unix_mask: self.unix_mask,
            backlog: self.backlog,
            enable_shutdown: self.enable_shutdown,
            memory: self.memory,
            disable_evictions: self.disable_evictions,
            connections: self.connections,
            maxconns_fast: true,
            verbosity: u32::from(self.verbose),
            threads: match self.threads {
                Threads::Count(count) => count,
                Threads::Auto => Cores::limits().threads,
            },
            requests_per_event: self.requests_per_event,
            item_size: self.item_size,
            disable_flush_all: self.disable_flush_all,
            disable_dumping: self.disable_dumping,
            disable_watch: self.disable_watch,
            shows_numbers: !self.disable_cas,
            delimiter: self.prefix_delimiter.unwrap_or(b':'),
            counts_prefixes: self.prefix_delimiter.is_some(),
            auth_file: self.auth_file,
            hash_power: 0,
            idle_timeout: 0,
            hot_percent: 20,
            warm_percent: 40,
            crawls: true,
            pattern: match self.threads {
                Threads::Count(_) => self.pattern,
                Threads::Auto => Pattern::Adaptive,
            },
            mechanism: self.mechanism,
            allocation: self.allocation,
            running: store::Running {
                mode: self.allocation,
                lock: self.allocation_lock,
                queue: self.allocation_queue,
                drain: self.allocation_drain,
                wait: self.allocation_wait,
                core: self.allocation_core,
            },
            daemon: self.daemon,
            core_files: self.enable_coredumps,
            user: self.user,
            lock_memory: self.lock_memory,
            pid_file: self.pid_file,
        };
        for extended in self.extended.iter().filter(|text| !text.is_empty()) {
            options.extend(extended)?;
        }
        options.check_tls()?;
        if options.hot_percent + options.warm_percent > 80 {
            return Err(WrongOption(
                "hot_lru_pct and warm_lru_pct exceed 80 together: leave some for cold items".into(),
            ));
        }
        Ok(Wanted::Server(Box::new(options)))
    }

    fn refuse_impossible(&self) -> Result<(), WrongOption> {
        let wrong = |text: &str| Err(WrongOption(text.into()));
        if self.udp_port != 0 {
            return wrong("UDP is not supported: omit -U, or give 0");
        }
        let pattern = self.pattern;
        if let Some(mechanism) = self.mechanism.filter(|one| !one.goes_with(pattern)) {
            return wrong(&StartError::Mismatch { pattern, mechanism }.to_string());
        }
        if self.sasl {
            return wrong("there is no SASL, as there is no binary protocol: omit -S, or use -Y");
        }
        if self.ssl && self.unix_socket.is_some() {
            return wrong("a Unix socket is not encrypted: omit -Z or -s");
        }
        if self.memory_file.is_some() {
            return wrong("items are in memory only: omit -e");
        }
        if self.napi_ids.is_some() {
            return wrong(
                "connections go to threads in turns, whatever queue they came by: omit -N",
            );
        }
        if !(1 << 10..=1 << 30).contains(&self.item_size) {
            return wrong("the largest item must have from 1k to 1024m: give -I such a size");
        }
        if self.item_size > self.memory / 2 {
            return wrong("items may have at most half of the memory: give -I less or -m more");
        }
        Ok(())
    }
}

impl ServerOptions {
    fn extend(&mut self, text: &str) -> Result<(), WrongOption> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let number = || {
            value
                .and_then(|value| value.parse::<u32>().ok())
                .ok_or_else(|| WrongOption(format!("-o {name} needs a number: -o {name}=NUM")))
        };
        match name {
            "maxconns_fast" => self.maxconns_fast = true,
            "no_maxconns_fast" | "no_modern" => self.maxconns_fast = false,
            "hashpower" => match number()? {
                power @ 12..=32 => self.hash_power = power,
                _ => return Err(WrongOption("-o hashpower is from 12 to 32".into())),
            },
            "idle_timeout" => self.idle_timeout = number()?,
            "hot_lru_pct" => self.hot_percent = number()?,
            "warm_lru_pct" => self.warm_percent = number()?,
            "lru_crawler" => self.crawls = true,
            "no_lru_crawler" => self.crawls = false,
            _ if IGNORED.contains(&name.strip_prefix("no_").unwrap_or(name)) => {}
            _ if name.strip_prefix("no_").unwrap_or(name).starts_with("ssl_") => {
                let settings = self.tls.as_mut().ok_or_else(|| {
                    WrongOption(format!(
                        "-o {name} needs encryption: add -Z or leave it away"
                    ))
                })?;
                settings.set(name, value).map_err(WrongOption)?;
            }
            _ if name.starts_with("ext_") => {
                return Err(WrongOption(format!(
                    "-o {name}: there is no external storage here; leave it away"
                )));
            }
            _ => {
                return Err(WrongOption(format!(
                    "-o {name} is unknown: see cachet --help"
                )));
            }
        }
        Ok(())
    }

    fn check_tls(&self) -> Result<(), WrongOption> {
        if let Some(settings) = &self.tls {
            return settings.check().map_err(WrongOption);
        }
        if self.places().any(|place| !place.is_encrypted) {
            return Err(WrongOption(
                "notls: is for servers that encrypt: add -Z, or leave it away".into(),
            ));
        }
        Ok(())
    }

    /// The places that `-l` names.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place<'_>> {
        // memcached accepts semicolons, too.
        let names = self.listen.iter().flat_map(|names| names.split(';'));
        names
            .filter(|name| !name.is_empty())
            .map(|name| match name.strip_prefix("notls:") {
                None => Place {
                    name,
                    is_encrypted: true,
                },
                Some(name) => Place {
                    name,
                    is_encrypted: false,
                },
            })
    }

    /// Number of descriptors that a server needs besides those of connections.
    #[must_use]
    pub fn descriptors_besides(&self) -> u64 {
        // An adaptive server has threads for two mechanisms.
        let each = match self.pattern {
            Pattern::Adaptive => 2 * DESCRIPTORS_OF_THREAD,
            _ => DESCRIPTORS_OF_THREAD,
        };
        // Saturating: more than any system allows stays more, and is refused.
        (self.threads as u64)
            .saturating_mul(each)
            .saturating_add(DESCRIPTORS)
    }

    /// The store's settings.
    #[must_use]
    pub fn store_settings(&self) -> store::Settings {
        let known = store::Settings::default();
        store::Settings {
            memory: self.memory,
            evicts: !self.disable_evictions,
            item_max: self.item_size,
            hash_power: if self.hash_power == 0 {
                known.hash_power
            } else {
                self.hash_power
            },
            shows_numbers: self.shows_numbers,
            delimiter: self.delimiter,
            counts_prefixes: self.counts_prefixes,
            running: self.running.clone(),
            ..known
        }
    }
}

/// Number of threads that serve.
#[derive(Clone, Copy, Debug)]
enum Threads {
    Count(usize),
    Auto,
}

fn threads(text: &str) -> Result<Threads, String> {
    match text {
        "auto" => Ok(Threads::Auto),
        _ => match positive(text) {
            Ok(count) => Ok(Threads::Count(count)),
            Err(mistake) => Err(format!("{mistake}, or auto")),
        },
    }
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("a number from 1 on is needed".into()),
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] if byte.is_ascii_graphic() => Ok(*byte),
        _ => Err("one character is needed, and not a space".into()),
    }
}

fn octal(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mask) if mask <= 0o777 => Ok(mask),
        _ => Err("an octal number up to 777 is needed".into()),
    }
}

/// Parses a number with a suffix, or in units of `plain` without one.
fn sized(text: &str, plain: usize) -> Result<usize, String> {
    let (digits, unit) = match text.as_bytes().last().map(u8::to_ascii_lowercase) {
        Some(b'k') => (&text[..text.len() - 1], 1 << 10),
        Some(b'm') => (&text[..text.len() - 1], 1 << 20),
        Some(b'g') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, plain),
    };
    let number = digits.parse::<usize>().ok().filter(|&number| number > 0);
    number
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(|| "a number is needed, perhaps with a suffix k, m or g".into())
}

fn bytes(text: &str) -> Result<usize, String> {
    sized(text, 1)
}

fn megabytes(text: &str) -> Result<usize, String> {
    sized(text, 1 << 20)
}

fn named<T: FromStr>(text: &str) -> Result<T, String>
where
    T::Err: fmt::Display,
{
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn drain(text: &str) -> Result<Drain, String> {
    match text {
        "all" => Ok(Drain::All),
        "one" => Ok(Drain::One),
        _ => Err("all or one is needed".into()),
    }
}

fn wait(text: &str) -> Result<Wait, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(Wait::spin_then_park()),
        ("park", _) => Ok(Wait::park()),
        (_, Ok(us)) => Ok(Wait::spin_for(Duration::from_micros(us))),
        _ => Err("auto, park or a number of microseconds is needed".into()),
    }
}
