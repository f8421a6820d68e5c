//! What a reader may see.
//!
//! Connections are not ordered among each other, so several writes to a key may be under way at once
//! and any of them may win. But a write that began after another was acknowledged has the last word
//! over it. So a reply is too old if, before its request was made, a write had been acknowledged that
//! itself began only after the write that is seen had been acknowledged:
//!
//! ```text
//! seen   |-----acknowledged
//! later                       begin-----acknowledged
//! read                                                begin-----seen: too old
//! ```
//!
//! For each key the model keeps the latest beginning of any acknowledged write (the *bar*) and when
//! its last few writes were acknowledged. A read takes the bar with it; what it sees is too old if it
//! was acknowledged before that bar.
//!
//! | field | who writes | who reads |
//! |---|---|---|
//! | a key's record | whoever begins or ends a request of the key, under the stripe's lock | the same |
//!
//! Times are of one clock. A beginning is taken before the request's bytes leave and an end after the
//! reply's came, so that writes seem longer than they were and no order is claimed that was none.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::content::{Content, Harm};

/// Locks, each for the keys of one remainder.
const STRIPES: usize = 256;
/// How many acknowledged writes of a key are remembered with their times.
const REMEMBERED: usize = 4;
/// Versions of a run begin with its mark: the upper half says which run wrote it.
const MARK_SHIFT: u32 = 32;
/// A version that is never written as a whole: a reader that sees it has seen half a request.
pub const NEVER: u64 = u64::MAX;

/// What is wrong with a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The bytes are none that were ever written.
    Harmed(Harm),
    /// It is the value of another key.
    OtherKey {
        /// Of which.
        seen: u64,
    },
    /// A version that was not written yet, or only as half a request.
    NeverWritten {
        /// Which.
        version: u64,
    },
    /// A later write had been acknowledged before the request was made.
    TooOld {
        /// Of which version it is.
        version: u64,
        /// By so many nanoseconds at least the later write came after it.
        by_ns: u64,
    },
    /// There is no value, though one was acknowledged and the server may not evict.
    Lost,
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Wrong::Harmed(harm) => write!(f, "corrupt: {harm}"),
            Wrong::OtherKey { seen } => write!(f, "the value of another key, number {seen}"),
            Wrong::NeverWritten { version } => write!(f, "version {version:#x} was never written"),
            Wrong::TooOld { version, by_ns } => write!(
                f,
                "version {version:#x} had been replaced {} before the request",
                crate::units::show_ns(*by_ns as f64)
            ),
            Wrong::Lost => f.write_str("a value that was acknowledged is not there"),
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Record {
    /// Writes begun; the version of the last is this number with the mark.
    begun: u32,
    /// How many ended; the next goes to this place of `ends`, modulo its length.
    ended: u32,
    /// The latest beginning of an acknowledged write, 0 without one.
    bar_ns: u64,
    /// Versions, without the mark, and when they were acknowledged: the last few, in that order.
    ends: [(u32, u64); REMEMBERED],
    /// When the last of those was acknowledged that are in `ends` no more.
    forgotten_ns: u64,
    /// Versions begun and not acknowledged.
    open: Vec<u32>,
}

/// What a reader takes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar(pub(crate) u64);

/// What is known about all keys.
#[derive(Debug)]
pub struct Model {
    mark: u32,
    stripes: Vec<Mutex<Vec<Record>>>,
    may_evict: bool,
}

impl Model {
    /// For `space` keys. The mark tells this run's values from an earlier one's. Without `may_evict`
    /// a missing value is an error once it was acknowledged.
    pub fn new(space: u64, mark: u32, may_evict: bool) -> Model {
        // All ones are kept for what is never written.
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

    /// A write begins: the version to write.
    pub fn write_begins(&self, key: u64) -> u64 {
        self.with(key, |record| {
            record.begun += 1;
            record.open.push(record.begun);
            u64::from(self.mark) << MARK_SHIFT | u64::from(record.begun)
        })
    }

    /// A write that began at `begin_ns` was acknowledged at `now_ns`.
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

    /// The server said that it did not take a write.
    pub fn write_refused(&self, key: u64, version: u64) {
        self.with(key, |record| record.close(version as u32));
    }

    /// A read begins: how new its answer has to be.
    pub fn read_begins(&self, key: u64) -> Bar {
        self.with(key, |record| Bar(record.bar_ns))
    }

    /// A read saw a value.
    ///
    /// # Errors
    /// What is wrong with it.
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

    /// A read saw no value.
    ///
    /// # Errors
    /// There has to be one.
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

    /// When a version was acknowledged, or the latest moment it may have been; none if it may still be
    /// under way, or was lost on the way and may yet arrive.
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
