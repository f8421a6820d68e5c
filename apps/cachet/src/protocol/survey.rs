//! Lists of items, made piece by piece: there may be millions.

use std::collections::BTreeMap;

use super::command::{ANSWERS_MAX, Asked, Context};
use super::statistics::{BAD_CLASS, answer, is_class};
use super::words::{Words, has_binary_key, unsigned_32};
use crate::items::{Entry, bytes_of};
use crate::store::Walk;
use crate::store::clock::Clock;

/// Items looked at before others have their turn: half a millisecond if none of them is in a cache.
const TURN: usize = 4096;
/// Items looked at with one stripe locked.
const PIECE: usize = 256;
/// Longest output of `stats cachedump`, as in memcached.
const CACHE_DUMP_MAX: usize = 2 << 20;
/// Width of a size class, as in memcached.
const SIZE_CLASS: usize = 32;

/// A list in progress.
#[derive(Debug)]
pub(super) struct Survey {
    walk: Walk,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// `lru_crawler metadump`.
    Meta,
    /// `stats cachedump`: items and bytes still allowed.
    Cache { items: usize, bytes: usize },
    /// `stats sizes`: number of items in each class so far.
    Sizes(BTreeMap<usize, usize>),
}

impl Survey {
    fn new(kind: Kind) -> Box<Survey> {
        Box::new(Survey {
            walk: Walk::default(),
            kind,
        })
    }

    /// Lists the number of items of each size.
    pub(super) fn sizes() -> Box<Survey> {
        Survey::new(Kind::Sizes(BTreeMap::new()))
    }

    /// Answers more of the list. False at the end.
    pub(super) fn go_on(&mut self, context: &mut Context<'_>) -> bool {
        let mut looked = 0;
        while looked < TURN && context.out.len() <= ANSWERS_MAX {
            let (count, is_more) = self.piece(context);
            if !is_more || self.is_full() {
                self.end(context.out);
                return false;
            }
            // Locking a stripe takes time, even if it is empty.
            looked += count + 1;
        }
        true
    }

    fn piece(&mut self, context: &mut Context<'_>) -> (usize, bool) {
        let Survey { walk, kind } = self;
        let (store, clock, out) = (context.store, context.store.clock(), &mut *context.out);
        store.look(walk, PIECE, |entry| match kind {
            Kind::Meta => write_meta(out, entry, clock),
            Kind::Cache { items: 0, .. } | Kind::Cache { bytes: 0, .. } => {}
            // As in memcached: keys are written as they are here, and such a key may contain ends
            // of lines.
            Kind::Cache { .. } if has_binary_key(entry) => {}
            Kind::Cache { items, bytes } => {
                let before = out.len();
                write_cached(out, entry, clock);
                *items -= 1;
                *bytes = bytes.saturating_sub(out.len() - before);
            }
            Kind::Sizes(classes) => {
                let bytes = bytes_of(entry.key().len(), entry.value_bytes());
                let class = bytes.next_multiple_of(SIZE_CLASS);
                *classes.entry(class).or_default() += 1;
            }
        })
    }

    /// True if nothing more would be listed.
    fn is_full(&self) -> bool {
        matches!(
            self.kind,
            Kind::Cache { items: 0, .. } | Kind::Cache { bytes: 0, .. }
        )
    }

    fn end(&self, out: &mut Vec<u8>) {
        if let Kind::Sizes(classes) = &self.kind {
            for (bytes, count) in classes {
                out.extend_from_slice(format!("STAT {bytes} {count}\r\n").as_bytes());
            }
        }
        out.extend_from_slice(b"END\r\n");
    }
}

/// Begins `stats cachedump`.
pub(super) fn cache_dump(context: &mut Context<'_>, words: &Words<'_>) -> Asked {
    if !context.about.may_dump() {
        return answer(context, b"CLIENT_ERROR stats cachedump not allowed\r\n");
    }
    if words.len() < 4 {
        return answer(context, b"CLIENT_ERROR bad command line\r\n");
    }
    let (Some(class), Some(limit)) = (unsigned_32(words.get(2)), unsigned_32(words.get(3))) else {
        return answer(context, b"CLIENT_ERROR bad command line format\r\n");
    };
    if class != 1 {
        return answer(context, b"END\r\n");
    }
    Asked::Survey(Survey::new(Kind::Cache {
        items: if limit == 0 {
            usize::MAX
        } else {
            limit as usize
        },
        bytes: CACHE_DUMP_MAX,
    }))
}

/// Begins `lru_crawler metadump`.
pub(super) fn meta_dump(context: &mut Context<'_>, words: &Words<'_>) -> Asked {
    if !context.about.may_dump() {
        return answer(context, b"ERROR metadump not allowed\r\n");
    }
    if !is_class(words.get(2)) {
        return answer(context, BAD_CLASS);
    }
    Asked::Survey(Survey::new(Kind::Meta))
}

fn write_cached(out: &mut Vec<u8>, entry: Entry<'_>, clock: &Clock) {
    out.extend_from_slice(b"ITEM ");
    out.extend_from_slice(entry.key());
    let ends = if entry.expires() == 0 {
        0
    } else {
        clock.unix(entry.expires())
    };
    out.extend_from_slice(format!(" [{} b; {ends} s]\r\n", entry.value_bytes()).as_bytes());
}

fn write_meta(out: &mut Vec<u8>, entry: Entry<'_>, clock: &Clock) {
    out.extend_from_slice(b"key=");
    for &byte in entry.key() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(byte);
        } else {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    let ends = if entry.expires() == 0 {
        -1
    } else {
        clock.unix(entry.expires())
    };
    let facts = format!(
        " exp={ends} la={} cas={} fetch={} cls=1 size={}\n",
        clock.unix(entry.used()),
        entry.cas(),
        if entry.is_fetched() { "yes" } else { "no" },
        bytes_of(entry.key().len(), entry.value_bytes()),
    );
    out.extend_from_slice(facts.as_bytes());
}
