//! Reasons why a server does not start.

use std::io;

use thiserror::Error;

use crate::choices::{Mechanism, Pattern};

/// A server that did not start; nothing of it is left.
#[derive(Debug, Error)]
pub enum StartError {
    /// It has no address to listen on.
    #[error("there is no address to listen at; give a TCP address or the path of a Unix socket")]
    NoListener,
    /// An address is invalid, or cannot be listened on.
    #[error("cannot listen at {address}: {error}; {}", advice(.address, .error))]
    Listen {
        /// The address as given.
        address: String,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// The pattern needs more threads.
    #[error(
        "this pattern needs {least} threads or more, not {threads}: one waits, the others work"
    )]
    TooFewThreads {
        /// Number of threads asked for.
        threads: usize,
        /// Smallest number.
        least: usize,
    },
    /// The threads of the pattern cannot wait by the mechanism.
    #[error("{mechanism} goes with the patterns sharded and adaptive; use edge with {pattern}")]
    Mismatch {
        /// The pattern asked for.
        pattern: Pattern,
        /// The mechanism asked for.
        mechanism: Mechanism,
    },
    /// This system lacks the mechanism, or forbids it.
    #[error(
        "this process cannot use {mechanism}: {error} ({}); use edge instead",
        why_not(.error)
    )]
    NoMechanism {
        /// The mechanism asked for.
        mechanism: Mechanism,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// The system has no descriptors, threads or memory left.
    #[error("cannot get {what}: {error}; raise the limit (see `ulimit -a`)")]
    Refused {
        /// The missing resource.
        what: &'static str,
        /// The system's error.
        #[source]
        error: io::Error,
    },
}

fn advice(address: &str, error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "another program listens there; stop it or use another port",
        io::ErrorKind::PermissionDenied => "use a port from 1024 on, or a path you may write to",
        io::ErrorKind::AddrNotAvailable => "this machine has no such address",
        _ if address.contains('/') => "give a path in an existing folder",
        _ => "give an address such as 127.0.0.1:8080",
    }
}

fn why_not(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "kernel.io_uring_disabled or a filter of system calls forbids it"
        }
        io::ErrorKind::OutOfMemory => "the system has no memory for the rings",
        _ => "it needs Linux 6.1",
    }
}
