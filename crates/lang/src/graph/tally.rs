//! What a walk counts.

use super::known::Known;
use super::world::ObjectId;
use super::{Amount, ChannelId, Direction, UnknownKind};
use crate::source::Span;
use std::collections::BTreeMap;

/// Messages on one half-channel, in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Use {
    pub(super) messages: f64,
    /// The size of the last one.
    last_bytes: f64,
    /// The bytes of all of them.
    pub(super) bytes: f64,
    /// `messages` follows from constants alone.
    pub(super) is_exact: bool,
    /// The sizes do.
    pub(super) is_size_exact: bool,
}

/// What happens in a pass, or once.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Of computing, in nanoseconds.
    pub(super) work_ns: f64,
    /// It has loops or conditions of which not all is known.
    pub(super) is_work_estimate: bool,
    /// The number of passes in which the component stops, at the latest.
    pub(super) stops_after: Option<u64>,
    pub(super) sends: BTreeMap<ChannelId, Use>,
    pub(super) receives: BTreeMap<ChannelId, Use>,
    /// Accesses to elements of an array, or to fields.
    /// What was sent on which channel.
    pub(super) messages: Vec<(ChannelId, Known)>,
    /// Who is connected for a while: the sender first.
    pub(super) temporary: Vec<(ChannelId, ChannelId, Span)>,
    /// What each sending or receiving is followed by.
    pub(super) next: BTreeMap<Operation, Next>,
    pub(super) unknowns: Vec<(UnknownKind, &'static str, Span)>,
    pub(super) touched: BTreeMap<ObjectId, f64>,
}

/// Sending or receiving on a channel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Operation {
    pub(super) is_send: bool,
    pub(super) channel: ChannelId,
}

impl Operation {
    pub(super) fn new(direction: Direction, channel: ChannelId) -> Operation {
        Operation {
            is_send: direction == Direction::Out,
            channel,
        }
    }
}

/// What comes after an operation, on all ways.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Next {
    /// Always this one, after at most so many nanoseconds of computing.
    Always(Operation, f64),
    Several,
}

impl Tally {
    /// Another way from one operation to the next.
    pub(super) fn follows(&mut self, first: Operation, second: Option<Operation>, work_ns: f64) {
        let now = match second {
            Some(second) => Next::Always(second, work_ns),
            None => Next::Several,
        };
        let known = self.next.entry(first).or_insert(now);
        *known = match (*known, now) {
            (Next::Always(a, x), Next::Always(b, y)) if a == b => Next::Always(a, x.max(y)),
            _ => Next::Several,
        };
    }
}

impl Default for Use {
    fn default() -> Use {
        Use {
            messages: 0.0,
            last_bytes: 0.0,
            bytes: 0.0,
            is_exact: true,
            is_size_exact: true,
        }
    }
}

impl Use {
    /// So many messages more, each of so many bytes.
    pub(super) fn add(&mut self, messages: f64, bytes: f64, is_exact: bool, is_size_exact: bool) {
        self.messages += messages;
        self.bytes += messages * bytes;
        self.last_bytes = bytes;
        self.is_exact &= is_exact;
        self.is_size_exact &= is_size_exact;
    }

    /// Of one message.
    pub(super) fn mean_bytes(&self) -> Amount {
        let value = match self.messages > 0.0 {
            true => self.bytes / self.messages,
            false => self.last_bytes,
        };
        Amount {
            value,
            is_exact: self.is_size_exact,
        }
    }
}
