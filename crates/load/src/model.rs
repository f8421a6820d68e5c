//! Rules for the values that a reader may see.
//!
//! Connections are not ordered among each other, so several writes to a key may be under way at
//! once and any of them may win. But a write that began after another was acknowledged supersedes
//! it. So a reply is stale if, before its request was made, a write had been acknowledged that
//! itself began only after the write that is seen had been acknowledged:
//!
//! ```text
//! seen   |-----acknowledged
//! later                       begin-----acknowledged
//! read                                                begin-----seen: stale
//! ```
//!
//! For each key the model keeps the latest beginning of any acknowledged write (the *bar*) and the
//! times at which its last few writes were acknowledged. A read takes the bar with it; the value it
//! sees is stale if it was acknowledged before that bar.
//!
//! | field | writer | reader |
//! |---|---|---|
//! | a key's record | who begins or ends its requests, under the stripe's lock | the same |
//!
//! All times are of one clock. A beginning is taken before the request's bytes leave, an end after
//! the reply's bytes came: writes seem longer than they were, and the model never assumes an order
//! that did not exist.

use std::sync::{Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use crate::content::{Content, Harm};

/// Number of locks, each for the keys of one remainder.
const STRIPES: usize = 256;
/// Number of acknowledged writes of a key whose times are remembered.
const REMEMBERED: usize = 4;
/// Shift of the run's mark in a version: the upper half names the run that wrote it.
const MARK_SHIFT: u32 = 32;
/// A version that is never written as a whole: a reader that sees it has seen half a request.
pub const NEVER: u64 = u64::MAX;

/// Fault of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Wrong {
    /// The bytes are not those of any write.
    #[error("corrupt: {0}")]
    Harmed(Harm),
    /// It is the value of another key.
    #[error("the value of another key, number {seen}")]
    OtherKey {
        /// The key of the value.
        seen: u64,
    },
    /// The version was not written yet, or only as half a request.
    #[error("version {version:#x} was never written")]
    NeverWritten {
        /// The version in the reply.
        version: u64,
    },
    /// A later write had been acknowledged before the request was made.
    #[error(
        "version {version:#x} had been replaced {} before the request",
        crate::units::show_ns(*.by_ns as f64)
    )]
    TooOld {
        /// The version that was seen.
        version: u64,
        /// Lower bound on how stale the value was, in ns.
        by_ns: u64,
    },
    /// There is no value, although one was acknowledged and the server may not evict.
    #[error("a value that was acknowledged is missing")]
    Lost,
}

#[derive(Clone, Debug, Default)]
struct Record {
    /// Number of writes begun; with the mark it is the version of the last one.
    begun: u32,
    /// Number of writes ended; the next goes to this place of `ends`, modulo its length.
    ended: u32,
    /// Latest beginning of an acknowledged write; 0 before there is one.
    bar_ns: u64,
    /// Versions, without the mark, and when they were acknowledged: the last few, in that order.
    ends: [(u32, u64); REMEMBERED],
    /// Time at which the last write that has left `ends` was acknowledged.
    forgotten_ns: u64,
    /// Versions begun and not acknowledged.
    open: Vec<u32>,
}

/// The oldest answer to a read that is acceptable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar(pub(crate) u64);

/// The model of all keys.
#[derive(Debug)]
pub struct Model {
    mark: u32,
    stripes: Vec<Mutex<Vec<Record>>>,
    may_evict: bool,
}

impl Model {
    /// A model of `space` keys. The mark tells this run's values from an earlier run's. Without
    /// `may_evict`, a missing value is an error once it was acknowledged.
    pub fn new(space: u64, mark: u32, may_evict: bool) -> Model {
        // All ones are reserved for what is never written.
        let mark = mark & (u32::MAX >> 1);
        let records = space as usize / STRIPES + 1;
        Model {
            mark,
            stripes: (0..STRIPES)
                .map(|_| Mutex::new(vec![Record::default(); records]))
                .collect(),
            may_evict,
        }
    }

    fn with<R>(&self, key: u64, then: impl FnOnce(&mut Record) -> R) -> R {
        let stripe = &self.stripes[key as usize % STRIPES];
        let mut records: MutexGuard<'_, Vec<Record>> =
            stripe.lock().unwrap_or_else(PoisonError::into_inner);
        then(&mut records[key as usize / STRIPES])
    }

    /// Begins a write and returns its version.
    pub fn write_begins(&self, key: u64) -> u64 {
        self.with(key, |record| {
            record.begun += 1;
            record.open.push(record.begun);
            u64::from(self.mark) << MARK_SHIFT | u64::from(record.begun)
        })
    }

    /// Ends a write that began at `begin_ns` and was acknowledged at `now_ns`.
    pub fn write_ends(&self, key: u64, version: u64, begin_ns: u64, now_ns: u64) {
        self.with(key, |record| {
            record.bar_ns = record.bar_ns.max(begin_ns);
            record.close(version as u32);
            let place = record.ended as usize % REMEMBERED;
            record.forgotten_ns = record.forgotten_ns.max(record.ends[place].1);
            record.ends[place] = (version as u32, now_ns);
            record.ended += 1;
        });
    }

    /// Ends a write that the server did not accept.
    pub fn write_refused(&self, key: u64, version: u64) {
        self.with(key, |record| record.close(version as u32));
    }

    /// Begins a read and returns how new its answer has to be.
    pub fn read_begins(&self, key: u64) -> Bar {
        self.with(key, |record| Bar(record.bar_ns))
    }

    /// Checks a value that a read saw.
    ///
    /// # Errors
    /// The fault.
    pub fn read_sees(
        &self,
        content: &Content,
        key: u64,
        bar: Bar,
        value: &[u8],
    ) -> Result<(), Wrong> {
        let head = content.examine(value).map_err(Wrong::Harmed)?;
        if head.key != key {
            return Err(Wrong::OtherKey { seen: head.key });
        }
        let version = head.version;
        if version == NEVER {
            return Err(Wrong::NeverWritten { version });
        }
        let is_of_this_run = version >> MARK_SHIFT == u64::from(self.mark);
        self.with(key, |record| {
            if is_of_this_run && version as u32 > record.begun {
                return Err(Wrong::NeverWritten { version });
            }
            let end = match is_of_this_run {
                true => record.end_of(version as u32),
                // An earlier run's value is older than all of this one's.
                false => Some(0),
            };
            match end {
                Some(end) if end < bar.0 => Err(Wrong::TooOld {
                    version,
                    by_ns: bar.0 - end,
                }),
                _ => Ok(()),
            }
        })
    }

    /// Checks a read that saw no value.
    ///
    /// # Errors
    /// There has to be a value.
    pub fn read_misses(&self, bar: Bar) -> Result<(), Wrong> {
        if bar.0 > 0 && !self.may_evict {
            return Err(Wrong::Lost);
        }
        Ok(())
    }
}

impl Record {
    fn close(&mut self, version: u32) {
        if let Some(place) = self.open.iter().position(|other| *other == version) {
            self.open.swap_remove(place);
        }
    }

    /// Time at which a version was acknowledged, or the latest moment at which it may have been;
    /// none if it may still be under way, or was lost on the way and may yet arrive.
    fn end_of(&self, version: u32) -> Option<u64> {
        if self.open.contains(&version) {
            return None;
        }
        let known = self.ends.iter().find(|(other, _)| *other == version);
        Some(known.map_or(self.forgotten_ns, |(_, end)| *end))
    }
}

#[cfg(test)]
mod tests;
