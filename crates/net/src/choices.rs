//! Pattern and mechanism of a server: which threads wait and work, and how they wait.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Pattern of threads: which wait, and which work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// One thread waits for all connections and queues the ready ones; the others take them from
    /// the queue.
    HalfAsync,
    /// All threads are alike: one waits, for one connection, and works on it while another waits.
    Leader,
    /// Each thread waits for connections of its own, and works on them.
    Sharded,
    /// [`Pattern::Sharded`], with a number of threads, and a mechanism unless one is set, that the
    /// server finds by trying.
    Adaptive,
}

/// Mechanism by which a thread waits for many connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mechanism {
    /// `select`: sets of bits, copied at each call.
    Select,
    /// `epoll`, level-triggered; where several threads share the set, one-shot and armed again.
    Level,
    /// `epoll`, edge-triggered: never armed again.
    Edge,
    /// `io_uring`: multishot receives, and sends submitted by the wait. For [`Pattern::Sharded`]
    /// and [`Pattern::Adaptive`]. Available from Linux 6.1, and forbidden on some systems.
    Uring,
}

/// Treatment of new connections beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// They wait in the system's queue until another connection closes.
    Wait,
    /// They get [`crate::Service::refusal`] and are closed.
    Refuse,
}

/// A name that is not among the choices.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{name}' is not one of {choices}")]
pub struct UnknownName {
    name: String,
    choices: String,
}

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

    /// All patterns.
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

    /// All mechanisms.
    pub fn all() -> [Mechanism; 4] {
        Self::NAMES.map(|(_, mechanism)| mechanism)
    }

    /// True if threads of this pattern can wait by the mechanism.
    pub fn goes_with(self, pattern: Pattern) -> bool {
        self != Mechanism::Uring || matches!(pattern, Pattern::Sharded | Pattern::Adaptive)
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
