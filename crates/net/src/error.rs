//! Why a server does not start.

use std::fmt;
use std::io;

use crate::options::Mechanism;

/// A server that did not start; nothing of it is left.
#[derive(Debug)]
pub enum StartError {
    /// Nobody could connect to it.
    NoListener,
    /// An address is none, or is not to be had.
    Listen {
        /// As it was given.
        address: String,
        /// What the system says.
        error: io::Error,
    },
    /// A pattern that needs more threads than were asked for.
    TooFewThreads {
        /// What was asked for.
        threads: usize,
        /// The fewest.
        least: usize,
    },
    /// This system has no such way to wait, or forbids it.
    NoMechanism {
        /// What was asked for.
        mechanism: Mechanism,
        /// What the system says.
        error: io::Error,
    },
    /// The system has no descriptors, threads or memory left.
    Refused {
        /// What was wanted.
        what: &'static str,
        /// What the system says.
        error: io::Error,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::NoListener => f.write_str(
                "there is no address to listen at; give a TCP address or the path of a Unix socket",
            ),
            StartError::Listen { address, error } => {
                let next = match error.kind() {
                    io::ErrorKind::AddrInUse => {
                        "another program listens there; stop it or take another port"
                    }
                    io::ErrorKind::PermissionDenied => {
                        "take a port from 1024 on, or a path you may write to"
                    }
                    io::ErrorKind::AddrNotAvailable => "this machine has no such address",
                    _ if address.contains('/') => "give a path in a folder that is there",
                    _ => "give an address such as 127.0.0.1:8080",
                };
                write!(f, "cannot listen at {address}: {error}; {next}")
            }
            StartError::TooFewThreads { threads, least } => write!(
                f,
                "this pattern needs {least} threads or more, not {threads}: one waits, the others work"
            ),
            StartError::NoMechanism { mechanism, error } => {
                let why = match error.kind() {
                    io::ErrorKind::PermissionDenied => {
                        "kernel.io_uring_disabled or a filter of system calls forbids it"
                    }
                    io::ErrorKind::OutOfMemory => "it has no memory for the rings",
                    _ => "it needs Linux 6.1",
                };
                write!(
                    f,
                    "this system has no {mechanism} for us: {error} ({why}); take edge instead"
                )
            }
            StartError::Refused { what, error } => {
                write!(
                    f,
                    "cannot get {what}: {error}; raise the limit (see `ulimit -a`)"
                )
            }
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StartError::Listen { error, .. }
            | StartError::NoMechanism { error, .. }
            | StartError::Refused { error, .. } => Some(error),
            _ => None,
        }
    }
}
