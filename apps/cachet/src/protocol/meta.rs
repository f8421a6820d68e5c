//! Meta commands: two letters, a key, and flags of one letter each, some with a token.

use super::classic::{self, Change, Changed};
use super::command::{Asked, Context, Kind, Storing, refusal};
use super::words::{
    Words, decimal, from_base64, has_binary_key, signed_32, to_base64, unsigned, unsigned_32,
};
use crate::items::{Entry, KEY_MAX, Marks};
use crate::store::{Condition, Mode, Stored};

const FORMAT: &str = "CLIENT_ERROR bad command line format\r\n";
const NO_KEY: &str = "CLIENT_ERROR error decoding key\r\n";
const INVALID_OR_DUPLICATE: &str = "CLIENT_ERROR invalid or duplicate flag\r\n";
const NOT_NUMERIC: &str = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
/// Longest token to return, with its letter.
const OPAQUE_MAX: usize = 32;
const OPAQUE_TOO_LONG: &str = "CLIENT_ERROR opaque token too long\r\n";
/// Number of flags that are looked at.
const FLAGS_MAX: usize = 17;
const TOO_MANY: &str = "CLIENT_ERROR options flags are too long\r\n";
/// The same in other words, for all but `mg`.
const TOO_LONG: &str = "CLIENT_ERROR options flags too long\r\n";
const VALUE_MAX: i32 = i32::MAX - 2;

/// Handles a meta command, which is `m` and another letter.
pub(super) fn command(context: &mut Context<'_>, kind: u8, words: &Words<'_>) -> Asked {
    match (kind, words.len()) {
        (b'n', _) => return say(context, "MN\r\n"),
        (b'e', 1) => return say(context, FORMAT),
        (b'g' | b's' | b'd' | b'a' | b'e', 2..) => {}
        _ => return say(context, "ERROR\r\n"),
    }
    context.worker.counters.cmd_meta.bump();
    let word = words.get(1);
    if word.len() > KEY_MAX {
        return say(context, FORMAT);
    }
    match kind {
        b'g' => get(context, words),
        b's' => set(context, words),
        b'd' => delete(context, words),
        b'a' => arithmetic(context, words),
        _ => debug(context, words),
    }
}

fn say(context: &mut Context<'_>, answer: &str) -> Asked {
    context.out.extend_from_slice(answer.as_bytes());
    Asked::Done
}

/// Flags of a command.
#[derive(Debug, Default)]
struct Flags {
    /// A bit for each letter.
    given: u64,
    cas: Option<u64>,
    client_flags: u32,
    /// Time to live in seconds, as clients give times.
    ttl: i32,
    vivify: i32,
    recache: i32,
    delta: u64,
    initial: u64,
    mode: u8,
}

/// All flags. Each command accepts all of them, and ignores those that mean nothing to it.
const LETTERS: &[u8] = b"CDFIJLMNOPRTbcfhklqstuv";

fn bit(letter: u8) -> u64 {
    1 << (letter - b'A')
}

impl Flags {
    fn has(&self, letter: u8) -> bool {
        self.given & bit(letter) != 0
    }

    /// Parses the letters.
    ///
    /// # Errors
    /// The first thing wrong.
    fn letters(words: &[&[u8]]) -> Result<Flags, &'static str> {
        let mut flags = Flags {
            delta: 1,
            ..Flags::default()
        };
        if words.len() > FLAGS_MAX {
            return Err(TOO_MANY);
        }
        for word in words {
            let letter = word[0];
            // As memcached calls them.
            if letter >= 127 {
                return Err("CLIENT_ERROR duplicate flag\r\n");
            }
            if !(b'A'..=b'z').contains(&letter) {
                return Err("CLIENT_ERROR invalid flag\r\n");
            }
            if flags.has(letter) {
                return Err("CLIENT_ERROR duplicate flag\r\n");
            }
            if !LETTERS.contains(&letter) {
                return Err("CLIENT_ERROR invalid flag\r\n");
            }
            flags.given |= bit(letter);
        }
        Ok(flags)
    }

    /// Parses flags and key. Of several errors, those of letters give the first, the others the
    /// last.
    fn read<'a>(
        word: &'a [u8],
        options: &[&[u8]],
        place: &'a mut [u8; KEY_MAX],
    ) -> Result<(Flags, &'a [u8]), &'static str> {
        let mut flags = Flags::letters(options)?;
        let key = key(word, &flags, place);
        let mut wrong = None;
        for option in options {
            let what = match option[0] {
                b'b' if key.is_none() => Some(NO_KEY),
                letter => flags.take(letter, &option[1..]).err(),
            };
            wrong = match what {
                // As in memcached: only if nothing else is wrong.
                Some(FORMAT) => wrong.or(what),
                _ => what.or(wrong),
            };
        }
        match (wrong, key) {
            (None, Some(key)) => Ok((flags, key)),
            (wrong, _) => Err(wrong.unwrap_or(NO_KEY)),
        }
    }

    fn take(&mut self, letter: u8, token: &[u8]) -> Result<(), &'static str> {
        const BAD_TOKEN: &str = "CLIENT_ERROR bad token in command line format\r\n";
        match letter {
            b'C' => self.cas = Some(unsigned(token).ok_or(BAD_TOKEN)?),
            b'T' => self.ttl = signed_32(token).ok_or(BAD_TOKEN)?,
            b'N' => self.vivify = signed_32(token).ok_or(BAD_TOKEN)?,
            b'R' => self.recache = signed_32(token).ok_or(BAD_TOKEN)?,
            b'F' => self.client_flags = unsigned_32(token).ok_or(FORMAT)?,
            b'D' => {
                self.delta =
                    unsigned(token).ok_or("CLIENT_ERROR invalid numeric delta value\r\n")?;
            }
            b'J' => {
                self.initial =
                    unsigned(token).ok_or("CLIENT_ERROR invalid numeric initial value\r\n")?;
            }
            b'M' => match token {
                [mode] => self.mode = *mode,
                _ => return Err("CLIENT_ERROR incorrect length for M token\r\n"),
            },
            _ => {}
        }
        Ok(())
    }
}

/// The key as the store knows it.
fn key<'a>(word: &'a [u8], flags: &Flags, place: &'a mut [u8; KEY_MAX]) -> Option<&'a [u8]> {
    if flags.has(b'b') {
        from_base64(word, place)
    } else {
        Some(word)
    }
}

/// True if a token to return is too long.
fn has_long_opaque(words: &[&[u8]]) -> bool {
    words
        .iter()
        .any(|word| word[0] == b'O' && word.len() > OPAQUE_MAX)
}

/// Writes the key as a flag, marked if it is in base64.
fn write_key(out: &mut Vec<u8>, key: &[u8], is_binary: bool) {
    out.extend_from_slice(b" k");
    if is_binary {
        to_base64(out, key);
        out.extend_from_slice(b" b");
    } else {
        out.extend_from_slice(key);
    }
}

fn write_opaque(out: &mut Vec<u8>, word: &[u8]) {
    out.push(b' ');
    out.extend_from_slice(word);
}

fn write_number(out: &mut Vec<u8>, letter: u8, value: u64) {
    out.extend_from_slice(&[b' ', letter]);
    decimal(out, value);
}

/// Writes the time to live; -1 without an end.
fn write_time(out: &mut Vec<u8>, expires: u32, now: u32) {
    if expires == 0 {
        out.extend_from_slice(b" t-1");
    } else {
        // An expired item shows how long ago, modulo 2^32.
        write_number(out, b't', u64::from(expires.wrapping_sub(now)));
    }
}

/// Writes what every answer may carry: key and token.
fn write_common(out: &mut Vec<u8>, words: &[&[u8]], key: &[u8], is_binary: bool) {
    for word in words {
        match word[0] {
            b'k' => write_key(out, key, is_binary),
            b'O' => write_opaque(out, word),
            _ => {}
        }
    }
    out.extend_from_slice(b"\r\n");
}

// ---- mg
// --------------------------------------------------------------------------------------------

fn get(context: &mut Context<'_>, words: &Words<'_>) -> Asked {
    let options = words.from(2);
    let mut place = [0; KEY_MAX];
    let (flags, key) = match Flags::read(words.get(1), options, &mut place) {
        Ok(read) => read,
        Err(wrong) => return say(context, wrong),
    };
    let key = (key, context.store.hash_of(key));
    // Without memory there is no item, as in memcached.
    let is_new = flags.has(b'N')
        && context
            .store
            .slot_again(context.worker, key)
            .find()
            .is_none()
        && vivify(context, key);
    let is_hit = hit(context, key, &flags, options, is_new);
    context.worker.counters.total_items.add(u64::from(is_new));
    // As memcached counts: a new item is a hit, and whatever is touched is not counted twice.
    if is_hit && flags.has(b'T') {
        classic::note_touch(context, true);
    } else {
        classic::note_get(context, is_hit);
    }
    if !is_hit && has_long_opaque(options) {
        return say(context, OPAQUE_TOO_LONG);
    }
    if !is_hit && !flags.has(b'q') {
        context.out.extend_from_slice(b"EN");
        write_common(context.out, options, key.0, flags.has(b'b'));
    }
    Asked::Done
}

/// Stores an empty item if there is none. False if another client was faster, or there is no
/// memory.
fn vivify(context: &mut Context<'_>, key: (&[u8], u64)) -> bool {
    let Ok(mut fresh) = context.store.make(context.worker, key, 0) else {
        return false;
    };
    fresh.push(b"\r\n");
    context.store.tell_missed(context.worker, key.0);
    let mut slot = context.store.slot_again(context.worker, key);
    let (is_made, out) = match slot.find() {
        None => (true, slot.put(fresh).1),
        Some(_) => (false, Some(fresh.give_up())),
    };
    drop(slot);
    context.worker.keep(out);
    is_made
}

/// Answers with the item if there is one.
fn hit(
    context: &mut Context<'_>,
    key: (&[u8], u64),
    flags: &Flags,
    options: &[&[u8]],
    is_new: bool,
) -> bool {
    let clock = context.store.clock();
    // A new item is shown even if it has expired already.
    let mut slot = match is_new {
        true => context.store.slot_as_it_is(key),
        false => context.store.slot(context.worker, key),
    };
    let now = slot.now();
    let Some(mut found) = slot.find_mut() else {
        return false;
    };
    let out = &mut *context.out;
    let begin = out.len();
    let with_value = flags.has(b'v');
    if with_value {
        let bytes = found.entry().value_bytes();
        out.reserve(bytes + 512);
        out.extend_from_slice(b"VA ");
        decimal(out, bytes as u64);
    } else {
        out.extend_from_slice(b"HD");
    }
    let mut is_won = is_new;
    for word in options {
        match word[0] {
            b'O' if word.len() > OPAQUE_MAX => {
                // As in memcached: flags before this one have been done.
                out.truncate(begin);
                out.extend_from_slice(OPAQUE_TOO_LONG.as_bytes());
                if !b"uhlTNR".iter().any(|flag| flags.has(*flag)) {
                    // Without these, memcached has counted the use before it looks at flags.
                    found.entry().bump(now);
                }
                return true;
            }
            b'T' => found.set_expires(clock.expiry(flags.ttl)),
            // A new item gets its time at its flag.
            b'N' if is_new => found.set_expires(clock.expiry(flags.vivify)),
            b'R' => {
                let expires = found.entry().expires();
                is_won |= expires != 0
                    && expires < clock.expiry(flags.recache)
                    && !found.entry().marks().has(Marks::TOKEN_SENT);
            }
            b'c' => write_number(out, b'c', context.store.shown(found.entry().cas())),
            _ => write_fact(out, word, found.entry(), now),
        }
    }
    let marks = found.entry().marks();
    if marks.has(Marks::STALE) && !marks.has(Marks::TOKEN_SENT) {
        is_won = true;
    }
    // The winner's `W` flag is written last; losers get `Z`.
    if !is_won && marks.has(Marks::TOKEN_SENT) {
        out.extend_from_slice(b" Z");
    }
    if marks.has(Marks::STALE) {
        out.extend_from_slice(b" X");
    }
    if is_won {
        out.extend_from_slice(b" W");
        found.set_marks(marks.with(Marks::TOKEN_SENT));
    }
    out.extend_from_slice(b"\r\n");
    if with_value {
        out.extend_from_slice(found.entry().value_and_end());
    }
    if !flags.has(b'u') {
        found.entry().bump(now);
    }
    true
}

fn write_fact(out: &mut Vec<u8>, word: &[u8], entry: Entry<'_>, now: u32) {
    match word[0] {
        b'f' => write_number(out, b'f', u64::from(entry.client_flags())),
        b'h' => write_number(out, b'h', u64::from(entry.is_fetched())),
        b'k' => write_key(out, entry.key(), has_binary_key(entry)),
        b'l' => write_number(out, b'l', u64::from(now.saturating_sub(entry.used()))),
        b'O' => write_opaque(out, word),
        b's' => write_number(out, b's', entry.value_bytes() as u64),
        b't' => write_time(out, entry.expires(), now),
        _ => {}
    }
}

// ---- ms
// --------------------------------------------------------------------------------------------

fn set(context: &mut Context<'_>, words: &Words<'_>) -> Asked {
    if words.len() > 3 + FLAGS_MAX - 1 {
        // As in memcached: one flag fewer, and the value is taken for a line.
        return say(context, TOO_LONG);
    }
    let length = match signed_32(words.get(2)) {
        Some(length) if words.len() > 2 && (0..VALUE_MAX).contains(&length) => length as usize,
        _ => return say(context, FORMAT),
    };
    // The value will come, even after an error from here on.
    let swallow = Asked::Swallow(length + 2);
    let options = words.from(3);
    let mut place = [0; KEY_MAX];
    let (flags, key) = match Flags::read(words.get(1), options, &mut place) {
        Ok(read) => read,
        Err(wrong) => {
            say(context, wrong);
            return swallow;
        }
    };
    let mode = match (flags.has(b'M'), flags.mode) {
        (false, _) | (_, b'S') => Mode::Set,
        (_, b'E') => Mode::Add,
        (_, b'A') => Mode::Append,
        (_, b'P') => Mode::Prepend,
        (_, b'R') => Mode::Replace,
        _ => {
            say(context, "CLIENT_ERROR invalid mode for ms M token\r\n");
            return swallow;
        }
    };
    if has_long_opaque(options) {
        say(context, OPAQUE_TOO_LONG);
        return swallow;
    }
    let key = (key, context.store.hash_of(key));
    let mut fresh = match context.store.make(context.worker, key, length) {
        Ok(fresh) => fresh,
        Err(refused) => {
            context.out.extend_from_slice(refusal(refused));
            classic::refuse(context, key, (Mode::Set, Condition::default()), refused);
            return swallow;
        }
    };
    fresh.set_client_flags(flags.client_flags);
    fresh.set_expires(context.store.clock().expiry(flags.ttl));
    if flags.has(b'b') {
        fresh.set_marks(Marks::BINARY_KEY);
    }
    let condition = Condition {
        cas: flags.cas,
        takes_stale: flags.has(b'I'),
    };
    Asked::Value {
        fresh,
        storing: Storing {
            mode,
            condition,
            kind: Kind::Meta,
        },
    }
}

/// Stores the complete value of `ms`, and answers as its line asks.
pub(super) fn finish_set(
    context: &mut Context<'_>,
    fresh: crate::items::Fresh,
    storing: Storing,
    words: &Words<'_>,
) {
    let stored = context
        .store
        .store(context.worker, fresh, storing.mode, storing.condition);
    let options = words.from(3);
    let mut place = [0; KEY_MAX];
    let Ok((flags, key)) = Flags::read(words.get(1), options, &mut place) else {
        return;
    };
    if matches!(stored, Stored::Stored(_)) && flags.has(b'q') {
        return;
    }
    let out = &mut *context.out;
    let (code, cas) = match stored {
        Stored::Stored(cas) => (b"HD", context.store.shown(cas)),
        Stored::NotStored => (b"NS", 0),
        Stored::Exists => (b"EX", 0),
        Stored::NotFound => (b"NF", 0),
    };
    out.extend_from_slice(code);
    for word in options {
        match word[0] {
            b'O' => write_opaque(out, word),
            b'c' => write_number(out, b'c', cas),
            b'k' => write_key(out, key, flags.has(b'b')),
            _ => {}
        }
    }
    out.extend_from_slice(b"\r\n");
}

// ---- md
// --------------------------------------------------------------------------------------------

fn delete(context: &mut Context<'_>, words: &Words<'_>) -> Asked {
    let options = words.from(2);
    let mut place = [0; KEY_MAX];
    let (flags, key) = match Flags::read(words.get(1), options, &mut place) {
        Ok(read) => read,
        Err(TOO_MANY) => return say(context, TOO_LONG),
        Err(_) => return say(context, INVALID_OR_DUPLICATE),
    };
    if has_long_opaque(options) {
        return say(context, OPAQUE_TOO_LONG);
    }
    let clock = context.store.clock();
    let mut slot = context
        .store
        .slot(context.worker, (key, context.store.hash_of(key)));
    let mut out = None;
    let code = match slot.find() {
        None => "NF",
        Some(entry) if is_other(context, &flags, entry) => "EX",
        Some(_) if flags.has(b'I') => {
            let cas = slot.next_cas();
            if let Some(mut entry) = slot.find_mut() {
                if flags.has(b'T') {
                    entry.set_expires(clock.expiry(flags.ttl));
                }
                let marks = entry.entry().marks();
                entry.set_marks(marks.without(Marks::TOKEN_SENT).with(Marks::STALE));
                entry.set_cas(cas);
            }
            "HD"
        }
        Some(_) => {
            out = slot.take();
            "HD"
        }
    };
    drop(slot);
    context.worker.keep(out);
    let counters = &context.worker.counters;
    match code {
        "HD" => counters.delete_hits.bump(),
        "NF" => counters.delete_misses.bump(),
        _ => {}
    }
    if code != "HD" || !flags.has(b'q') {
        context.out.extend_from_slice(code.as_bytes());
        write_common(context.out, options, key, flags.has(b'b'));
    }
    Asked::Done
}

/// True if the item's value is not the one that the client means.
fn is_other(context: &Context<'_>, flags: &Flags, entry: Entry<'_>) -> bool {
    let cas = context.store.shown(entry.cas());
    flags.cas.is_some_and(|wanted| wanted != cas)
}

// ---- ma
// --------------------------------------------------------------------------------------------

fn arithmetic(context: &mut Context<'_>, words: &Words<'_>) -> Asked {
    let options = words.from(2);
    let mut place = [0; KEY_MAX];
    let (flags, key) = match Flags::read(words.get(1), options, &mut place) {
        Ok(read) => read,
        Err(TOO_MANY) => return say(context, TOO_LONG),
        Err(_) => return say(context, INVALID_OR_DUPLICATE),
    };
    let is_up = match (flags.has(b'M'), flags.mode) {
        (false, _) | (_, b'I' | b'+') => true,
        (_, b'D' | b'-') => false,
        _ => return say(context, "CLIENT_ERROR invalid mode for ma M token\r\n"),
    };
    let key = (key, context.store.hash_of(key));
    let change = Change {
        by: flags.delta,
        is_up,
        cas: flags.cas.filter(|&cas| cas != 0),
    };
    let then = reached(options)
        .any(|word| word[0] == b'T')
        .then(|| context.store.clock().expiry(flags.ttl));
    let mut is_new = false;
    let changed = loop {
        let changed = classic::change(context, key, change, then);
        if changed != Changed::NotFound || !flags.has(b'N') {
            break changed;
        }
        if let Some(made) = begin_at(context, key, &flags, options) {
            is_new = true;
            break made;
        }
    };
    if is_new {
        context.worker.counters.total_items.bump();
    } else {
        classic::note_change(context, is_up, &changed);
    }
    let is_binary = flags.has(b'b');
    let is_refused = matches!(
        changed,
        Changed::NotNumeric | Changed::NoMemory | Changed::NoMemoryForNew
    );
    if has_long_opaque(options) && !is_refused {
        // As in memcached, which checks the answer when all is done.
        return say(context, OPAQUE_TOO_LONG);
    }
    match changed {
        Changed::To {
            value,
            cas,
            expires,
        } => {
            if is_new || !flags.has(b'q') {
                write_changed(
                    context,
                    key.0,
                    &flags,
                    options,
                    (value, cas, expires),
                    is_new,
                );
            }
        }
        Changed::NotFound => {
            context.out.extend_from_slice(b"NF");
            write_common(context.out, options, key.0, is_binary);
        }
        Changed::Exists => {
            context.out.extend_from_slice(b"EX");
            write_common(context.out, options, key.0, is_binary);
        }
        Changed::NotNumeric => return say(context, NOT_NUMERIC),
        Changed::NoMemory => return say(context, "SERVER_ERROR out of memory\r\n"),
        Changed::NoMemoryForNew => {
            return say(
                context,
                "SERVER_ERROR Out of memory allocating new item\r\n",
            );
        }
    }
    Asked::Done
}

/// The flags before a token that is too long. Those after it give the item no time.
fn reached<'a>(options: &'a [&'a [u8]]) -> impl Iterator<Item = &'a &'a [u8]> {
    let is_short = |word: &&&[u8]| !has_long_opaque(std::slice::from_ref(*word));
    options.iter().take_while(is_short)
}

/// Stores the first number. None if there is an item by now.
fn begin_at(
    context: &mut Context<'_>,
    key: (&[u8], u64),
    flags: &Flags,
    options: &[&[u8]],
) -> Option<Changed> {
    let mut text = Vec::with_capacity(22);
    decimal(&mut text, flags.initial);
    let Ok(mut fresh) = context.store.make(context.worker, key, text.len()) else {
        return Some(Changed::NoMemoryForNew);
    };
    text.extend_from_slice(b"\r\n");
    fresh.push(&text);
    // The last of its times counts.
    let ttl = reached(options).fold(0, |ttl, word| match word[0] {
        b'N' => flags.vivify,
        b'T' => flags.ttl,
        _ => ttl,
    });
    fresh.set_expires(context.store.clock().expiry(ttl));
    let mut slot = context.store.slot_again(context.worker, key);
    let (made, out) = match slot.find() {
        None => {
            let (cas, out) = slot.put(fresh);
            (
                Some(Changed::To {
                    value: flags.initial,
                    cas,
                    expires: 0,
                }),
                out,
            )
        }
        Some(_) => (None, Some(fresh.give_up())),
    };
    drop(slot);
    context.worker.keep(out);
    made
}

fn write_changed(
    context: &mut Context<'_>,
    key: &[u8],
    flags: &Flags,
    options: &[&[u8]],
    (value, cas, mut expires): (u64, u64, u32),
    is_new: bool,
) {
    let cas = context.store.shown(cas);
    let clock = context.store.clock();
    let now = clock.now();
    let out = &mut *context.out;
    let mut text = Vec::with_capacity(22);
    decimal(&mut text, value);
    text.extend_from_slice(b"\r\n");
    if flags.has(b'v') {
        out.extend_from_slice(b"VA ");
        decimal(out, text.len() as u64 - 2);
    } else {
        out.extend_from_slice(b"HD");
    }
    for word in options {
        match word[0] {
            // An item has its time from its flag on.
            b'N' if is_new => expires = clock.expiry(flags.vivify),
            b'T' => expires = clock.expiry(flags.ttl),
            b'c' => write_number(out, b'c', cas),
            b't' => write_time(out, expires, now),
            b'k' => write_key(out, key, flags.has(b'b')),
            b'O' => write_opaque(out, word),
            _ => {}
        }
    }
    out.extend_from_slice(b"\r\n");
    if flags.has(b'v') {
        out.extend_from_slice(&text);
    }
}

// ---- me
// --------------------------------------------------------------------------------------------

fn debug(context: &mut Context<'_>, words: &Words<'_>) -> Asked {
    let mut flags = Flags::default();
    if words.get(2) == b"b" {
        flags.given = bit(b'b');
    }
    let mut place = [0; KEY_MAX];
    let Some(key) = key(words.get(1), &flags, &mut place) else {
        return say(context, FORMAT);
    };
    let slot = context
        .store
        .slot(context.worker, (key, context.store.hash_of(key)));
    let Some(entry) = slot.find() else {
        drop(slot);
        return say(context, "EN\r\n");
    };
    let out = &mut *context.out;
    out.extend_from_slice(b"ME ");
    if has_binary_key(entry) {
        to_base64(out, key);
    } else {
        out.extend_from_slice(key);
    }
    // memcached writes the time that is left as a negative number.
    let expires = match entry.expires() {
        0 => -1,
        at => i64::from(slot.now()) - i64::from(at),
    };
    let facts = format!(
        " exp={expires} la={} cas={} fetch={} cls=1 size={}\r\n",
        slot.now().saturating_sub(entry.used()),
        context.store.shown(entry.cas()),
        if entry.is_fetched() { "yes" } else { "no" },
        crate::items::bytes_of(key.len(), entry.value_bytes()),
    );
    out.extend_from_slice(facts.as_bytes());
    Asked::Done
}
