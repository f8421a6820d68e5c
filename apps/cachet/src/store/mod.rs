//! The store: keys, values and expiry in limited memory.

pub mod allocation;
pub mod clock;
pub mod counters;
mod crawl;
pub mod details;
pub mod hash;
pub mod section;
mod slot;
pub mod stripes;
#[cfg(test)]
mod tests;
pub mod watch;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hearth_sys::clock::Clock as Ticks;

use crate::items::{Entry, Fresh, KEY_MAX, Making, Out, WalkPosition, block_bytes, bytes_of};
use allocation::{Allocation, Holdings, Moves};
use clock::Clock;
use counters::Counters;
use crawl::Crawl;
use details::Details;
use hash::KeyHash;
use section::{Measured, Section};
use watch::{Topics, Watch};

pub use crawl::{Chores, Walk};
pub use section::Running;
use stripes::{Gone, Stripes};

pub use slot::{Condition, KeySlot, Mode, Stored};

/// Settings of a store.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Memory for items, in bytes.
    pub memory: usize,
    /// Whether items are evicted for memory; otherwise nothing more is stored.
    pub evicts: bool,
    /// Largest item in bytes, as memcached counts them.
    pub item_max: usize,
    /// Number of items before a table grows, as a power of two.
    pub hash_power: u32,
    /// Number of locks, as a power of two.
    pub lock_power: u32,
    /// Whether clients may compare and see the numbers of values; they are all 0 otherwise.
    pub shows_numbers: bool,
    /// Byte that ends the prefix of a key, by which keys are counted.
    pub delimiter: u8,
    /// Whether keys are counted by prefix from the beginning.
    pub counts_prefixes: bool,
    /// Options of the allocation section.
    pub running: Running,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            memory: 64 << 20,
            evicts: true,
            item_max: 1 << 20,
            hash_power: 16,
            lock_power: 10,
            shows_numbers: true,
            delimiter: b':',
            counts_prefixes: false,
            running: Running::default(),
        }
    }
}

/// Reason why there is no new item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It would exceed the largest size.
    TooLarge,
    /// There is no memory for it.
    NoMemory,
}

/// Reason why there is no store.
#[derive(Debug, thiserror::Error)]
pub enum NoStore {
    /// There is no memory for one.
    #[error("there is no memory for a store")]
    Memory,
    /// The proprietor of its allocation section gets no thread.
    #[error("{0}")]
    Proprietor(hearth_sync::NoProprietor),
}

/// The items and everything about them.
#[derive(Debug)]
pub struct Store {
    settings: Settings,
    hash: KeyHash,
    clock: Clock,
    stripes: Arc<Stripes>,
    section: Section,
    moves: Arc<Moves>,
    crawl: Crawl,
    watch: Arc<Watch>,
    details: Details,
    /// Bytes in blocks whose values are incomplete, and their limit.
    awaited: Arc<AtomicUsize>,
    awaited_max: AtomicUsize,
}

/// A share of the memory for an incomplete value; returned when dropped.
#[derive(Debug)]
pub struct Share {
    of: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A thread's own part of the store.
#[derive(Debug, Default)]
pub struct Worker {
    /// Its counters.
    pub counters: Arc<Counters>,
    /// Number of the connection that it serves, for watchers.
    pub connection: u64,
    out: Vec<Out>,
    out_bytes: usize,
}

/// Items that a worker keeps before it frees them, unless it allocates first.
const KEPT_ITEMS: usize = 32;
const KEPT_BYTES: usize = 64 << 10;

impl Worker {
    /// A worker with counters that others read.
    #[must_use]
    pub fn new(counters: Arc<Counters>) -> Worker {
        Worker {
            counters,
            ..Worker::default()
        }
    }

    /// Keeps an item to be freed.
    pub fn keep(&mut self, out: Option<Out>) {
        if let Some(out) = out {
            self.out_bytes += out.bytes();
            self.out.push(out);
        }
    }
}

/// memcached's overhead of an item, by which it judges what is too large: header, number of the
/// value, end of the key.
const MEMCACHED_OVERHEAD: usize = 48 + 8 + 1 + 2;
/// Divisor of the memory that incomplete values may have. Nothing evicts those, so clients that
/// announce values without sending them would take all of it; the largest item that can be
/// configured (`-I`) needs as much.
const AWAITED: usize = 2;

impl Store {
    /// Makes a store.
    ///
    /// # Errors
    /// There is no memory, or no thread for the proprietor of its allocation section.
    pub fn new(settings: Settings, ticks: Ticks) -> Result<Store, NoStore> {
        let stripes = Arc::new(Stripes::new(
            1 << settings.lock_power,
            1 << settings.hash_power,
        ));
        let watch = Arc::new(Watch::default());
        let limit = (settings.memory, settings.evicts);
        let allocation = Allocation::new(Arc::clone(&stripes), limit, Arc::clone(&watch))
            .ok_or(NoStore::Memory)?;
        Ok(Store {
            moves: allocation.moves(),
            section: Section::new(allocation, ticks, &settings.running)
                .map_err(NoStore::Proprietor)?,
            hash: KeyHash::new(),
            clock: Clock::new(),
            stripes,
            awaited: Arc::default(),
            awaited_max: AtomicUsize::new(settings.memory / AWAITED),
            details: Details::new(settings.delimiter, settings.counts_prefixes),
            settings,
            crawl: Crawl::default(),
            watch,
        })
    }

    /// Its clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Its watchers.
    #[must_use]
    pub fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    /// Counts by prefix.
    #[must_use]
    pub fn details(&self) -> &Details {
        &self.details
    }

    /// The number of a value as clients see it.
    #[inline]
    #[must_use]
    pub fn shown(&self, cas: u64) -> u64 {
        if self.settings.shows_numbers { cas } else { 0 }
    }

    /// Counters of the allocation section.
    #[must_use]
    pub fn moves(&self) -> &Moves {
        &self.moves
    }

    /// Contents. Enters the allocation section.
    #[must_use]
    pub fn holdings(&self) -> Holdings {
        self.section.enter(|allocation| allocation.holdings())
    }

    /// Measurements of the allocation section, and the section's own counts.
    #[must_use]
    pub fn measured(&self) -> (Measured, hearth_sync::Statistics) {
        self.section.measured()
    }

    /// Explains how the allocation section runs, and why.
    #[must_use]
    pub fn explain(&self) -> String {
        self.section.explain()
    }

    /// From now on the system gives no more memory.
    #[cfg(test)]
    pub fn starve(&self) {
        self.section.enter(Allocation::starve);
    }

    /// Continues the numbers of values after this one, which is larger than those so far.
    #[cfg(test)]
    pub fn count_from(&self, last: u64) {
        for part in 0..self.stripes.count() {
            self.stripes.lock_one(part).numbers.count_from(last);
        }
    }

    /// Resets all counters kept here rather than by workers.
    pub fn reset_counted(&self) {
        self.section.enter(Allocation::reset_moves);
        self.crawl.reset();
        self.details.reset();
        for counter in [&self.watch.events, &self.watch.sent, &self.watch.skipped] {
            counter.reset();
        }
    }

    /// Sets the memory for items, in bytes.
    pub fn set_memory(&self, bytes: usize) {
        self.awaited_max.store(bytes / AWAITED, Ordering::Relaxed);
        self.section.enter(|allocation| allocation.set_limit(bytes));
    }

    /// Sets the shares of hot and warm items, in percent.
    pub fn set_shares(&self, hot: usize, warm: usize) {
        self.section
            .enter(|allocation| allocation.set_shares(hot, warm));
    }

    /// The hash of a key.
    #[inline]
    #[must_use]
    pub fn hash_of(&self, key: &[u8]) -> u64 {
        self.hash.of(key)
    }

    /// Makes an item for a key, to be filled and then stored or given up.
    ///
    /// # Errors
    /// It is too large, or there is no memory.
    pub fn make(
        &self,
        worker: &mut Worker,
        (key, hash): (&[u8], u64),
        value_bytes: usize,
    ) -> Result<Fresh, Refused> {
        debug_assert!(key.len() <= KEY_MAX);
        if key.len() + value_bytes + MEMCACHED_OVERHEAD > self.settings.item_max {
            worker.counters.store_too_large.bump();
            return Err(Refused::TooLarge);
        }
        let making = Making {
            key,
            hash,
            value_bytes: value_bytes as u32,
            now: self.clock.now(),
        };
        worker.out_bytes = 0;
        let out = &mut worker.out;
        let made = self.section.enter(|allocation| {
            allocation.release(out.drain(..));
            allocation.allocate(&making)
        });
        made.map_err(|_| {
            worker.counters.store_no_memory.bump();
            Refused::NoMemory
        })
    }

    /// Takes a share for a new incomplete value; None if all shares are taken. One value is always
    /// allowed.
    ///
    /// Relaxed: a number is compared and added to, and orders nothing. By one exchange: a refused
    /// share must not stand in the sum for a moment, where it would have others refused for which
    /// there is room.
    #[must_use]
    pub fn share_for(&self, fresh: &Fresh) -> Option<Share> {
        let bytes = block_bytes(bytes_of(fresh.key().len(), fresh.value_bytes()));
        let most = self.awaited_max.load(Ordering::Relaxed);
        let is_room = |before: usize| before == 0 || before + bytes <= most;
        self.awaited
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |before| {
                is_room(before).then_some(before + bytes)
            })
            .ok()?;
        Some(Share {
            of: Arc::clone(&self.awaited),
            bytes,
        })
    }

    /// Frees the items that a worker has kept, if there are many.
    pub fn settle(&self, worker: &mut Worker) {
        if worker.out.len() >= KEPT_ITEMS || worker.out_bytes >= KEPT_BYTES {
            self.free_kept(worker);
        }
    }

    /// Frees all items that a worker has kept.
    pub fn free_kept(&self, worker: &mut Worker) {
        worker.out_bytes = 0;
        let out = &mut worker.out;
        if !out.is_empty() {
            self.section
                .enter(|allocation| allocation.release(out.drain(..)));
        }
    }

    /// Looks up an item and lends it, locked, to a closure.
    #[inline]
    pub fn get<R>(
        &self,
        worker: &mut Worker,
        (key, hash): (&[u8], u64),
        show: impl FnOnce(Entry<'_>) -> R,
    ) -> Option<R> {
        let mut stripe = self.stripes.lock(hash);
        let now = self.clock.now();
        let Some(entry) = stripe.chains.find(hash, key) else {
            drop(stripe);
            self.tell_fetch(worker, key, Fetched::NotFound);
            return None;
        };
        match stripe.numbers.is_gone(entry, now) {
            None => {
                let result = show(entry);
                entry.bump(now);
                self.tell_fetch(worker, key, Fetched::Found(entry.value_bytes()));
                Some(result)
            }
            Some(why) => {
                let out = stripe.chains.take(hash, key);
                drop(stripe);
                note_gone(worker, why);
                worker.keep(out);
                self.tell_fetch(worker, key, Fetched::Gone(why));
                None
            }
        }
    }

    /// The slot of a key, locked, to serve a command. Not to be held during an allocation.
    pub fn slot<'a>(&'a self, worker: &mut Worker, key: (&'a [u8], u64)) -> KeySlot<'a> {
        let wants = self.watch.wants(Topics::FETCHERS);
        let why = wants.then(|| self.slot_as_it_is(key).why_gone()).flatten();
        let slot = self.slot_again(worker, key);
        if wants {
            let found = slot.find().map(|entry| entry.value_bytes());
            let fetched = why.map_or(Fetched::NotFound, Fetched::Gone);
            self.tell_fetch(worker, key.0, found.map_or(fetched, Fetched::Found));
        }
        slot
    }

    /// The slot of a key, locked once more for the same command, of which watchers are not told.
    pub fn slot_again<'a>(
        &'a self,
        worker: &mut Worker,
        (key, hash): (&'a [u8], u64),
    ) -> KeySlot<'a> {
        let mut stripe = self.stripes.lock(hash);
        let now = self.clock.now();
        if let Some(entry) = stripe.chains.find(hash, key)
            && let Some(why) = stripe.numbers.is_gone(entry, now)
        {
            note_gone(worker, why);
            worker.keep(stripe.chains.take(hash, key));
        }
        KeySlot {
            stripe,
            key,
            hash,
            now,
        }
    }

    /// The slot of a key, with its item even if expired.
    pub fn slot_as_it_is<'a>(&'a self, (key, hash): (&'a [u8], u64)) -> KeySlot<'a> {
        KeySlot {
            stripe: self.stripes.lock(hash),
            key,
            hash,
            now: self.clock.now(),
        }
    }

    /// Stores an item.
    pub fn store(
        &self,
        worker: &mut Worker,
        fresh: Fresh,
        mode: Mode,
        condition: Condition,
    ) -> Stored {
        if !self.watch.wants(Topics::MUTATIONS) {
            return self.store_untold(worker, fresh, mode, condition);
        }
        let (key, hash, bytes) = (fresh.key().to_vec(), fresh.hash(), fresh.value_bytes());
        let mut expires = fresh.expires();
        let stored = self.store_untold(worker, fresh, mode, condition);
        if matches!(mode, Mode::Append | Mode::Prepend)
            && let Some(entry) = self.slot_as_it_is((&key, hash)).find()
        {
            // A piece takes the time of the value that it joins.
            expires = entry.expires();
        }
        let status = match stored {
            Stored::Stored(_) => "stored",
            Stored::NotStored => "not_stored",
            Stored::Exists => "exists",
            Stored::NotFound => "not_found",
        };
        let name = command_of(mode, condition);
        let ttl = match expires {
            0 => 0,
            at => at.saturating_sub(self.clock.now()),
        };
        self.tell_store(worker, &key, (status, name), (ttl, bytes));
        stored
    }

    /// Tells watchers that a value was not even looked at.
    pub fn tell_refused(
        &self,
        worker: &Worker,
        key: &[u8],
        (mode, condition): (Mode, Condition),
        refused: Refused,
    ) {
        if self.watch.wants(Topics::MUTATIONS) {
            let status = match refused {
                Refused::TooLarge => "too_large",
                Refused::NoMemory => "no_memory",
            };
            self.tell_store(worker, key, (status, command_of(mode, condition)), (0, 0));
        }
    }

    fn tell_store(
        &self,
        worker: &Worker,
        key: &[u8],
        (status, name): (&str, &str),
        (ttl, bytes): (u32, usize),
    ) {
        self.watch.tell(Topics::MUTATIONS, |out| {
            out.extend_from_slice(b"item_store key=");
            watch::write_key(out, key);
            let connection = worker.connection;
            let facts = format!(
                " status={status} cmd={name} ttl={ttl} clsid=1 cfd={connection} size={bytes}"
            );
            out.extend_from_slice(facts.as_bytes());
        });
    }

    /// Tells watchers of an item that was asked for, and was not there before it was made.
    pub fn tell_missed(&self, worker: &Worker, key: &[u8]) {
        self.tell_fetch(worker, key, Fetched::NotFound);
    }

    #[inline]
    fn tell_fetch(&self, worker: &Worker, key: &[u8], fetched: Fetched) {
        if self.watch.wants(Topics::FETCHERS) {
            self.tell_fetch_slow(worker.connection, key, fetched);
        }
    }

    #[cold]
    fn tell_fetch_slow(&self, connection: u64, key: &[u8], fetched: Fetched) {
        let (status, class, bytes) = match fetched {
            Fetched::Found(bytes) => ("found", 1, bytes),
            Fetched::NotFound => ("not_found", 0, 0),
            Fetched::Gone(Gone::Expired) => ("expired", 0, 0),
            Fetched::Gone(Gone::Forgotten) => ("flushed", 0, 0),
        };
        self.watch.tell(Topics::FETCHERS, |out| {
            out.extend_from_slice(b"item_get key=");
            watch::write_key(out, key);
            let facts = format!(" status={status} clsid={class} cfd={connection} size={bytes}");
            out.extend_from_slice(facts.as_bytes());
        });
    }

    fn store_untold(
        &self,
        worker: &mut Worker,
        fresh: Fresh,
        mode: Mode,
        mut condition: Condition,
    ) -> Stored {
        worker.counters.cmd_set.bump();
        if !self.settings.shows_numbers {
            // A value has no number that a client could know, so none is the right one; but only
            // `set` and `replace` compare.
            condition.cas = condition
                .cas
                .filter(|_| matches!(mode, Mode::Set | Mode::Replace))
                .map(|_| u64::MAX);
        }
        if matches!(mode, Mode::Append | Mode::Prepend) {
            return self.join(worker, fresh, mode == Mode::Append, condition.cas);
        }
        let mut key = [0; KEY_MAX];
        let key = copy_key(&fresh, &mut key);
        let (stored, out) = self
            .slot(worker, (key, fresh.hash()))
            .store(fresh, mode, condition);
        worker.keep(out);
        if condition.cas.is_some() {
            let counters = &worker.counters;
            match stored {
                Stored::Stored(_) => counters.cas_hits.bump(),
                Stored::Exists => counters.cas_badval.bump(),
                Stored::NotFound => counters.cas_misses.bump(),
                Stored::NotStored => {}
            }
        }
        worker
            .counters
            .total_items
            .add(u64::from(matches!(stored, Stored::Stored(_))));
        stored
    }

    /// Appends or prepends a piece, storing the whole as one value.
    ///
    /// The new item is made while nothing is locked; if the value has changed by then, it tries
    /// again.
    fn join(&self, worker: &mut Worker, piece: Fresh, is_after: bool, cas: Option<u64>) -> Stored {
        let mut key = [0; KEY_MAX];
        let key = (copy_key(&piece, &mut key), piece.hash());
        let new = piece.bytes().len() - 2;
        let mut tries = 0;
        let stored = loop {
            let found = {
                let slot = match tries {
                    0 => self.slot(worker, key),
                    _ => self.slot_again(worker, key),
                };
                slot.find().map(|entry| (entry.cas(), entry.value_bytes()))
            };
            tries += 1;
            let Some((known, old)) = found else {
                break Stored::NotStored;
            };
            // When pieces are joined, 0 is not a number.
            if cas.is_some_and(|wanted| wanted != known && wanted != 0) {
                break Stored::Exists;
            }
            let Ok(mut joined) = self.make(worker, key, old + new) else {
                break Stored::NotStored;
            };
            let mut slot = self.slot_again(worker, key);
            let is_same = match slot.find() {
                Some(entry) if entry.cas() == known => {
                    if is_after {
                        joined.push(entry.value());
                        joined.push(piece.bytes());
                    } else {
                        joined.push(&piece.bytes()[..new]);
                        joined.push(entry.value_and_end());
                    }
                    joined.set_client_flags(entry.client_flags());
                    joined.set_expires(entry.expires());
                    true
                }
                _ => false,
            };
            if is_same {
                let (cas, out) = slot.put(joined);
                drop(slot);
                worker.keep(out);
                worker.counters.total_items.bump();
                break Stored::Stored(cas);
            }
            drop(slot);
            worker.keep(Some(joined.give_up()));
        };
        worker.keep(Some(piece.give_up()));
        stored
    }

    /// Number of chains in all tables, and size of the tables in bytes.
    #[must_use]
    pub fn tables(&self) -> (usize, usize) {
        (0..self.stripes.count()).fold((0, 0), |(count, bytes), part| {
            let chains = &self.stripes.lock_one(part).chains;
            (count + chains.count(), bytes + chains.bytes())
        })
    }
}

impl Drop for Store {
    /// Frees the items, so that the heap can be given back.
    fn drop(&mut self) {
        let mut worker = Worker::default();
        for part in 0..self.stripes.count() {
            let mut place = Some(WalkPosition::default());
            while let Some(from) = place {
                let chains = &mut self.stripes.lock_one(part).chains;
                (_, place) = chains.take_some(from, KEPT_ITEMS, |_| true, &mut worker.out);
                self.free_kept(&mut worker);
            }
        }
    }
}

/// Result of asking for an item, as watchers are told.
#[derive(Clone, Copy, Debug)]
enum Fetched {
    /// It has so many bytes.
    Found(usize),
    NotFound,
    Gone(Gone),
}

/// Name of a command, as watchers are told.
fn command_of(mode: Mode, condition: Condition) -> &'static str {
    match (mode, condition.cas) {
        (Mode::Set, Some(_)) => "cas",
        _ => mode.name(),
    }
}

fn note_gone(worker: &Worker, why: Gone) {
    match why {
        Gone::Expired => worker.counters.get_expired.bump(),
        Gone::Forgotten => worker.counters.get_flushed.bump(),
    }
}

/// Copies the key of an item about to be handed over.
fn copy_key<'a>(fresh: &Fresh, place: &'a mut [u8; KEY_MAX]) -> &'a [u8] {
    let key = fresh.key();
    place[..key.len()].copy_from_slice(key);
    &place[..key.len()]
}

/// All workers' counters.
#[derive(Debug, Default)]
pub struct AllCounters(Mutex<Vec<Arc<Counters>>>);

impl AllCounters {
    /// Counters for another worker.
    #[must_use]
    pub fn one_more(&self) -> Arc<Counters> {
        let one = Arc::new(Counters::default());
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::clone(&one));
        one
    }

    /// The sum of all counters.
    #[must_use]
    pub fn sum(&self) -> Counters {
        let sum = Counters::default();
        for one in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            sum.absorb(one);
        }
        sum
    }

    /// Resets all counters.
    pub fn reset(&self) {
        for one in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            one.reset();
        }
    }
}
