//! Options of a server.

use std::path::PathBuf;
use std::time::Duration;

use hearth_cores::Cores;

use crate::choices::{Mechanism, Pattern, WhenFull};
use crate::error::StartError;

impl Mechanism {
    /// The default choice: the cheapest mechanism that this process may use.
    pub fn best_for(pattern: Pattern) -> Mechanism {
        match pattern {
            Pattern::Sharded if Mechanism::Uring.check().is_ok() => Mechanism::Uring,
            _ => Mechanism::Edge,
        }
    }

    /// Checks that this process may use the mechanism.
    ///
    /// # Errors
    /// [`StartError::NoMechanism`], which says why not and what to use instead.
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

/// Options of a server; [`Server::builder`](crate::Server::builder) begins one.
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
            threads: Cores::limits().threads,
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
    /// Adds a TCP address such as `127.0.0.1:8080`; port 0 is any free port.
    pub fn tcp(mut self, address: impl Into<String>) -> Builder {
        self.tcp.push(address.into());
        self
    }

    /// Adds a Unix socket, whose file has these rights, such as `0o700`. A socket left over from a
    /// dead server is replaced.
    pub fn unix(mut self, path: impl Into<PathBuf>, rights: u32) -> Builder {
        self.unix.push((path.into(), rights));
        self
    }

    /// Sets which threads wait and which work. Default: sharded.
    pub fn pattern(mut self, pattern: Pattern) -> Builder {
        self.pattern = pattern;
        self
    }

    /// Sets how they wait. Default: edge-triggered; with [`Pattern::Adaptive`], whichever of edges
    /// and `io_uring` is better.
    pub fn mechanism(mut self, mechanism: Mechanism) -> Builder {
        self.mechanism = Some(mechanism);
        self
    }

    pub(crate) fn mechanism_or_edge(&self) -> Mechanism {
        self.mechanism.unwrap_or(Mechanism::Edge)
    }

    /// The mechanisms that may be used: one, except with [`Pattern::Adaptive`].
    pub(crate) fn mechanisms(&self) -> Vec<Mechanism> {
        match (self.mechanism, self.pattern) {
            (Some(mechanism), _) => vec![mechanism],
            (None, Pattern::Adaptive) if Mechanism::Uring.check().is_ok() => {
                vec![Mechanism::Edge, Mechanism::Uring]
            }
            (None, _) => vec![Mechanism::Edge],
        }
    }

    /// Sets the number of threads, including one that only waits. Default: the number of cores.
    /// With [`Pattern::Adaptive`] this is the maximum.
    pub fn threads(mut self, threads: usize) -> Builder {
        self.threads = threads.max(1);
        self
    }

    /// Sets how long a thread spins before it sleeps. Default: not at all. Spinning saves the cost
    /// of waking it, and takes the time from others that want its core. For [`Pattern::Sharded`];
    /// an adaptive server finds out by itself, and the other patterns do not spin.
    pub fn spin(mut self, time: Duration) -> Builder {
        self.spin = time;
        self
    }

    /// Sets how many connections may wait to be accepted. Default: 1024.
    pub fn backlog(mut self, backlog: u32) -> Builder {
        self.backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
        self
    }

    /// Sets how many connections there may be. Default: 1024.
    pub fn connections_max(mut self, connections: usize) -> Builder {
        self.connections_max = connections.max(1);
        self
    }

    /// Sets the treatment of connections beyond that. Default: they wait.
    pub fn when_full(mut self, when_full: WhenFull) -> Builder {
        self.when_full = when_full;
        self
    }

    /// Sets how many bytes may gather that the service does not consume. Default: 1 MiB.
    pub fn input_bytes_max(mut self, bytes: usize) -> Builder {
        self.input_bytes_max = bytes.max(1);
        self
    }

    /// Sets the size at which the output is full. Default: 256 KiB. A connection with full output
    /// is not read.
    pub fn output_bytes_max(mut self, bytes: usize) -> Builder {
        self.output_bytes_max = bytes.max(1);
        self
    }

    /// Sets how long a connection may be silent before it is closed, to the second. Default: for
    /// ever.
    pub fn idle(mut self, time: Duration) -> Builder {
        self.idle = Some(time);
        self
    }

    /// Pins the threads to these cores, in turn. Default: anywhere. A core that the process may not
    /// use is ignored.
    pub fn cores(mut self, cores: impl Into<Vec<usize>>) -> Builder {
        self.cores = cores.into();
        self
    }

    /// Measures what each operation costs ([`crate::Times`]).
    pub fn timed(mut self) -> Builder {
        self.is_timed = true;
        self
    }

    /// Sets the name of its threads, which is followed by their number.
    pub fn name(mut self, name: impl Into<String>) -> Builder {
        self.name = name.into();
        self
    }
}
