//! Commands: their environment, their results, and the values that they announce.

use std::fmt::Display;
use std::sync::Arc;

use super::survey::Survey;
use super::users::Users;
use crate::items::Fresh;
use crate::store::counters::Counters;
use crate::store::watch::Topics;
use crate::store::{Condition, Mode, Refused, Store, Worker};

/// Pending output beyond which nothing more is served.
pub(super) const ANSWERS_MAX: usize = 1 << 20;

/// Receives a name and a value.
pub type Say<'a> = dyn FnMut(&str, &dyn Display) + 'a;

/// The protocol's view of the server around it.
pub trait About: Sync {
    /// Whether clients may flush everything.
    fn may_flush(&self) -> bool {
        true
    }
    /// Whether clients may stop the server.
    fn may_shut_down(&self) -> bool {
        false
    }
    /// Whether clients may list keys.
    fn may_dump(&self) -> bool {
        true
    }
    /// Whether clients may watch.
    fn may_watch(&self) -> bool {
        true
    }
    /// The users of whom a client must be one; none if all are served.
    fn users(&self) -> Option<Arc<Users>> {
        None
    }
    /// Loads the certificates of encrypted connections again.
    ///
    /// # Errors
    /// They cannot be used, or nothing is encrypted: the answer.
    fn refresh_certs(&self) -> Result<(), String> {
        Err("Error TLS not enabled".into())
    }
    /// Sets the verbosity of the log.
    fn set_verbosity(&self, _level: u32) {}
    /// Notes that a connection is closed because it speaks HTTP.
    fn closes_http(&self) {}
    /// The sum of all workers' counters.
    fn counters(&self) -> Counters;
    /// Resets all counters.
    fn reset_counters(&self);
    /// Reports the process and its connections.
    fn process(&self, _say: &mut Say<'_>) {}
    /// Reports the options it was started with.
    fn settings(&self, _say: &mut Say<'_>) {}
    /// Reports each connection.
    fn connections(&self, _say: &mut Say<'_>) {}
}

/// The action for a complete value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Storing {
    pub(super) mode: Mode,
    pub(super) condition: Condition,
    pub(super) kind: Kind,
}

/// The kind of command that wants the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A classic command, which wants no answer if it is quiet.
    Classic { is_quiet: bool },
    /// A meta command.
    Meta,
}

/// Result of a line.
#[derive(Debug)]
pub(super) enum Asked {
    /// Nothing beyond the answer.
    Done,
    /// A value follows.
    Value { fresh: Fresh, storing: Storing },
    /// This many bytes follow that are to be skipped.
    Swallow(usize),
    /// This many bytes of the line are keys not answered yet.
    Keys { left: usize, list: Keys },
    /// A list of items.
    Survey(Box<Survey>),
    /// The connection is to be told of events from now on.
    Watch(Topics),
    /// The connection is to be closed.
    Close,
    /// The server is to stop.
    Stop { gracefully: bool },
}

/// The commands' environment.
pub(super) struct Context<'a> {
    pub(super) store: &'a Store,
    pub(super) worker: &'a mut Worker,
    pub(super) about: &'a dyn About,
    pub(super) out: &'a mut Vec<u8>,
}

/// A list of keys answered piece by piece, as the answers may be much more than a client reads at
/// once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    pub(super) with_cas: bool,
    /// New expiry of the items, as clients give times.
    pub(super) touch: Option<i32>,
    /// Some keys have been answered, and perhaps sent.
    pub(super) is_begun: bool,
}

/// The answer where a new item is refused.
pub(super) fn refusal(refused: Refused) -> &'static [u8] {
    match refused {
        Refused::TooLarge => b"SERVER_ERROR object too large for cache\r\n",
        Refused::NoMemory => b"SERVER_ERROR out of memory storing object\r\n",
    }
}
