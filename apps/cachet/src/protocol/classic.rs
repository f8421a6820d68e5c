//! Classic commands: `get`, `set` and the like.

use super::command::{ANSWERS_MAX, Asked, Context, Keys, Kind, Storing, refusal};
use super::words::{Words, decimal, signed_32, split, unsigned, unsigned_32};
use super::{control, statistics};
use crate::items::{Entry, KEY_MAX};
use crate::store::details::Event;
use crate::store::{Condition, Mode, Refused, Stored};

const FORMAT: &[u8] = b"CLIENT_ERROR bad command line format\r\n";
const EXPTIME: &[u8] = b"CLIENT_ERROR invalid exptime argument\r\n";
const USAGE_OF_DELETE: &[u8] =
    b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n";
const NOT_NUMERIC: &[u8] = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
const ERROR: &[u8] = b"ERROR\r\n";
const NOT_FOUND: &[u8] = b"NOT_FOUND\r\n";
const OK: &[u8] = b"OK\r\n";
/// Largest number of megabytes; larger ones count as bytes, as in memcached.
const MEGABYTES_MAX: u32 = 1_000_000_000;
/// Longest length; longer ones are refused whatever the limit of items.
const VALUE_MAX: i32 = i32::MAX - 2;
/// Keys of one list looked up before others have their turn. A line may have two million that are
/// not there, and without answers nothing else would end the turn.
const KEYS_AT_ONCE: usize = 4096;

/// Handles any command but the meta commands.
pub(super) fn command(context: &mut Context<'_>, line: &[u8], words: &Words<'_>) -> Asked {
    let count = words.len();
    match (words.get(0), count) {
        (b"get" | b"bget", 2..) => get(context, after_word(line), false),
        (b"gets", 2..) => get(context, after_word(line), true),
        (b"gat", 2..) => get_and_touch(context, after_word(line), words, false),
        (b"gats", 2..) => get_and_touch(context, after_word(line), words, true),
        (b"set", 5..=6) => store(context, words, Mode::Set, false),
        (b"add", 5..=6) => store(context, words, Mode::Add, false),
        (b"replace", 5..=6) => store(context, words, Mode::Replace, false),
        (b"append", 5..=6) => store(context, words, Mode::Append, false),
        (b"prepend", 5..=6) => store(context, words, Mode::Prepend, false),
        (b"cas", 6..=7) => store(context, words, Mode::Set, true),
        (b"incr", 3..=4) => count_by(context, words, true),
        (b"decr", 3..=4) => count_by(context, words, false),
        (b"delete", 2..=4) => delete(context, words),
        (b"touch", 3..=4) => touch(context, words),
        (b"flush_all", 1..=3) => flush_all(context, words),
        (b"version", _) => say(context, false, version()),
        (b"verbosity", 2..=3) => verbosity(context, words),
        (b"cache_memlimit", 2..=3) => memory_limit(context, words),
        (b"stats", _) => statistics::stats(context, words),
        (b"quit", _) => Asked::Close,
        (b"shutdown", _) => shutdown(context, words),
        (b"lru" | b"lru_crawler" | b"slabs" | b"watch" | b"extstore" | b"refresh_certs", _) => {
            control::control(context, words)
        }
        _ if is_http(words) => {
            context.worker.counters.conn_http.bump();
            context.about.closes_http();
            Asked::Close
        }
        _ => say(context, false, ERROR),
    }
}

/// Tells whether an unknown command is an HTTP request, `GET / HTTP/1.1`.
///
/// The server closes such a connection without an answer: otherwise a browser or a proxy could be
/// made to write into the cache by the lines of its request's body. Words of one letter, words that
/// begin as ours do, and our commands with a wrong number of words are a client's mistakes, as in
/// memcached.
fn is_http(words: &Words<'_>) -> bool {
    let first = words.get(0);
    let is_ours = matches!(
        first,
        [b'a' | b'c' | b'd' | b'g' | b'i' | b's' | b't', ..]
            | [_]
            | b"flush_all"
            | b"prepend"
            | b"replace"
            | b"verbosity"
            | b"extstore"
    );
    !is_ours && words.last().starts_with(b"HTTP/")
}

fn say(context: &mut Context<'_>, is_quiet: bool, answer: &[u8]) -> Asked {
    if !is_quiet {
        context.out.extend_from_slice(answer);
    }
    Asked::Done
}

fn version() -> &'static [u8] {
    concat!("VERSION 1.6.18-cachet-", env!("CARGO_PKG_VERSION"), "\r\n").as_bytes()
}

/// The rest of a line after its first word.
fn after_word(line: &[u8]) -> &[u8] {
    let start = line
        .iter()
        .position(|&byte| byte != b' ')
        .unwrap_or(line.len());
    let word = line[start..]
        .iter()
        .position(|&byte| byte == b' ')
        .unwrap_or(line.len() - start);
    &line[start + word..]
}

/// Handles `get` and `gets`.
#[inline]
pub(super) fn get(context: &mut Context<'_>, keys: &[u8], with_cas: bool) -> Asked {
    let list = Keys {
        with_cas,
        touch: None,
        is_begun: false,
    };
    go_through(context, keys, list, |context, key| {
        get_one(context, key, with_cas);
    })
}

/// Answers more of a list, from the next key on.
pub(super) fn go_on(context: &mut Context<'_>, keys: &[u8], list: Keys) -> Asked {
    go_through(context, keys, list, |context, key| match list.touch {
        None => get_one(context, key, list.with_cas),
        Some(exptime) => touch_one(context, key, list.with_cas, exptime),
    })
}

/// Answers keys until the output must be sent first or the turn is over.
#[inline]
fn go_through(
    context: &mut Context<'_>,
    keys: &[u8],
    list: Keys,
    answer: impl Fn(&mut Context<'_>, &[u8]),
) -> Asked {
    let begin = context.out.len();
    let mut asked = 0;
    for key in split(keys) {
        if key.len() > KEY_MAX {
            context.out.truncate(begin);
            return say(context, false, FORMAT);
        }
        if asked > 0 && (context.out.len() > ANSWERS_MAX || asked == KEYS_AT_ONCE) {
            let done = key.as_ptr().addr() - keys.as_ptr().addr();
            return pause(context, begin, &keys[done..], list);
        }
        asked += 1;
        answer(context, key);
    }
    let is_empty = asked == 0 && !list.is_begun && list.touch.is_none();
    say(context, false, if is_empty { ERROR } else { b"END\r\n" })
}

/// Answers the first keys. A key that is too long costs the whole command its answer, so check that
/// before anything is sent.
#[cold]
fn pause(context: &mut Context<'_>, begin: usize, rest: &[u8], list: Keys) -> Asked {
    if !list.is_begun && split(rest).any(|key| key.len() > KEY_MAX) {
        context.out.truncate(begin);
        return say(context, false, FORMAT);
    }
    let list = Keys {
        is_begun: true,
        ..list
    };
    Asked::Keys {
        left: rest.len(),
        list,
    }
}

#[inline]
fn get_one(context: &mut Context<'_>, key: &[u8], with_cas: bool) {
    let hash = context.store.hash_of(key);
    let out = &mut *context.out;
    let store = context.store;
    let found = store.get(context.worker, (key, hash), |entry| {
        value(out, entry, with_cas.then(|| store.shown(entry.cas())));
    });
    note_get(context, found.is_some());
    note_detail(context, key, found.is_some());
}

pub(super) fn note_get(context: &Context<'_>, is_hit: bool) {
    let counters = &context.worker.counters;
    counters.cmd_get.bump();
    if is_hit {
        counters.get_hits.bump();
    } else {
        counters.get_misses.bump();
    }
}

#[inline]
fn note_detail(context: &Context<'_>, key: &[u8], is_hit: bool) {
    let event = if is_hit { Event::Hit } else { Event::Miss };
    context.store.details().note(key, event);
}

/// Writes an item's answer, perhaps with its number.
#[inline]
fn value(out: &mut Vec<u8>, entry: Entry<'_>, cas: Option<u64>) {
    let (key, value) = (entry.key(), entry.value_and_end());
    out.reserve(key.len() + value.len() + 64);
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    out.push(b' ');
    decimal(out, u64::from(entry.client_flags()));
    out.push(b' ');
    decimal(out, entry.value_bytes() as u64);
    if let Some(cas) = cas {
        out.push(b' ');
        decimal(out, cas);
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(value);
}

fn get_and_touch(
    context: &mut Context<'_>,
    rest: &[u8],
    words: &Words<'_>,
    with_cas: bool,
) -> Asked {
    let Some(exptime) = signed_32(words.get(1)) else {
        return say(context, false, EXPTIME);
    };
    let list = Keys {
        with_cas,
        touch: Some(exptime),
        is_begun: false,
    };
    let mut keys = after_word(rest);
    // A zero byte ends the line, also within the time.
    if memchr::memchr(0, &rest[..rest.len() - keys.len()]).is_some() {
        keys = &rest[rest.len()..];
    }
    go_on(context, keys, list)
}

fn touch_one(context: &mut Context<'_>, key: &[u8], with_cas: bool, exptime: i32) {
    let hash = context.store.hash_of(key);
    let mut slot = context.store.slot(context.worker, (key, hash));
    let now = slot.now();
    let mut is_hit = false;
    if let Some(mut entry) = slot.find_mut() {
        entry.set_expires(context.store.clock().expiry(exptime));
        entry.entry().bump(now);
        let cas = context.store.shown(entry.entry().cas());
        value(context.out, entry.entry(), with_cas.then_some(cas));
        is_hit = true;
    }
    drop(slot);
    note_detail(context, key, is_hit);
    note_touch(context, is_hit);
}

pub(super) fn note_touch(context: &Context<'_>, is_hit: bool) {
    let counters = &context.worker.counters;
    counters.cmd_touch.bump();
    if is_hit {
        counters.touch_hits.bump();
    } else {
        counters.touch_misses.bump();
    }
}

fn store(context: &mut Context<'_>, words: &Words<'_>, mode: Mode, is_cas: bool) -> Asked {
    let is_quiet = words.end_in_noreply();
    let key = words.get(1);
    if key.len() > KEY_MAX {
        return say(context, is_quiet, FORMAT);
    }
    let numbers = (
        unsigned_32(words.get(2)),
        signed_32(words.get(3)),
        signed_32(words.get(4)),
    );
    let (Some(flags), Some(exptime), Some(length)) = numbers else {
        return say(context, is_quiet, FORMAT);
    };
    let mut condition = Condition::default();
    if is_cas {
        let Some(cas) = unsigned(words.get(5)) else {
            return say(context, is_quiet, FORMAT);
        };
        condition.cas = Some(cas);
    }
    if !(0..VALUE_MAX).contains(&length) {
        return say(context, is_quiet, FORMAT);
    }
    context.store.details().note(key, Event::Set);
    let key = (key, context.store.hash_of(key));
    match context.store.make(context.worker, key, length as usize) {
        Ok(mut fresh) => {
            fresh.set_client_flags(flags);
            fresh.set_expires(context.store.clock().expiry(exptime));
            let kind = Kind::Classic { is_quiet };
            Asked::Value {
                fresh,
                storing: Storing {
                    mode,
                    condition,
                    kind,
                },
            }
        }
        Err(refused) => {
            say(context, is_quiet, refusal(refused));
            refuse(context, key, (mode, condition), refused);
            Asked::Swallow(length as usize + 2)
        }
    }
}

/// Deletes a value that could not be replaced: it is not what the client wants it to be. Whether
/// `cas` would have replaced it is not known, so that keeps it.
pub(super) fn refuse(
    context: &mut Context<'_>,
    key: (&[u8], u64),
    (mode, condition): (Mode, Condition),
    refused: Refused,
) {
    let Context { store, worker, .. } = context;
    store.tell_refused(worker, key.0, (mode, condition), refused);
    if mode == Mode::Set && condition.cas.is_none() {
        let out = context.store.slot(context.worker, key).take();
        context.worker.keep(out);
    }
}

/// The answer to a store.
pub(super) fn answer(stored: Stored) -> &'static [u8] {
    match stored {
        Stored::Stored(_) => b"STORED\r\n",
        Stored::NotStored => b"NOT_STORED\r\n",
        Stored::Exists => b"EXISTS\r\n",
        Stored::NotFound => NOT_FOUND,
    }
}

fn delete(context: &mut Context<'_>, words: &Words<'_>) -> Asked {
    let mut is_quiet = false;
    if words.len() > 2 {
        let is_zero = words.get(2) == b"0";
        is_quiet = words.end_in_noreply();
        let is_right = match words.len() {
            3 => is_zero || is_quiet,
            _ => is_zero && is_quiet,
        };
        if !is_right {
            // Quiet though wrong, as in memcached: an answer would be taken for the next command's.
            return say(context, is_quiet, USAGE_OF_DELETE);
        }
    }
    let key = words.get(1);
    if key.len() > KEY_MAX {
        return say(context, is_quiet, FORMAT);
    }
    let hash = context.store.hash_of(key);
    context.store.details().note(key, Event::Delete);
    let out = context.store.slot(context.worker, (key, hash)).take();
    let is_hit = out.is_some();
    context.worker.keep(out);
    let counters = &context.worker.counters;
    if is_hit {
        counters.delete_hits.bump();
    } else {
        counters.delete_misses.bump();
    }
    say(
        context,
        is_quiet,
        if is_hit { b"DELETED\r\n" } else { NOT_FOUND },
    )
}

fn touch(context: &mut Context<'_>, words: &Words<'_>) -> Asked {
    let is_quiet = words.end_in_noreply();
    let key = words.get(1);
    if key.len() > KEY_MAX {
        return say(context, is_quiet, FORMAT);
    }
    let Some(exptime) = signed_32(words.get(2)) else {
        return say(context, is_quiet, EXPTIME);
    };
    let hash = context.store.hash_of(key);
    let mut slot = context.store.slot(context.worker, (key, hash));
    let now = slot.now();
    let mut is_hit = false;
    if let Some(mut entry) = slot.find_mut() {
        entry.set_expires(context.store.clock().expiry(exptime));
        entry.entry().bump(now);
        is_hit = true;
    }
    drop(slot);
    note_touch(context, is_hit);
    say(
        context,
        is_quiet,
        if is_hit { b"TOUCHED\r\n" } else { NOT_FOUND },
    )
}

/// A change of a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) by: u64,
    pub(super) is_up: bool,
    /// Expected number of the value.
    pub(super) cas: Option<u64>,
}

/// Result of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changed {
    /// The new number; `expires` is the item's former expiry.
    To {
        value: u64,
        cas: u64,
        expires: u32,
    },
    NotFound,
    NotNumeric,
    Exists,
    NoMemory,
    /// No memory for a number that is to begin.
    NoMemoryForNew,
}

/// Values longer than this are not treated as numbers, as in memcached.
const VALUE_OF_NUMBER_MAX: usize = 512 << 10;

/// Increments or decrements, optionally with a new expiry.
pub(super) fn change(
    context: &mut Context<'_>,
    key: (&[u8], u64),
    change: Change,
    expires_then: Option<u32>,
) -> Changed {
    let mut tries = 0;
    loop {
        let mut slot = match tries {
            0 => context.store.slot(context.worker, key),
            _ => context.store.slot_again(context.worker, key),
        };
        tries += 1;
        let now = slot.now();
        let Some(entry) = slot.find() else {
            return Changed::NotFound;
        };
        let old = entry.value();
        // In memcached's order, which shows where several things are wrong.
        if old.is_empty() || old.len() > VALUE_OF_NUMBER_MAX {
            return Changed::NotNumeric;
        }
        if change
            .cas
            .is_some_and(|wanted| wanted != context.store.shown(entry.cas()))
        {
            return Changed::Exists;
        }
        let Some(number) = unsigned(old) else {
            return Changed::NotNumeric;
        };
        let value = if change.is_up {
            number.wrapping_add(change.by)
        } else {
            number.saturating_sub(change.by)
        };
        let mut text = Vec::with_capacity(20);
        decimal(&mut text, value);
        let (length, known) = (entry.value_bytes(), entry.cas());
        let (flags, expires) = (entry.client_flags(), entry.expires());
        let then = expires_then.unwrap_or(expires);
        if text.len() <= length {
            let cas = slot.next_cas();
            if let Some(mut entry) = slot.find_mut() {
                let place = entry.value_mut();
                place[..text.len()].copy_from_slice(&text);
                // A shorter number is followed by spaces, as the length stays.
                place[text.len()..].fill(b' ');
                entry.set_cas(cas);
                entry.set_expires(then);
                entry.entry().renew(now);
            }
            return Changed::To {
                value,
                cas,
                expires,
            };
        }
        drop(slot);
        let Ok(mut fresh) = context.store.make(context.worker, key, text.len()) else {
            return Changed::NoMemory;
        };
        fresh.push(&text);
        fresh.push(b"\r\n");
        fresh.set_client_flags(flags);
        fresh.set_expires(then);
        // Marks of the shorter number are gone, as in memcached.
        let mut slot = context.store.slot_again(context.worker, key);
        if slot.find().is_some_and(|entry| entry.cas() == known) {
            let (cas, out) = slot.put(fresh);
            drop(slot);
            context.worker.keep(out);
            return Changed::To {
                value,
                cas,
                expires,
            };
        }
        // Another client was faster.
        drop(slot);
        context.worker.keep(Some(fresh.give_up()));
    }
}

/// Counts a change. One that is refused counts as neither, as in memcached.
pub(super) fn note_change(context: &Context<'_>, is_up: bool, changed: &Changed) {
    let counters = &context.worker.counters;
    match (is_up, changed) {
        (true, Changed::To { .. }) => counters.incr_hits.bump(),
        (true, Changed::NotFound) => counters.incr_misses.bump(),
        (false, Changed::To { .. }) => counters.decr_hits.bump(),
        (false, Changed::NotFound) => counters.decr_misses.bump(),
        _ => {}
    }
}

fn count_by(context: &mut Context<'_>, words: &Words<'_>, is_up: bool) -> Asked {
    let is_quiet = words.end_in_noreply();
    let key = words.get(1);
    if key.len() > KEY_MAX {
        return say(context, is_quiet, FORMAT);
    }
    let Some(by) = unsigned(words.get(2)) else {
        return say(
            context,
            is_quiet,
            b"CLIENT_ERROR invalid numeric delta argument\r\n",
        );
    };
    let key = (key, context.store.hash_of(key));
    let changed = change(
        context,
        key,
        Change {
            by,
            is_up,
            cas: None,
        },
        None,
    );
    note_change(context, is_up, &changed);
    let answer: &[u8] = match changed {
        Changed::To { value, .. } => {
            if !is_quiet {
                decimal(context.out, value);
            }
            b"\r\n"
        }
        Changed::NotFound => NOT_FOUND,
        Changed::NotNumeric => NOT_NUMERIC,
        Changed::Exists => b"EXISTS\r\n",
        Changed::NoMemory | Changed::NoMemoryForNew => b"SERVER_ERROR out of memory\r\n",
    };
    say(context, is_quiet, answer)
}

fn flush_all(context: &mut Context<'_>, words: &Words<'_>) -> Asked {
    let is_quiet = words.end_in_noreply();
    let mut seconds = 0;
    context.worker.counters.cmd_flush.bump();
    if !context.about.may_flush() {
        return say(context, is_quiet, b"CLIENT_ERROR flush_all not allowed\r\n");
    }
    if words.len() > 1 + usize::from(is_quiet) {
        let Some(exptime) = signed_32(words.get(1)) else {
            return say(context, is_quiet, EXPTIME);
        };
        if exptime > 0 {
            let clock = context.store.clock();
            // As memcached, which flushes when the last second before the moment begins.
            seconds = clock.expiry(exptime).saturating_sub(clock.now() + 1);
        }
    }
    context.store.forget(seconds);
    say(context, is_quiet, OK)
}

fn verbosity(context: &mut Context<'_>, words: &Words<'_>) -> Asked {
    let is_quiet = words.end_in_noreply();
    let Some(level) = unsigned_32(words.get(1)) else {
        return say(context, is_quiet, FORMAT);
    };
    context.about.set_verbosity(level);
    say(context, is_quiet, OK)
}

fn memory_limit(context: &mut Context<'_>, words: &Words<'_>) -> Asked {
    let is_quiet = words.end_in_noreply();
    let Some(megabytes) = unsigned_32(words.get(1)) else {
        return say(context, is_quiet, ERROR);
    };
    if megabytes < 8 {
        let answer = b"MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n";
        return say(context, is_quiet, answer);
    }
    if megabytes > MEGABYTES_MAX {
        let answer = b"MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n";
        return say(context, is_quiet, answer);
    }
    context.store.set_memory((megabytes as usize) << 20);
    say(context, is_quiet, OK)
}

fn shutdown(context: &mut Context<'_>, words: &Words<'_>) -> Asked {
    if !context.about.may_shut_down() {
        return say(context, false, b"ERROR: shutdown not enabled\r\n");
    }
    match (words.get(1), words.len()) {
        (_, 1) => Asked::Stop { gracefully: false },
        (b"graceful", 2) => Asked::Stop { gracefully: true },
        _ => say(context, false, b"CLIENT_ERROR invalid shutdown mode\r\n"),
    }
}
