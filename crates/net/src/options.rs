//! How a server runs.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::error::StartError;
use crate::server::Server;
use crate::service::Service;

/// Which threads wait, and which work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// One thread waits for all connections and queues those that are ready; the others take them from the queue.
    HalfAsync,
    /// All threads are alike: one waits, for one connection, and works on it while another waits.
    Leader,
    /// Each thread waits for connections of its own, and works on them.
    Sharded,
    /// As [`Pattern::Sharded`], and how many threads do, and by which mechanism if none was asked for, is found out by trying while it
    /// serves.
    Adaptive,
}

/// How a thread waits for many connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mechanism {
    /// `select`: sets of bits, copied at each call.
    Select,
    /// `epoll`, level-triggered; where several threads share the set, for one report, and armed again.
    Level,
    /// `epoll`, edge-triggered: never armed again.
    Edge,
    /// `io_uring`, which Linux has from 6.1 on and some systems forbid. [`Pattern::Sharded`]: receives that go on, and sends that go
    /// with the wait. Others: polls that go on.
    Uring,
}

/// What happens to those who connect when there are as many connections as there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// They wait in the system's queue until another goes.
    Wait,
    /// They get [`Service::refusal`] and are closed.
    Refuse,
}

/// A name that none of the choices has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    name: String,
    choices: String,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is none of {}", self.name, self.choices)
    }
}

impl std::error::Error for UnknownName {}

fn find<T: Copy>(name: &str, choices: &[(&'static str, T)]) -> Result<T, UnknownName> {
    choices
        .iter()
        .find(|(choice, _)| *choice == name)
        .map(|(_, value)| *value)
        .ok_or_else(|| UnknownName {
            name: name.to_owned(),
            choices: choices
                .iter()
                .map(|(choice, _)| *choice)
                .collect::<Vec<_>>()
                .join(", "),
        })
}

fn name_of<T: PartialEq>(value: &T, choices: &[(&'static str, T)]) -> &'static str {
    choices
        .iter()
        .find(|(_, choice)| choice == value)
        .map_or("", |(name, _)| name)
}

impl Pattern {
    const NAMES: [(&'static str, Pattern); 4] = [
        ("half-async", Pattern::HalfAsync),
        ("leader", Pattern::Leader),
        ("sharded", Pattern::Sharded),
        ("adaptive", Pattern::Adaptive),
    ];

    /// Every one.
    pub fn all() -> [Pattern; 4] {
        Self::NAMES.map(|(_, pattern)| pattern)
    }
}

impl Mechanism {
    const NAMES: [(&'static str, Mechanism); 4] = [
        ("select", Mechanism::Select),
        ("level", Mechanism::Level),
        ("edge", Mechanism::Edge),
        ("io_uring", Mechanism::Uring),
    ];

    /// Every one.
    pub fn all() -> [Mechanism; 4] {
        Self::NAMES.map(|(_, mechanism)| mechanism)
    }

    /// What to take if you have no reason for another: what costs least of what this process may use.
    pub fn best_for(pattern: Pattern) -> Mechanism {
        match pattern {
            Pattern::Sharded if Mechanism::Uring.check().is_ok() => Mechanism::Uring,
            _ => Mechanism::Edge,
        }
    }

    /// May this process use it?
    ///
    /// # Errors
    /// [`StartError::NoMechanism`], which says why not and what to take instead.
    pub fn check(self) -> Result<(), StartError> {
        if self != Mechanism::Uring {
            return Ok(());
        }
        hearth_sys::uring::is_there().map_err(|error| StartError::NoMechanism {
            mechanism: self,
            error,
        })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name_of(self, &Self::NAMES))
    }
}

impl FromStr for Pattern {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Pattern, UnknownName> {
        find(name, &Self::NAMES)
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name_of(self, &Self::NAMES))
    }
}

impl FromStr for Mechanism {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Mechanism, UnknownName> {
        find(name, &Self::NAMES)
    }
}

/// How a server is to run; [`Server::builder`] begins one.
#[derive(Clone, Debug)]
pub struct Builder {
    pub(crate) tcp: Vec<String>,
    pub(crate) unix: Vec<(PathBuf, u32)>,
    pub(crate) pattern: Pattern,
    mechanism: Option<Mechanism>,
    pub(crate) threads: usize,
    pub(crate) backlog: i32,
    pub(crate) connections_max: usize,
    pub(crate) when_full: WhenFull,
    pub(crate) input_bytes_max: usize,
    pub(crate) output_bytes_max: usize,
    pub(crate) idle: Option<Duration>,
    pub(crate) spin: Duration,
    pub(crate) cores: Vec<usize>,
    pub(crate) is_timed: bool,
    pub(crate) name: String,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            tcp: Vec::new(),
            unix: Vec::new(),
            pattern: Pattern::Sharded,
            mechanism: None,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            backlog: 1024,
            connections_max: 1024,
            when_full: WhenFull::Wait,
            input_bytes_max: 1 << 20,
            output_bytes_max: 256 << 10,
            idle: None,
            spin: Duration::ZERO,
            cores: Vec::new(),
            is_timed: false,
            name: "net".into(),
        }
    }
}

impl Builder {
    /// Listens at a TCP address as `127.0.0.1:8080`; port 0 is any that is free. May be called several times.
    pub fn tcp(mut self, address: impl Into<String>) -> Builder {
        self.tcp.push(address.into());
        self
    }

    /// Listens at a Unix socket, whose file has these rights, as `0o700`. A socket that is there already and that nobody
    /// serves is replaced. May be called several times.
    pub fn unix(mut self, path: impl Into<PathBuf>, rights: u32) -> Builder {
        self.unix.push((path.into(), rights));
        self
    }

    /// Which threads wait and which work; sharded if not said.
    pub fn pattern(mut self, pattern: Pattern) -> Builder {
        self.pattern = pattern;
        self
    }

    /// How they wait; edge-triggered if not said. With [`Pattern::Adaptive`], if not said, whichever of edges and `io_uring` is better.
    pub fn mechanism(mut self, mechanism: Mechanism) -> Builder {
        self.mechanism = Some(mechanism);
        self
    }

    pub(crate) fn mechanism_or_edge(&self) -> Mechanism {
        self.mechanism.unwrap_or(Mechanism::Edge)
    }

    /// Those that may be used: one, but with [`Pattern::Adaptive`].
    pub(crate) fn mechanisms(&self) -> Vec<Mechanism> {
        match (self.mechanism, self.pattern) {
            (Some(mechanism), _) => vec![mechanism],
            (None, Pattern::Adaptive) if Mechanism::Uring.check().is_ok() => {
                vec![Mechanism::Edge, Mechanism::Uring]
            }
            (None, _) => vec![Mechanism::Edge],
        }
    }

    /// How many threads wait and work, those that only wait included; as many as the process has cores if not said. With
    /// [`Pattern::Adaptive`] at most so many.
    pub fn threads(mut self, threads: usize) -> Builder {
        self.threads = threads.max(1);
        self
    }

    /// Before a thread sleeps it looks again and again for so long whether something comes; it sleeps at once if not said. That
    /// saves what waking it would cost, and takes the time from others who want its core. With [`Pattern::Sharded`]; an adaptive
    /// server finds out by itself, and the other patterns do not look.
    pub fn spin(mut self, time: Duration) -> Builder {
        self.spin = time;
        self
    }

    /// How many may wait to be accepted; 1024 if not said.
    pub fn backlog(mut self, backlog: u32) -> Builder {
        self.backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
        self
    }

    /// How many connections there may be at a time; 1024 if not said.
    pub fn connections_max(mut self, connections: usize) -> Builder {
        self.connections_max = connections.max(1);
        self
    }

    /// What happens to those beyond; they wait if not said.
    pub fn when_full(mut self, when_full: WhenFull) -> Builder {
        self.when_full = when_full;
        self
    }

    /// How many bytes that the service does not consume may gather, 1 MiB if not said.
    pub fn input_bytes_max(mut self, bytes: usize) -> Builder {
        self.input_bytes_max = bytes.max(1);
        self
    }

    /// At how many bytes the output is full, 256 KiB if not said. Of a connection whose output is full nothing is read.
    pub fn output_bytes_max(mut self, bytes: usize) -> Builder {
        self.output_bytes_max = bytes.max(1);
        self
    }

    /// After how long without a byte a connection is closed, to the second; never if not said.
    pub fn idle(mut self, time: Duration) -> Builder {
        self.idle = Some(time);
        self
    }

    /// Threads stay on these cores, in turn; anywhere if not said. A core that the process may not use is no error.
    pub fn cores(mut self, cores: impl Into<Vec<usize>>) -> Builder {
        self.cores = cores.into();
        self
    }

    /// Measures what each operation costs ([`crate::Times`]).
    pub fn timed(mut self) -> Builder {
        self.is_timed = true;
        self
    }

    /// What its threads are called, with their number.
    pub fn name(mut self, name: impl Into<String>) -> Builder {
        self.name = name.into();
        self
    }

    /// Listens and serves.
    ///
    /// # Errors
    /// An address is not to be had, or the pattern needs more threads.
    pub fn start<S: Service>(self, service: S) -> Result<Server<S>, StartError> {
        Server::start(self, service)
    }
}
