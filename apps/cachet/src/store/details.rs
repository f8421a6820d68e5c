//! Counts by the prefix of keys, for `stats detail`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::items::KEY_MAX;

/// Most prefixes counted at a time: about a megabyte of the longest. Keys of further ones are not
/// counted, as keys without a delimiter are not.
const PREFIXES_MAX: usize = 4096;

/// Counts of one prefix.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    gets: u64,
    hits: u64,
    sets: u64,
    deletes: u64,
}

/// Counts by prefix, if they are on: otherwise a key costs one relaxed load.
#[derive(Debug)]
pub struct Details {
    is_on: AtomicBool,
    delimiter: u8,
    counts: Mutex<BTreeMap<Box<[u8]>, Counts>>,
}

/// An event of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It was asked for, and was there.
    Hit,
    /// It was asked for, and was not there.
    Miss,
    /// A value was announced for it.
    Set,
    /// It is to be deleted.
    Delete,
}

impl Details {
    /// Counts by what precedes this byte.
    #[must_use]
    pub fn new(delimiter: u8, is_on: bool) -> Details {
        Details {
            is_on: AtomicBool::new(is_on),
            delimiter,
            counts: Mutex::default(),
        }
    }

    /// The byte that ends a prefix.
    #[must_use]
    pub fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// True while it counts.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Begins or ends to count. Counts stay.
    pub fn set_on(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Box<[u8]>, Counts>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all counts.
    pub fn reset(&self) {
        self.lock().clear();
    }

    /// Counts an event, if it is on.
    #[inline]
    pub fn note(&self, key: &[u8], event: Event) {
        if self.is_on() {
            self.note_slow(key, event);
        }
    }

    #[cold]
    fn note_slow(&self, key: &[u8], event: Event) {
        debug_assert!(key.len() <= KEY_MAX);
        let Some(end) = memchr::memchr(self.delimiter, key) else {
            return;
        };
        let mut all = self.lock();
        let prefix = &key[..end];
        if all.len() >= PREFIXES_MAX && !all.contains_key(prefix) {
            return;
        }
        let counts = all.entry(prefix.into()).or_default();
        match event {
            Event::Hit => {
                counts.gets += 1;
                counts.hits += 1;
            }
            Event::Miss => counts.gets += 1,
            Event::Set => counts.sets += 1,
            Event::Delete => counts.deletes += 1,
        }
    }

    /// Writes all counts, a line for each prefix.
    pub fn write(&self, out: &mut Vec<u8>) {
        for (prefix, counts) in self.lock().iter() {
            out.extend_from_slice(b"PREFIX ");
            out.extend_from_slice(prefix);
            let Counts {
                gets,
                hits,
                sets,
                deletes,
            } = counts;
            let mut facts = String::new();
            // Writing to a string does not fail.
            let _ = write!(facts, " get {gets} hit {hits} set {sets} del {deletes}\r\n");
            out.extend_from_slice(facts.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_bounded_and_known_ones_go_on() {
        let details = Details::new(b'-', true);
        for number in 0..2 * PREFIXES_MAX {
            details.note(format!("p{number}-x").as_bytes(), Event::Set);
        }
        details.note(b"p7-y", Event::Hit);
        details.note(b"p7:y", Event::Hit);
        let mut out = Vec::new();
        details.write(&mut out);
        let text = String::from_utf8(out).expect("text");
        assert_eq!(text.lines().count(), PREFIXES_MAX);
        assert!(
            text.contains("PREFIX p7 get 1 hit 1 set 1 del 0\r\n"),
            "{text}"
        );
        details.reset();
        details.set_on(false);
        details.note(b"p7-y", Event::Hit);
        let mut out = Vec::new();
        details.write(&mut out);
        assert_eq!(out, b"");
    }
}
