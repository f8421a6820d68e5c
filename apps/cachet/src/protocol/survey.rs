//! Lists of items, made piece by piece: there may be millions.

use std::collections::BTreeMap;

use super::command::{ANSWERS_MAX, Asked, Context};
use super::control::{BAD_CLASS, CLASS_MAX, Classes, NO_ITEMS};
use super::statistics::answer;
use super::words::{Words, has_binary_key, to_base64, unsigned_32};
use crate::items::{Entry, bytes_of};
use crate::store::watch::write_key;
use crate::store::{Store, Walk};

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

/// Form of a list of all items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Facts about each item.
    Meta,
    /// A command that fetches each item.
    Get,
}

#[derive(Debug)]
enum Kind {
    /// `lru_crawler metadump` and `mgdump`.
    Dump(Form),
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
        let (store, out) = (context.store, &mut *context.out);
        store.look(walk, PIECE, |entry| match kind {
            Kind::Dump(Form::Meta) => write_meta(out, entry, store),
            Kind::Dump(Form::Get) => write_get(out, entry),
            Kind::Cache { items: 0, .. } | Kind::Cache { bytes: 0, .. } => {}
            // As in memcached: keys are written as they are here, and such a key may contain ends
            // of lines.
            Kind::Cache { .. } if has_binary_key(entry) => {}
            Kind::Cache { items, bytes } => {
                let before = out.len();
                write_cached(out, entry, store);
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
        out.extend_from_slice(match self.kind {
            Kind::Dump(Form::Get) => b"EN\r\n",
            _ => b"END\r\n",
        });
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
    if class > CLASS_MAX {
        return answer(context, b"CLIENT_ERROR Illegal slab id\r\n");
    }
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

/// Begins a list of all items.
pub(super) fn dump(context: &mut Context<'_>, words: &Words<'_>, form: Form) -> Asked {
    if !context.about.may_dump() {
        let name = words.get(1).escape_ascii();
        return answer(context, format!("ERROR {name} not allowed\r\n").as_bytes());
    }
    if words.get(2) != b"hash" {
        match Classes::of(words.get(2)) {
            Classes::Ours => {}
            Classes::Others => return answer(context, NO_ITEMS),
            Classes::Bad => return answer(context, BAD_CLASS),
        }
    }
    Asked::Survey(Survey::new(Kind::Dump(form)))
}

/// Writes the command that fetches an item. A key that no line can hold is in base64.
fn write_get(out: &mut Vec<u8>, entry: Entry<'_>) {
    out.extend_from_slice(b"mg ");
    if has_binary_key(entry) {
        to_base64(out, entry.key());
        out.extend_from_slice(b" b");
    } else {
        out.extend_from_slice(entry.key());
    }
    out.extend_from_slice(b"\r\n");
}

fn write_cached(out: &mut Vec<u8>, entry: Entry<'_>, store: &Store) {
    out.extend_from_slice(b"ITEM ");
    out.extend_from_slice(entry.key());
    let ends = if entry.expires() == 0 {
        0
    } else {
        store.clock().unix(entry.expires())
    };
    out.extend_from_slice(format!(" [{} b; {ends} s]\r\n", entry.value_bytes()).as_bytes());
}

fn write_meta(out: &mut Vec<u8>, entry: Entry<'_>, store: &Store) {
    let clock = store.clock();
    out.extend_from_slice(b"key=");
    write_key(out, entry.key());
    let ends = if entry.expires() == 0 {
        -1
    } else {
        clock.unix(entry.expires())
    };
    let facts = format!(
        " exp={ends} la={} cas={} fetch={} cls=1 size={}\n",
        clock.unix(entry.used()),
        store.shown(entry.cas()),
        if entry.is_fetched() { "yes" } else { "no" },
        bytes_of(entry.key().len(), entry.value_bytes()),
    );
    out.extend_from_slice(facts.as_bytes());
}
