//! What a walk counts.

use super::world::ObjectId;
use super::{Amount, ChannelId};
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
    pub(super) touched: BTreeMap<ObjectId, f64>,
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
