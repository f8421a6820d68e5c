//! The counts of a walk.

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
    /// All of them are handed over.
    pub(super) is_moved: bool,
}

/// The events of a pass, or of a single execution.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Computing, in nanoseconds.
    pub(super) work_ns: f64,
    /// Waiting for the outside world, at a nominal time for each call.
    pub(super) outside_ns: f64,
    /// It has loops or conditions of which not all is known.
    pub(super) is_work_estimate: bool,
    /// The number of passes in which the component stops, at the latest.
    pub(super) stops_after: Option<u64>,
    pub(super) sends: BTreeMap<ChannelId, Use>,
    pub(super) receives: BTreeMap<ChannelId, Use>,
    /// Messages sent, by channel.
    pub(super) messages: Vec<(ChannelId, Known)>,
    /// Temporary connections: the sender first.
    pub(super) temporary: Vec<(ChannelId, ChannelId, Span)>,
    /// The operations that follow each send and receive.
    pub(super) next: BTreeMap<Operation, Next>,
    pub(super) unknowns: Vec<(UnknownKind, &'static str, Span)>,
    /// Timers that send on a channel, and their seconds.
    pub(super) timers: Vec<(ChannelId, f64)>,
    /// Selects, whose arms are counted above as often as each other.
    pub(super) choices: Vec<Choice>,
    /// Accesses to elements of an array, or to fields.
    pub(super) touched: BTreeMap<ObjectId, f64>,
}

/// The part of a pass that one arm adds.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// None for a default, and where the channel is not known.
    pub(super) channel: Option<ChannelId>,
    pub(super) is_default: bool,
    /// Number of times it is taken in a pass.
    pub(super) times: f64,
    pub(super) tally: Tally,
}

/// A select of a behaviour, with the arms that are taken more than once in a life.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) parts: Vec<Part>,
}

impl Choice {
    /// True if it chooses between the same channels.
    pub(super) fn is_like(&self, other: &Choice) -> bool {
        let key = |part: &Part| (part.channel, part.is_default);
        self.parts.len() == other.parts.len()
            && self.parts.iter().map(key).eq(other.parts.iter().map(key))
    }

    pub(super) fn join(&mut self, other: &Choice) {
        for (mine, part) in self.parts.iter_mut().zip(&other.parts) {
            mine.times += part.times;
            mine.tally.add_scaled(&part.tally, 1.0);
        }
    }
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

/// The successors of an operation, on all paths.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Next {
    /// Always this one, after at most this many nanoseconds of computing.
    Always(Operation, f64),
    Several,
}

impl Tally {
    /// Adds all that another part of the same pass has counted.
    pub(super) fn append(&mut self, part: &Tally) {
        self.add_scaled(part, 1.0);
        self.is_work_estimate |= part.is_work_estimate;
        self.stops_after = match (self.stops_after, part.stops_after) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.messages.extend(&part.messages);
        self.temporary.extend(&part.temporary);
        self.timers.extend(&part.timers);
        for unknown in &part.unknowns {
            if !self.unknowns.contains(unknown) {
                self.unknowns.push(*unknown);
            }
        }
        for (&operation, &next) in &part.next {
            match next {
                Next::Always(second, work_ns) => self.follows(operation, Some(second), work_ns),
                Next::Several => self.follows(operation, None, 0.0),
            }
        }
    }

    /// Adds counts, multiplied.
    pub(super) fn add_scaled(&mut self, part: &Tally, times: f64) {
        self.work_ns += times * part.work_ns;
        self.outside_ns += times * part.outside_ns;
        for (mine, theirs) in [
            (&mut self.sends, &part.sends),
            (&mut self.receives, &part.receives),
        ] {
            for (channel, used) in theirs {
                mine.entry(*channel).or_default().add_scaled(used, times);
            }
        }
        for (object, accesses) in &part.touched {
            *self.touched.entry(*object).or_default() += times * accesses;
        }
    }

    /// Notes a select, with others between the same channels.
    pub(super) fn choose(&mut self, choice: Choice) {
        match self.choices.iter_mut().find(|known| known.is_like(&choice)) {
            Some(known) => known.join(&choice),
            None => self.choices.push(choice),
        }
    }

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
            is_moved: true,
        }
    }
}

impl Use {
    /// Adds messages of a size.
    pub(super) fn add(&mut self, messages: f64, bytes: f64, is_exact: bool, is_size_exact: bool) {
        self.messages += messages;
        self.bytes += messages * bytes;
        self.last_bytes = bytes;
        self.is_exact &= is_exact;
        self.is_size_exact &= is_size_exact;
    }

    fn add_scaled(&mut self, other: &Use, times: f64) {
        self.messages = (self.messages + times * other.messages).max(0.0);
        self.bytes = (self.bytes + times * other.bytes).max(0.0);
        self.last_bytes = other.last_bytes;
        self.is_exact &= other.is_exact;
        self.is_size_exact &= other.is_size_exact;
        self.is_moved &= other.is_moved;
    }

    /// The size of one message.
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
